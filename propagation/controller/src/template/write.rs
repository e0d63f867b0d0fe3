//! The writes of a template's claim and of its binding.

use std::fmt::Debug;
use std::time::Duration;

use karmada_api::{ClusterResourceBinding, ResourceBinding};
use karmada_runtime::write::{self, WriteErrorKind};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use objects::Metadata;
use propagation_rules::binding::BindingPlan;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::{self, Claim};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TemplateReconciler;
use super::subject::{Claimed, Subject, TemplateError};
use crate::binding::reference;
use crate::identity::NAME;
use crate::index::TemplateKey;
use crate::rivals::Part;

/// The time from an edit until it is recorded, in which its copies reach the members.
const RECORD_DELAY: Duration = Duration::from_millis(20);

impl TemplateReconciler {
    /// Brings the claim on the template to `claim`, with the fingerprint of one that waits for an edit.
    /// Returns `true` if it was written.
    pub(super) async fn write_claim(
        &self,
        subject: &Subject,
        claim: Option<&Claim>,
        held: Option<&str>,
    ) -> Result<bool, TemplateError> {
        let TemplateKey { kind, key } = &subject.key;
        let patch = claim::patch_template(&subject.template, claim, held);
        let (Some(patch), Some(api)) = (patch, self.index.templates.api(kind, key)) else {
            self.claimed.lock().remove(&subject.key);
            return Ok(false);
        };
        let claimed = Claimed {
            version: subject.template.resource_version().to_owned(),
            claim: claim.cloned(),
            patch,
        };
        // The echo of the binding may come before that of the template.
        if self.claimed.lock().get(&subject.key) == Some(&claimed) {
            return Ok(false);
        }
        let (parameters, patch) = (PatchParams::apply(NAME), Patch::Merge(&claimed.patch));
        let name = write::in_path(&key.name);
        let call = api.patch_metadata(&name, &parameters, &patch);
        match self.writes.write("template", call).await {
            Ok(written) => {
                self.claimed.lock().insert(subject.key.clone(), claimed);
                Ok(written.is_some())
            }
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(false),
            Err(error) => Err(TemplateError::Claim(error)),
        }
    }

    /// Writes the binding as planned for a policy, as [`Self::store_binding`] does.
    pub(super) async fn write_binding(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        plan: BindingPlan,
    ) -> Result<bool, TemplateError> {
        let only_records = plan.only_records();
        // A fleet of Karmada's that is as we want it shows no difference to who only observes.
        if only_records && self.writes.is_dry_run() {
            return Ok(false);
        }
        // A Lazy policy goes by the record; for another, the Works of the same edit come first.
        if only_records && !policy.spec.is_lazy() {
            tokio::time::sleep(RECORD_DELAY).await;
        }
        self.store_binding(subject, plan).await
    }

    /// Writes the binding as planned, or during a pause has the template woken at its end. Returns `true` if it was
    /// written.
    pub(super) async fn store_binding(
        &self,
        subject: &Subject,
        plan: BindingPlan,
    ) -> Result<bool, TemplateError> {
        let namespace = &subject.binding_key.namespace;
        if namespace.is_empty() {
            let api: Api<ClusterResourceBinding> = Api::all(self.client.clone());
            self.write_planned(&api, subject, plan).await
        } else {
            let api: Api<ResourceBinding> = Api::namespaced(self.client.clone(), namespace);
            self.write_planned(&api, subject, plan).await
        }
    }

    async fn write_planned<K>(
        &self,
        api: &Api<K>,
        subject: &Subject,
        plan: BindingPlan,
    ) -> Result<bool, TemplateError>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        // The end of the former binding wakes the template.
        let Some(wanted) = plan.wanted() else {
            return Ok(false);
        };
        let key = &subject.binding_key;
        let concerned = || {
            let binding = subject.binding.as_ref().map(reference);
            binding.into_iter().chain([subject.reference()]).collect()
        };
        let part = Part::Binding(key.clone());
        let attempt = match self.rivals.begin(part, &wanted, api, concerned).await {
            Ok(attempt) => attempt,
            Err(until) => {
                self.queue.add_at(subject.key.clone(), until);
                return Ok(false);
            }
        };
        let written = match plan {
            BindingPlan::Unchanged | BindingPlan::Waits => return Ok(false),
            BindingPlan::Create(body) => {
                let parameters = PostParams {
                    field_manager: Some(NAME.to_owned()),
                    ..PostParams::default()
                };
                let call = write::create(api, &parameters, &body);
                self.writes.write("binding", call).await
            }
            BindingPlan::Patch(patch) => {
                let (parameters, patch) = (PatchParams::apply(NAME), Patch::<()>::from(patch));
                let call = write::patch(api, &key.name, &parameters, &patch);
                self.writes.write("binding", call).await
            }
        };
        let stored = written.map_err(|error| subject.failed(error))?;
        let is_written = stored.is_some();
        if let Some(stored) = stored {
            self.rivals.stored(attempt, stored.version());
        }
        Ok(is_written)
    }

    /// Takes the claim away from the binding. Returns `true` if it was written.
    pub(super) async fn unclaim_binding(
        &self,
        subject: &Subject,
        patch: Value,
    ) -> Result<bool, TemplateError> {
        let (key, patch, parameters) = (
            &subject.binding_key,
            Patch::Merge(patch),
            PatchParams::apply(NAME),
        );
        let client = self.client.clone();
        let written = if key.namespace.is_empty() {
            let api: Api<ClusterResourceBinding> = Api::all(client);
            let call = write::patch(&api, &key.name, &parameters, &patch);
            self.writes.write("binding", call).await
        } else {
            let api: Api<ResourceBinding> = Api::namespaced(client, &key.namespace);
            let call = write::patch(&api, &key.name, &parameters, &patch);
            self.writes.write("binding", call).await
        };
        written
            .map(|written| written.is_some())
            .map_err(|error| subject.failed(error))
    }
}
