//! The templates with Lazy policies, and the edits for which they wait.

use jiff::Timestamp;
use karmada_api::condition::FALSE;
use propagation_rules::activation::{self, Activation, Bound, Facts, Record};
use propagation_rules::binding::{self, Scheduling};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim;
use propagation_rules::status::POLICY_APPLIED;

use super::TemplateReconciler;
use super::subject::{Subject, TemplateError, Written};
use crate::index::{StoredBinding, policy_key};
use crate::latest;
use crate::reason::Reason;

impl TemplateReconciler {
    /// Decides whether the template follows the policy now.
    pub(super) async fn activation(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        scheduling: &Scheduling,
    ) -> Result<Activation, TemplateError> {
        let is_lazy = policy.spec.is_lazy();
        let bound = subject.bound().map(StoredBinding::view).map(|own| Bound {
            record: Record::of(own.metadata),
            is_current: is_lazy
                && binding::is_current(&subject.template, policy.spec, scheduling, own.spec),
            is_claimed: claim::is_claimed_by(own.metadata, policy),
        });
        let policy_changed = if is_lazy && bound.is_none() {
            self.changed_at(policy).await?
        } else {
            None
        };
        let seen = self.activations.seen.lock().get(&subject.key).cloned();
        Ok(activation::decide(&Facts {
            policy,
            template: &subject.template,
            claimed: subject.claimed.as_ref(),
            bound,
            seen,
            policy_changed,
        }))
    }

    /// Returns the time at which a user last changed the spec of a policy.
    async fn changed_at(&self, policy: &Candidate<'_>) -> Result<Option<Timestamp>, TemplateError> {
        let metadata = policy.metadata;
        let generation = metadata.generation.unwrap_or_default();
        if generation == 1 {
            return Ok(activation::changed_at(metadata));
        }
        let uid = metadata.uid.clone().unwrap_or_default();
        if let Some((of, changed)) = self.activations.changed.lock().get(&uid)
            && *of == generation
        {
            return Ok(*changed);
        }
        // The managed fields are most of an object's memory, and not cached.
        let found = latest::policy(&self.client, &policy_key(policy)).await;
        let found = found.map_err(TemplateError::Read)?;
        let changed = found.as_ref().and_then(activation::changed_at);
        self.activations
            .changed
            .lock()
            .insert(uid, (generation, changed));
        Ok(changed)
    }

    /// Remembers a decision that was carried out, and lets the binding show whether it waits.
    pub(super) fn activated(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        activation: &Activation,
        written: Written,
    ) {
        let waits = self.activations.note(&subject.key, policy, activation);
        let own = subject.bound();
        let is_shown = own.is_some_and(|own| shows_wait(own.view()));
        // A write of the binding wakes it, too, once it is in the cache.
        if own.is_some() && !written.binding && (waits || is_shown) {
            let bindings = &self.templates.queues.bindings;
            bindings.add(subject.binding_key.clone());
        }
        let began = match own {
            Some(_) => !is_shown,
            None => written.claim,
        };
        if waits && self.activations.is_news(policy, began) {
            let generation = policy.metadata.generation.unwrap_or_default();
            let note = format!(
                "Templates follow generation {generation} of this policy when they are edited next"
            );
            let policy = self.index.lock().policy(&policy_key(policy));
            if let Some(policy) = policy {
                let reference = policy.reference();
                self.events
                    .success(reference, Reason::WaitsForTemplate, note);
            }
        }
    }
}

/// Returns `true` if the status of a binding says that it waits for an edit.
fn shows_wait(binding: BindingRef<'_>) -> bool {
    let conditions = binding
        .status
        .and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == POLICY_APPLIED && condition.status == FALSE)
}
