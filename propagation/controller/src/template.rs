//! Brings the claim of one template up to date, and the policy's part of its binding.

mod activation;
mod decision;
mod memory;
mod subject;
mod write;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use kube::Client;
use objects::{GroupVersionKind, Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::binding;
use propagation_rules::candidate::Candidate;
use propagation_rules::choice::{Choice, Preemption, choose};
use propagation_rules::claim::{self, Claim};
use propagation_rules::template::{self, Skipped};
use serde_json::Value;

pub(crate) use self::memory::Activations;
use self::subject::{Subject, TemplateError, Written, counted};
use crate::args::Features;
use crate::binding::is_free;
use crate::events::Events;
use crate::index::{Index, Policy, StoredBinding, TemplateKey, template_of};
use crate::latest;
use crate::metrics::CountedTemplates;
use crate::reason::Reason;
use crate::templates::Templates;

/// Reconciles templates.
pub(crate) struct TemplateReconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    pub(crate) events: Arc<Events>,
    /// The queue of this loop.
    pub(crate) queue: Queue<TemplateKey>,
    pub(crate) skipped: Skipped,
    pub(crate) features: Features,
    pub(crate) preemption: Preemption,
    /// The templates that a policy selects and that are not propagated, because nobody interprets their kind who can
    /// be asked.
    pub(crate) uninterpreted: CountedTemplates,
    /// The templates with no name left for a binding.
    pub(crate) unnamed: CountedTemplates,
    pub(crate) activations: Activations,
}

impl Controller for TemplateReconciler {
    type Key = TemplateKey;

    fn keys(&self) -> Vec<TemplateKey> {
        self.templates.keys()
    }

    async fn reconcile(&self, key: &TemplateKey) -> Result<(), BoxError> {
        // An object is one template, in whichever version policies select it.
        if let Some(version) = self.version(key).filter(|version| *version != key.kind) {
            self.queue.add(TemplateKey::new(&version, &key.key));
            return Ok(());
        }
        // The garbage collector deletes the binding of a template that is gone.
        let Some(template) = self.templates.get(key) else {
            let binding = binding_key(&self.index.lock(), key);
            if let Some(binding) = binding {
                self.committer.forget("binding", &binding);
            }
            self.events.settled(&key.reference());
            self.uninterpreted.note(key, false);
            self.unnamed.note(key, false);
            self.activations.forget(key);
            return Ok(());
        };
        let subject = self.subject(key, template);
        self.unnamed.note(key, subject.is_none());
        let Some(subject) = subject else {
            let error = TemplateError::NoName;
            let reason = Reason::ApplyPolicyFailed;
            self.events
                .trouble(&key.reference(), reason, error.to_string());
            return Err(error.into());
        };
        let policies = self.index.lock().policies_for(key);
        let choice = choose(
            &subject.template,
            subject.claimed.as_ref(),
            policies.iter().map(Policy::candidate),
            self.preemption,
            |namespace, name| self.index.lock().has_override(namespace, name),
        );
        if let Some(claim) = &subject.claimed {
            self.verify(claim, &choice).await?;
        }
        let is_refused = match choice {
            Choice::None => {
                self.events.settled(&subject.reference());
                self.activations.unmatched(key);
                self.unclaim(&subject).await?;
                self.follow_version(&subject).await?;
                false
            }
            // The policy's own loop records the reason.
            Choice::Waits { policy, .. } | Choice::Unsupported { policy, .. } => {
                self.hold(&subject, &policy).await?;
                false
            }
            Choice::Policy(policy) => self.propagate(&subject, &policy).await?,
        };
        self.uninterpreted.note(key, is_refused);
        Ok(())
    }
}

impl TemplateReconciler {
    /// Returns the version in which an object is a template: the first in which a policy selects it, or else that of its
    /// binding, unless that is to follow the first, or the first.
    fn version(&self, key: &TemplateKey) -> Option<GroupVersionKind> {
        let versions = self.index.lock().versions(&key.kind);
        if versions.len() < 2 {
            return versions.into_iter().next();
        }
        let keys = versions.iter();
        let mut keys = keys.map(|version| TemplateKey::new(version, &key.key));
        let template = keys.find_map(|key| self.templates.get(&key));
        let selected = versions.iter().find(|version| {
            let key = TemplateKey::new(version, &key.key);
            let policies = self.index.lock().policies_for(&key);
            let mut policies = policies.iter().map(Policy::candidate);
            let template = template.as_ref();
            template.is_some_and(|template| policies.any(|one| one.selects_in(version, template)))
        });
        let version = selected.or_else(|| {
            let bound = self.bound_version(key)?;
            versions.iter().find(|version| **version == bound)
        });
        version.or_else(|| versions.first()).cloned()
    }

    /// Returns the version in which an object is bound, unless its binding is to follow another.
    fn bound_version(&self, key: &TemplateKey) -> Option<GroupVersionKind> {
        let binding = self.index.lock().binding_of(key)?;
        (!is_to_follow(&binding)).then(|| template_of(binding.view().spec).kind)
    }

    /// Returns a template with the objects that belong to it, unless no name is left for its binding.
    fn subject(&self, key: &TemplateKey, template: Value) -> Option<Subject> {
        let (binding, binding_key) = {
            let index = self.index.lock();
            (index.binding_of(key), binding_key(&index, key)?)
        };
        let stored = binding.as_ref().map(StoredBinding::metadata);
        Some(Subject {
            key: key.clone(),
            claimed: Claim::on(&template, stored),
            is_bound: stored.is_some_and(|stored| claim::is_own(stored, &template)),
            template,
            binding_key,
            binding,
        })
    }

    /// Fails unless the policy of the claim is known or really gone. Absence from the cache is no deletion.
    async fn verify(&self, claim: &Claim, choice: &Choice<'_>) -> Result<(), TemplateError> {
        let is_kept = matches!(choice, Choice::Policy(policy) if claim.is_of(policy));
        let key = claim.policy();
        if is_kept || self.index.lock().policy(&key).is_some() {
            return Ok(());
        }
        let latest = latest::policy(&self.client, &key).await;
        if latest.map_err(TemplateError::Read)?.is_some() {
            return Err(TemplateError::Unseen(key));
        }
        Ok(())
    }

    /// Leaves a template that `policy` has, or is to have, as it is, apart from the claim of another policy that has let
    /// go of it and may be waiting for that to be deleted.
    async fn hold(&self, subject: &Subject, policy: &Candidate<'_>) -> Result<(), TemplateError> {
        match &subject.claimed {
            Some(claim) if !claim.is_of(policy) && !self.is_held_by(claim, subject) => {
                self.unclaim(subject).await
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if the policy of the claim would keep the template, unless another one takes it.
    fn is_held_by(&self, claim: &Claim, subject: &Subject) -> bool {
        let holder = self.index.lock().policy(&claim.policy());
        holder.is_some_and(|holder| {
            let selects = holder.selects(&subject.template);
            let holder = holder.candidate();
            selects && claim.is_of(&holder) && !holder.is_deleting()
        })
    }

    /// Takes the claims away. The binding, its Works and the copies in the clusters stay.
    async fn unclaim(&self, subject: &Subject) -> Result<(), TemplateError> {
        let binding = subject.binding.as_ref().filter(|_| subject.is_bound);
        let patch = binding.and_then(|binding| claim::patch_unclaimed(binding.metadata()));
        let on_binding = async {
            match patch {
                Some(patch) => self.unclaim_binding(subject, patch).await,
                None => Ok(false),
            }
        };
        let (template, binding) = futures::join!(self.write_claim(subject, None, None), on_binding);
        if template? | binding? {
            tracing::info!(template = %subject, "No policy has the template any more");
        }
        Ok(())
    }

    /// Brings a binding that no policy has to the version of its template.
    async fn follow_version(&self, subject: &Subject) -> Result<(), TemplateError> {
        let binding = subject.binding.as_ref().filter(|_| subject.is_bound);
        if let Some(binding) = binding.filter(|binding| is_to_follow(binding)) {
            let write = binding::follow_version(&subject.template, binding.view());
            self.store_binding(subject, write).await?;
        }
        Ok(())
    }

    /// Brings the template and its binding to the policy, unless it is no template to propagate. Returns
    /// `true` if its kind is interpreted elsewhere.
    async fn propagate(
        &self,
        subject: &Subject,
        policy: &Candidate<'_>,
    ) -> Result<bool, TemplateError> {
        let is_excluded = template::is_excluded(&subject.template, &self.skipped);
        let refusal = self.templates.interpreters.refusal(&subject.key.kind);
        // An object may be leaving for long, and must not keep a policy that is being deleted, too.
        if is_excluded || refusal.is_some() || subject.template.is_deleting() {
            self.hold(subject, policy).await?;
        } else if self.index.lock().is_interpretation_known() {
            self.apply(subject, policy).await?;
        }
        let Some(reason) = refusal.filter(|_| !is_excluded) else {
            return Ok(false);
        };
        let note = format!("Neither binding nor Works are written of this kind: {reason}");
        let reference = subject.reference();
        self.events
            .trouble(&reference, Reason::ApplyPolicyFailed, note);
        Ok(true)
    }

    /// Brings the template and its binding to the policy.
    async fn apply(&self, subject: &Subject, policy: &Candidate<'_>) -> Result<(), TemplateError> {
        // The policy's own loop gives it an ID, which wakes the template.
        let Some(claim) = Claim::by(policy) else {
            return Ok(());
        };
        let decided = self.decide(subject, policy, &claim).await?;
        let (activation, write) = (decided.activation, decided.write);
        let held = activation.held();
        let is_news = write.as_ref().is_some_and(binding::changes_spec);
        let counted = write.as_ref().and_then(counted);
        // Neither waits for the other: a claim says who has the template, whatever becomes of the binding.
        let (template, binding) = futures::join!(
            self.write_claim(subject, Some(&claim), held),
            self.write_binding(subject, policy, write),
        );
        let reference = subject.reference();
        // The next attempt finds the template claimed, and not from whom, whatever becomes of the binding now.
        if matches!(template, Ok(true))
            && let Some(former) = self.preempted(subject, policy)
        {
            let note = format!("{} is preempted by {}", named(former), named(&claim));
            self.events
                .success(reference.clone(), Reason::PreemptPolicySucceed, note);
        }
        if let Some(error) = decided.refusal {
            return Err(error);
        }
        match (template, binding) {
            (Ok(claimed), Ok(bound)) => {
                self.events.settled(&reference);
                let written = Written {
                    claim: claimed,
                    binding: bound,
                };
                self.activated(subject, policy, &activation, written);
                if held.is_none() && (claimed || (bound && is_news)) {
                    let note = format!("Apply {} succeed", named(&claim));
                    self.events
                        .success(reference.clone(), Reason::ApplyPolicySucceed, note);
                }
                if bound && let Some((reason, note)) = counted {
                    self.events.success(reference, reason, note);
                }
                Ok(())
            }
            (Err(error), _) | (_, Err(error)) => {
                if let TemplateError::Claim(source) | TemplateError::Binding { source, .. } = &error
                    && source.refusal().is_some()
                {
                    let note = format!("{error}: {source}");
                    self.events
                        .trouble(&reference, Reason::ApplyPolicyFailed, note);
                }
                Err(error)
            }
        }
    }

    /// Returns the claim that `policy` took from a policy which would have kept the template.
    fn preempted<'a>(&self, subject: &'a Subject, policy: &Candidate<'_>) -> Option<&'a Claim> {
        let former = subject.claimed.as_ref()?;
        let is_taken =
            policy.spec.preempts() && !former.is_of(policy) && self.is_held_by(former, subject);
        is_taken.then_some(former)
    }
}

/// Returns `true` for a binding that is to follow the first of the versions that are served: nobody says otherwise, and its
/// own is to go one day.
fn is_to_follow(binding: &StoredBinding) -> bool {
    let binding = binding.view();
    is_free(binding) && template::is_preliminary(&template_of(binding.spec).kind.version)
}

/// Returns the key of a template's binding, also of one to be made.
fn binding_key(index: &Index, template: &TemplateKey) -> Option<Key> {
    let own = index.binding_of(template);
    let own = own.map(|binding| binding.view().key());
    own.or_else(|| index.new_binding_key(template))
}

/// Returns a claim's policy as Events name it.
fn named(claim: &Claim) -> String {
    match &claim.namespace {
        Some(namespace) => format!("policy({namespace}/{})", claim.name),
        None => format!("cluster policy({})", claim.name),
    }
}
