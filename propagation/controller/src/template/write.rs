//! The writes of a template's claim and of its binding.

use std::fmt;
use std::time::Duration;

use karmada_api::{ClusterResourceBinding, ResourceBinding};
use karmada_rules::propagation::binding::BindingPlan;
use karmada_rules::propagation::candidate::Candidate;
use karmada_rules::propagation::claim::{self, Claim};
use karmada_runtime::write::{self, WriteError, WriteErrorKind};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Resource};
use objects::Metadata;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TemplateReconciler;
use super::subject::{Claimed, Subject, TemplateError};
use crate::identity::NAME;
use crate::index::TemplateKey;

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
            patch,
        };
        // The echo of the binding may come before that of the template.
        if self.claimed.lock().get(&subject.key) == Some(&claimed) {
            return Ok(false);
        }
        let (parameters, patch) = (parameters(), Patch::Merge(&claimed.patch));
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

    /// Writes the binding as planned. Returns `true` if it was written.
    pub(super) async fn write_binding(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        plan: BindingPlan,
    ) -> Result<bool, TemplateError> {
        let only_records = plan.only_records();
        match plan {
            // The end of the former binding wakes the template.
            BindingPlan::Unchanged | BindingPlan::Waits => Ok(false),
            // A fleet of Karmada's that is as we want it shows no difference to who only observes.
            _ if only_records && self.writes.is_dry_run() => Ok(false),
            BindingPlan::Create(body) => self.create_binding(subject, body).await,
            BindingPlan::Patch(patch) => {
                // A Lazy policy goes by the record; for another, the Works of the same edit come first.
                if only_records && !policy.spec.is_lazy() {
                    tokio::time::sleep(RECORD_DELAY).await;
                }
                self.patch_binding(subject, patch.into()).await
            }
        }
    }

    async fn create_binding(&self, subject: &Subject, body: Value) -> Result<bool, TemplateError> {
        let failed = |error| subject.failed(WriteError::Api(kube::Error::SerdeError(error)));
        // Untyped, so that fields of a later version survive.
        let object: DynamicObject = serde_json::from_value(body).map_err(failed)?;
        let namespace = &subject.key.key.namespace;
        let client = self.client.clone();
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(client, &ApiResource::erase::<ClusterResourceBinding>(&()))
        } else {
            let resource = ApiResource::erase::<ResourceBinding>(&());
            Api::namespaced_with(client, namespace, &resource)
        };
        let parameters = PostParams {
            field_manager: Some(NAME.to_owned()),
            ..PostParams::default()
        };
        let call = api.create(&parameters, &object);
        let written = self.writes.write("binding", call).await;
        written
            .map(|written| written.is_some())
            .map_err(|error| subject.failed(error))
    }

    pub(super) async fn patch_binding(
        &self,
        subject: &Subject,
        patch: Patch<Value>,
    ) -> Result<bool, TemplateError> {
        let key = &subject.binding_key;
        if key.namespace.is_empty() {
            let api: Api<ClusterResourceBinding> = Api::all(self.client.clone());
            self.patch(&api, subject, &key.name, &patch).await
        } else {
            let api: Api<ResourceBinding> = Api::namespaced(self.client.clone(), &key.namespace);
            self.patch(&api, subject, &key.name, &patch).await
        }
    }

    async fn patch<K>(
        &self,
        api: &Api<K>,
        subject: &Subject,
        name: &str,
        patch: &Patch<Value>,
    ) -> Result<bool, TemplateError>
    where
        K: Resource + Clone + DeserializeOwned + fmt::Debug,
    {
        let parameters = parameters();
        let call = api.patch_metadata(name, &parameters, patch);
        let written = self.writes.write("binding", call).await;
        written
            .map(|written| written.is_some())
            .map_err(|error| subject.failed(error))
    }
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(NAME.to_owned()),
        ..PatchParams::default()
    }
}
