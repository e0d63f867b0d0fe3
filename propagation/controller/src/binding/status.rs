//! The status of a binding and of its template, from the reports of the Works.

use interpreters::Failure;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::Work;
use karmada_runtime::commit::Outcome;
use karmada_runtime::error::BoxError;
use objects::Metadata;
use objects::write::{Guard, Write};
use propagation_rules::activation;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::claim::Claim;
use propagation_rules::interpret::{scripted_status, template_status, with_conditions};
use propagation_rules::status;
use serde_json::{Value, json};

use super::{BindingReconciler, reference, template_reference};
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
        let plan = status::plan(binding, &own, waiting, &now);
        let Some(write) = plan.writes.first() else {
            return Ok(());
        };
        let outcome = self.committer.write(write, None).await?;
        if outcome.is_stored() && !plan.events.is_empty() {
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
        let policy = self.index.lock().policy(&claim.policy())?;
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
        let items: Vec<Value> = items.collect();
        let interpreters = &self.templates.interpreters;
        let answer = interpreters.aggregate(template, items).await?;
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
        let key = template_of(binding.spec);
        let object = self.templates.object(&key, template);
        let (Some(body), Some(object)) = (patch, object) else {
            return Ok(());
        };
        // A template that was made anew has a status of its own.
        let write = Write::merge("template_status", object, body);
        let write = write.of_status().guarded(Guard::Uid);
        let outcome = self.committer.write(&write, None).await?;
        // The echo of the same write may be still to come.
        let stored = match &outcome {
            Outcome::Stored(stored) => stored,
            Outcome::Unchanged => &write.object,
            _ => return Ok(()),
        };
        self.templates.written(&key.kind, &write, stored);
        Ok(())
    }
}
