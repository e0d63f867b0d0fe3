//! The status of a binding and of its template, from what the Works report.

use interpreters::Failure;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::Work;
use karmada_runtime::error::BoxError;
use karmada_runtime::write;
use kube::api::{Patch, PatchParams};
use objects::Metadata;
use propagation_rules::activation;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::claim::Claim;
use propagation_rules::interpret::{scripted_status, template_status, with_conditions};
use propagation_rules::status::{self, StatusPlan};
use serde_json::{Value, json};

use super::written::StatusWrite;
use super::{BindingReconciler, Part, is_past, reference, template_reference};
use crate::identity::NAME;
use crate::index::{StoredBinding, template_of};
use crate::reason::Reason;

impl BindingReconciler {
    /// Writes the status of the binding and that of its template.
    pub(super) async fn report(
        &self,
        stored: &StoredBinding,
        template: &Value,
        works: &[Work],
    ) -> Result<(), BoxError> {
        let binding = stored.view();
        let id = binding.id();
        let own: Vec<&Work> = works
            .iter()
            .filter(|work| work.metadata.label(binding.id_label()) == id)
            .collect();
        let now = Time((self.clock)());
        let waiting = self.waiting(binding);
        if let StatusPlan::Patch {
            patch,
            is_transition,
        } = status::plan(binding, &own, waiting, &now)
            && (self.patch_binding(binding, Part::Status, patch).await?).is_some()
            && is_transition
        {
            let note = format!(
                "Update binding({}) with AggregatedStatus successfully.",
                binding.key()
            );
            for reference in [reference(stored), template_reference(template)] {
                self.events
                    .success(reference, Reason::AggregateStatusSucceed, note.clone());
            }
        }
        Ok(())
    }

    /// Returns the message of a binding that does not follow its Lazy policy yet.
    fn waiting(&self, binding: BindingRef<'_>) -> Option<String> {
        let claim = Claim::of(binding.metadata)?;
        let policy = self.index.read(|index| index.policy(&claim.policy()))?;
        activation::waiting(binding.metadata, &policy.candidate())
    }

    /// Returns the patch of the template's status if a script or a webhook puts that together.
    async fn scripted(
        &self,
        binding: BindingRef<'_>,
        template: &Value,
    ) -> Option<Result<Option<Value>, Failure>> {
        let items = binding
            .status
            .and_then(|status| status.aggregated_status.as_ref());
        let items = items.into_iter().flatten().map(|item| json!(item));
        let interpreters = &self.index.interpreters;
        let answer = interpreters.aggregate(template, items.collect()).await?;
        let reference = template_reference(template);
        Some(match answer {
            Ok(status) => {
                self.status_events.settled(&reference);
                Ok(scripted_status(template, status))
            }
            Err(failure) => {
                let reason = Reason::AggregateStatusFailed;
                self.status_events
                    .trouble(&reference, reason, failure.to_string());
                Err(failure)
            }
        })
    }

    /// Writes the status of the template, put together from those in the clusters. `is_settled` is true if
    /// every Work is made from the template as it is now.
    pub(super) async fn aggregate(
        &self,
        binding: BindingRef<'_>,
        template: &Value,
        works: &[Work],
        is_settled: bool,
    ) -> Result<(), BoxError> {
        let patch = if let Some(patch) = self.scripted(binding, template).await {
            patch?
        } else {
            let members = status::members(binding, works);
            let rebuilt = is_settled && (!members.is_empty() || binding.is_nowhere());
            template_status(template, &members, rebuilt)
        };
        let patch = if self.conditions {
            with_conditions(template, patch, &json!(Time((self.clock)())))
        } else {
            patch
        };
        let Some(mut body) = patch else {
            return Ok(());
        };
        // The echo of the same write may be still to come.
        let write = StatusWrite {
            version: template.resource_version().to_owned(),
            body: body.clone(),
        };
        if self.written.is_last(&binding.key(), &write) {
            return Ok(());
        }
        let key = template_of(binding.spec);
        let Some(api) = self.index.templates.api(&key.kind, &key.key) else {
            return Ok(());
        };
        // A template that was made anew has a status of its own.
        body["metadata"] = json!({ "uid": template.uid() });
        let (parameters, patch) = (PatchParams::apply(NAME), Patch::Merge(body));
        let call = write::patch_status(&api, &key.key.name, &parameters, &patch);
        match self.writes.write("template_status", call).await {
            Ok(_) => {
                self.written.note(binding.key(), write);
                Ok(())
            }
            Err(error) if is_past(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
