//! Gives one policy its ID and finalizer, lets it go once nothing has its claim, and records why it is not
//! applied.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use karmada_api::{ClusterPropagationPolicy, Key, PropagationPolicy, PropagationSpec, Suspension};
use karmada_rules::propagation::choice::Candidate;
use karmada_rules::propagation::claim;
use karmada_rules::propagation::problems::problems;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::write::{WriteErrorKind, Writes};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::events::Events;
use crate::index::{Index, Policy};
use crate::reason::Reason;
use crate::watch::SharedIndex;
use crate::works::SharedWorks;

/// Reconciles policies of both scopes.
pub(crate) struct PolicyReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) client: Client,
    pub(crate) writes: Writes,
    pub(crate) events: Arc<Events>,
    pub(crate) works: Arc<SharedWorks>,
    /// The policies that were there when this replica began to lead, until they are reconciled.
    pub(crate) inherited: Mutex<BTreeSet<Key>>,
}

impl Controller for PolicyReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let keys = self.index.read(Index::policy_keys);
        self.inherited.lock().extend(keys.iter().cloned());
        keys
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let is_inherited = self.inherited.lock().remove(key);
        let Some(policy) = self.index.read(|index| index.policy(key)) else {
            return Ok(());
        };
        let candidate = policy.candidate();
        if candidate.is_deleting() {
            self.events.settled(&policy.reference());
            // Its templates let go of it, or are handed over; that wakes it again.
            if !self.index.is_claimed_by(&candidate)
                && let Some(patch) = claim::release(&candidate)
            {
                self.patch(key, patch).await?;
            }
            return Ok(());
        }
        self.record_obstacles(&policy, &candidate, is_inherited);
        match claim::adoption(&candidate, || Uuid::new_v4().to_string()) {
            Some(patch) => self.patch(key, patch).await,
            None => Ok(()),
        }
    }
}

impl PolicyReconciler {
    /// Records why the policy is not applied, if it is not, or not as it seems.
    fn record_obstacles(&self, policy: &Policy, candidate: &Candidate<'_>, is_inherited: bool) {
        let found = problems(candidate);
        let missing = candidate.spec.dependent_overrides.iter().filter(|name| {
            let exists = |index: &Index| index.has_override(candidate.namespace(), name);
            !self.index.read(exists)
        });
        let missing: Vec<_> = missing.map(String::as_str).collect();
        if !found.is_empty() {
            let notes: Vec<_> = found.iter().map(ToString::to_string).collect();
            let note = notes.join("; ");
            self.events
                .trouble(policy.reference(), Reason::InvalidPolicy, note);
        } else if !missing.is_empty() {
            let note = format!(
                "Waits for the override policies that it depends on: {}",
                missing.join(", ")
            );
            self.events
                .trouble(policy.reference(), Reason::ApplyPolicyFailed, note);
        } else if let unknown = self.unknown_clusters(candidate.spec)
            && !unknown.is_empty()
        {
            let note = format!(
                "Suspends dispatching to clusters that do not exist: {}",
                unknown.join(", ")
            );
            let reference = policy.reference();
            if is_inherited {
                // Recorded when it began.
                self.events.known(&reference, Reason::UnknownCluster, note);
            } else {
                self.events.trouble(reference, Reason::UnknownCluster, note);
            }
        } else {
            self.events.settled(&policy.reference());
        }
    }

    /// Returns the clusters to which the policy suspends dispatching and that do not exist.
    fn unknown_clusters<'a>(&self, spec: &'a PropagationSpec) -> Vec<&'a str> {
        let names = spec.suspension.iter().flat_map(Suspension::clusters);
        names
            .filter(|name| self.works.cluster(name).is_none())
            .collect()
    }

    async fn patch(&self, key: &Key, patch: Value) -> Result<(), BoxError> {
        if key.namespace.is_empty() {
            let api: Api<ClusterPropagationPolicy> = Api::all(self.client.clone());
            self.patch_in(&api, &key.name, patch).await
        } else {
            let api: Api<PropagationPolicy> = Api::namespaced(self.client.clone(), &key.namespace);
            self.patch_in(&api, &key.name, patch).await
        }
    }

    async fn patch_in<K>(&self, api: &Api<K>, name: &str, patch: Value) -> Result<(), BoxError>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let parameters = PatchParams {
            field_manager: Some(crate::NAME.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let call = api.patch_metadata(name, &parameters, &patch);
        match self.writes.write("policy", call).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
