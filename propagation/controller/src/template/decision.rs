//! The decision about the binding of a template that a policy has.

use interpreters::Failure;
use objects::Metadata;
use propagation_rules::activation::Activation;
use propagation_rules::binding::{self, Scheduling};
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use propagation_rules::interpret::{self, Component, Replicas};

use super::TemplateReconciler;
use super::subject::{Decided, Subject, TemplateError};
use crate::reason::Reason;

impl TemplateReconciler {
    /// Decides about the binding of a template.
    pub(super) async fn decide(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
        claim: &Claim,
    ) -> Result<Decided, TemplateError> {
        let priority = self.priority(subject, policy);
        // A template with components has no replicas.
        let (replicas, components) = match self.components(subject).await? {
            Some(components) => (Replicas::default(), components),
            None => (self.replicas(subject).await?, Vec::new()),
        };
        let scheduling = Scheduling {
            replicas,
            components,
            groups: (self.features.groups)
                .then(|| binding::groups(&subject.template, policy.spec))
                .flatten(),
            priority: priority.as_ref().ok().copied().flatten(),
        };
        let activation = self.activation(subject, policy, &scheduling).await?;
        // A binding that does not follow the policy now has no need of its priority.
        let refusal = priority.err();
        let refusal = refusal.filter(|_| matches!(activation, Activation::Follows(_)));
        let write = match &refusal {
            Some(_) => None,
            None => subject.plan(policy, claim, &activation, &scheduling),
        };
        if let Some(error @ TemplateError::NoPriorityClass(_)) = &refusal {
            let (reason, note) = (Reason::ApplyPolicyFailed, error.to_string());
            self.events.trouble(&subject.reference(), reason, note);
        }
        Ok(Decided {
            activation,
            write,
            refusal,
        })
    }

    /// Returns the components of a template; `None` if its kind has none, or none are wanted. Whoever users have named has
    /// the last word about them.
    async fn components(&self, subject: &Subject) -> Result<Option<Vec<Component>>, TemplateError> {
        if !self.features.components {
            return Ok(None);
        }
        let interpreters = &self.templates.interpreters;
        match interpreters.components(&subject.template).await {
            None => Ok(interpret::components(&subject.template)),
            Some(Ok(components)) => Ok(Some(components.unwrap_or_default())),
            Some(Err(failure)) => Err(self.unread(subject, Reason::GetComponentsFailed, failure)),
        }
    }

    /// Returns the replicas of a template. Whoever users have named has the last word about them.
    async fn replicas(&self, subject: &Subject) -> Result<Replicas, TemplateError> {
        let interpreters = &self.templates.interpreters;
        match interpreters.replicas(&subject.template).await {
            None => Ok(interpret::replicas(&subject.template)),
            Some(Ok(replicas)) => Ok(replicas),
            Some(Err(failure)) => Err(self.unread(subject, Reason::GetReplicasFailed, failure)),
        }
    }

    fn unread(&self, subject: &Subject, reason: Reason, failure: Failure) -> TemplateError {
        let reasons = [reason, Reason::ApplyPolicyFailed];
        let troubles = reasons.map(|reason| (reason, failure.to_string()));
        self.events.troubles(&subject.reference(), troubles.into());
        failure.into()
    }

    /// Returns the priority of the template.
    ///
    /// # Errors
    /// Fails if the PriorityClass of the policy does not exist, or is not known yet.
    fn priority(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
    ) -> Result<Option<i32>, TemplateError> {
        // As in Karmada, a template without a namespace has no priority.
        let has_priority = self.features.priority && !subject.template.namespace().is_empty();
        let class = policy.spec.schedule_priority.as_ref();
        let Some(class) = class.filter(|_| has_priority) else {
            return Ok(None);
        };
        let class = class.priority_class_name.as_str();
        let error = if self.templates.knows_priorities() {
            TemplateError::NoPriorityClass
        } else {
            TemplateError::UnseenPriorityClass
        };
        let priority = self.templates.priority(class);
        priority.map(Some).ok_or_else(|| error(class.to_owned()))
    }
}
