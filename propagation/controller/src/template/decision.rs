//! What becomes of the binding of a template that a policy has.

use karmada_rules::propagation::activation::Activation;
use karmada_rules::propagation::binding::{self, BindingPlan, Scheduling};
use karmada_rules::propagation::candidate::Candidate;
use karmada_rules::propagation::claim::Claim;
use objects::Metadata;

use super::TemplateReconciler;
use super::subject::{Decided, Subject, TemplateError};
use crate::reason::Reason;

impl TemplateReconciler {
    /// Decides what becomes of the binding of a template.
    pub(super) async fn decide(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        claim: &Claim,
    ) -> Result<Decided, TemplateError> {
        let scheduling = self.scheduling(subject, policy);
        let known = scheduling.as_ref().ok().cloned().unwrap_or_default();
        let activation = self.activation(subject, policy, &known).await?;
        // A binding that does not follow the policy now has no need of its priority.
        let refusal = scheduling.err();
        let refusal = refusal.filter(|_| matches!(activation, Activation::Follows(_)));
        let plan = match &refusal {
            Some(_) => BindingPlan::Unchanged,
            None => subject.plan(policy, claim, &activation, &known),
        };
        if let Some(error @ TemplateError::NoPriorityClass(_)) = &refusal {
            let (reason, note) = (Reason::ApplyPolicyFailed, error.to_string());
            self.events.trouble(subject.reference(), reason, note);
        }
        Ok(Decided {
            activation,
            plan,
            refusal,
        })
    }

    /// Returns what the scheduler needs to know of the template.
    ///
    /// # Errors
    /// Fails if the PriorityClass of the policy does not exist, or is not known yet.
    fn scheduling(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
    ) -> Result<Scheduling, TemplateError> {
        let groups = || binding::groups(&subject.template, policy.spec);
        // As in Karmada, what has no namespace has no priority.
        let has_priority = self.features.priority && !subject.template.namespace().is_empty();
        let class = policy.spec.schedule_priority.as_ref();
        let class = class.filter(|_| has_priority);
        let class = class.map(|class| class.priority_class_name.as_str());
        let priority = class.map(|class| {
            let error = if self.index.knows_priorities() {
                TemplateError::NoPriorityClass
            } else {
                TemplateError::UnseenPriorityClass
            };
            let priority = self.index.priority(class);
            priority.ok_or_else(|| error(class.to_owned()))
        });
        Ok(Scheduling {
            groups: self.features.groups.then(groups).flatten(),
            priority: priority.transpose()?,
        })
    }
}
