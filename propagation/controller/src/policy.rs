//! Gives one policy its ID and finalizer, lets it go once nothing has its claim, and records why it is not
//! applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::{PropagationSpec, Suspension};
use karmada_runtime::commit::Committer;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use propagation_rules::candidate::Candidate;
use propagation_rules::problems::problems;
use propagation_rules::{claim, rights};
use uuid::Uuid;

use crate::events::Events;
use crate::index::{Index, Policy};
use crate::reason::Reason;
use crate::templates::{ForbiddenKind, Templates};

/// Reconciles policies of both scopes.
pub(crate) struct PolicyReconciler {
    index: Arc<Mutex<Index>>,
    templates: Arc<Templates>,
    committer: Committer,
    events: Arc<Events>,
    /// The policies that were there when this replica began to lead, until they are reconciled.
    inherited: Mutex<BTreeSet<Key>>,
    /// Those of them that select kinds which have not been looked up yet, with their generation.
    not_looked_up: Mutex<BTreeMap<Key, Option<i64>>>,
}

impl Controller for PolicyReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let keys = self.index.lock().policies_where(|_| true);
        self.inherited.lock().extend(keys.iter().cloned());
        keys
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let is_inherited = self.inherited.lock().remove(key);
        let Some(policy) = self.index.lock().policy(key) else {
            self.not_looked_up.lock().remove(key);
            return Ok(());
        };
        let candidate = policy.candidate();
        if candidate.is_deleting() {
            // Its templates let go of it, or are handed over; that wakes it again.
            let is_claimed = self.templates.is_claimed_by(&candidate);
            let reference = policy.reference();
            match self.forbidden(&candidate).filter(|_| is_claimed) {
                Some(note) => self
                    .events
                    .trouble(&reference, Reason::ApplyPolicyFailed, note),
                None => self.events.settled(&reference),
            }
            if !is_claimed && let Some(write) = claim::release(&candidate) {
                self.committer.write(&write, None).await?;
            }
            return Ok(());
        }
        let adoption = claim::adoption(&candidate, || Uuid::new_v4().to_string());
        // Who had not adopted it had not told of it either.
        self.record_obstacles(key, &policy, is_inherited && adoption.is_none());
        if let Some(write) = adoption {
            self.committer.write(&write, None).await?;
        }
        Ok(())
    }
}

impl PolicyReconciler {
    pub(crate) fn new(
        templates: Arc<Templates>,
        committer: Committer,
        events: Arc<Events>,
    ) -> Self {
        Self {
            index: Arc::clone(&templates.index),
            templates,
            committer,
            events,
            inherited: Mutex::default(),
            not_looked_up: Mutex::default(),
        }
    }

    /// Records why the policy is not applied, if it is not, or not as it seems.
    fn record_obstacles(&self, key: &Key, policy: &Policy, is_inherited: bool) {
        let candidate = policy.candidate();
        let found = problems(&candidate);
        let unserved = self.templates.unserved_kinds(&candidate);
        let generation = candidate.metadata.generation;
        let are_kinds_inherited = if unserved.is_some() {
            let before = self.not_looked_up.lock().remove(key);
            is_inherited || before.is_some_and(|before| before == generation)
        } else {
            if is_inherited {
                self.not_looked_up.lock().insert(key.clone(), generation);
            }
            false
        };
        let missing = self.missing_overrides(&candidate);
        if !found.is_empty() {
            let notes: Vec<_> = found.iter().map(ToString::to_string).collect();
            let note = notes.join("; ");
            self.events
                .trouble(&policy.reference(), Reason::InvalidPolicy, note);
        } else if !missing.is_empty() {
            let note = format!(
                "Waits for the override policies that it depends on: {}",
                missing.join(", ")
            );
            self.events
                .trouble(&policy.reference(), Reason::ApplyPolicyFailed, note);
        } else if let Some(note) = self.forbidden(&candidate) {
            self.events
                .trouble(&policy.reference(), Reason::ApplyPolicyFailed, note);
        } else if let unknown = self.unknown_clusters(candidate.spec)
            && !unknown.is_empty()
        {
            let note = format!(
                "Suspends dispatching to clusters that do not exist: {}",
                unknown.join(", ")
            );
            self.record_unknown(policy, Reason::UnknownCluster, note, is_inherited);
        } else if let Some(unserved) = unserved {
            if unserved.is_empty() {
                self.events.settled(&policy.reference());
                return;
            }
            let kinds: Vec<_> = unserved.iter().map(GroupVersionKind::to_string).collect();
            let note = format!(
                "Selects kinds that the API does not serve: {}",
                kinds.join(", ")
            );
            self.record_unknown(policy, Reason::UnknownKind, note, are_kinds_inherited);
        }
    }

    /// Records that a policy names something that does not exist. If that is inherited, it was recorded when it began.
    fn record_unknown(&self, policy: &Policy, reason: Reason, note: String, is_inherited: bool) {
        let reference = policy.reference();
        if is_inherited {
            self.events.known(&reference, reason, note);
        } else {
            self.events.trouble(&reference, reason, note);
        }
    }

    /// Returns which kinds that the policy selects may not be propagated, if there are any, and the rights that they need.
    fn forbidden(&self, policy: &Candidate<'_>) -> Option<String> {
        let forbidden = self.templates.forbidden_kinds(policy);
        let (kinds, resources): (Vec<_>, Vec<_>) = forbidden
            .into_iter()
            .map(|ForbiddenKind { kind, resource }| (kind.to_string(), resource))
            .unzip();
        (!kinds.is_empty()).then(|| {
            format!(
                "May not propagate {}; this grants it: {}",
                kinds.join(", "),
                rights::command(&resources)
            )
        })
    }

    /// Returns the override policies that the policy depends on and that do not exist.
    fn missing_overrides<'a>(&self, policy: &Candidate<'a>) -> Vec<&'a str> {
        let index = self.index.lock();
        let names = policy.spec.dependent_overrides.iter();
        let missing = names.filter(|name| !index.has_override(policy.namespace(), name));
        missing.map(String::as_str).collect()
    }

    /// Returns the clusters to which the policy suspends dispatching and that do not exist.
    fn unknown_clusters<'a>(&self, spec: &'a PropagationSpec) -> Vec<&'a str> {
        let names = spec.suspension.iter().flat_map(Suspension::clusters);
        names
            .filter(|name| self.index.lock().cluster(name).is_none())
            .collect()
    }
}
