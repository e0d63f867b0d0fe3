//! The writes of a template's claim and of its binding.

use std::time::Duration;

use karmada_runtime::commit::Outcome;
use objects::write::{Guard, Write};
use propagation_rules::binding;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::{self, Claim};
use serde_json::Value;

use super::TemplateReconciler;
use super::subject::{Subject, TemplateError};
use crate::binding::reference;

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
        let body = claim::patch_template(&subject.template, claim, held);
        let object = self.templates.object(&subject.key, &subject.template);
        let (Some(body), Some(object)) = (body, object) else {
            return Ok(false);
        };
        let write = Write::merge("template", object, body).guarded(Guard::Uid);
        let outcome = self.committer.write(&write, None).await;
        let outcome = outcome.map_err(TemplateError::Claim)?;
        // The echo of the binding may come before that of the template.
        if let Outcome::Stored(stored) = &outcome {
            let kind = &subject.key.kind;
            self.templates.written(kind, &write, stored);
        }
        Ok(outcome.is_stored())
    }

    /// Writes the binding for a policy, as [`Self::store_binding`] does.
    pub(super) async fn write_binding(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        write: Option<Write>,
    ) -> Result<bool, TemplateError> {
        let only_records = write.as_ref().is_some_and(binding::only_records);
        // A fleet of Karmada's that is as we want it shows no difference to who only observes.
        if only_records && self.committer.is_dry_run() {
            return Ok(false);
        }
        // A Lazy policy goes by the record; for another, the Works of the same edit come first.
        if only_records && !policy.spec.is_lazy() {
            tokio::time::sleep(RECORD_DELAY).await;
        }
        self.store_binding(subject, write).await
    }

    /// Writes the binding, or during a pause has the template woken at its end. Returns `true` if it was written.
    pub(super) async fn store_binding(
        &self,
        subject: &Subject,
        write: Option<Write>,
    ) -> Result<bool, TemplateError> {
        // The end of the former binding wakes the template.
        let Some(write) = write else {
            return Ok(false);
        };
        let binding = subject.binding.as_ref().map(reference);
        let about = binding.into_iter().chain([subject.reference()]);
        let write = write.about(about.collect());
        let outcome = self.committer.write(&write, None).await;
        match outcome.map_err(|error| subject.failed(error))? {
            Outcome::Contended(until) => {
                self.queue.add_at(subject.key.clone(), until);
                Ok(false)
            }
            Outcome::Exists(error) | Outcome::Gone(error) => Err(subject.failed(error)),
            outcome => Ok(outcome.is_stored()),
        }
    }

    /// Takes the claim away from the binding. Returns `true` if it was written.
    pub(super) async fn unclaim_binding(
        &self,
        subject: &Subject,
        body: Value,
    ) -> Result<bool, TemplateError> {
        let write = Write::merge("binding", subject.object(), body).guarded(Guard::Uid);
        let outcome = self.committer.write(&write, None).await;
        let outcome = outcome.and_then(Outcome::if_present);
        let outcome = outcome.map_err(|error| subject.failed(error))?;
        // A claim that the watch of bindings still shows is no claim on the template.
        if let Outcome::Stored(stored) = &outcome {
            self.templates.binding_written(&write, stored);
        }
        Ok(outcome.is_stored())
    }
}
