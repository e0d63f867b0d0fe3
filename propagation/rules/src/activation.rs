//! Lazy activation: whether a template follows its policy now, or waits for its next edit.
//!
//! An edit is told by a recorded fingerprint and never by the kind of an event, so that no restart, no
//! relist and no hand-over between policies moves a workload.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names;
use objects::{Metadata, api_version, kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::candidate::Candidate;
use super::claim::{Claim, marks, policy_text};
use super::fingerprint::Fingerprint;
use crate::binding_ref::BindingRef;

/// The policy that a binding follows, and the template as it was then: the value of the binding's
/// annotation [`names::ACTIVATED`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The policy, for people.
    pub policy: String,
    /// The policy's uid.
    pub uid: String,
    /// The policy's generation; 0 if it is not known which one the binding follows.
    pub generation: i64,
    /// The template's fingerprint.
    pub template: String,
    /// The template's generation; absent for kinds without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_generation: Option<i64>,
}

/// The facts on which activation depends.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The policy that has the template.
    pub policy: &'a Candidate<'a>,
    /// The template.
    pub template: &'a Value,
    /// The claim on template or binding.
    pub claimed: Option<&'a Claim>,
    /// The template's binding, if it has one.
    pub bound: Option<Bound>,
    /// The last state of the template in which this process has seen it.
    pub seen: Option<Seen>,
    /// The time of the last change of the policy's spec, if it is known. Not read for a template with a
    /// binding.
    pub policy_changed: Option<Timestamp>,
}

/// The binding of a template.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its record; `None` if it has none that can be read.
    pub record: Option<Record>,
    /// True if it is as the policy wants it, apart from the pause.
    pub is_current: bool,
    /// True if it has the policy's claim, with which its record was written.
    pub is_claimed: bool,
}

/// A state of a template, as a process remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No policy selected it.
    Unmatched,
    /// It waited for an edit, with this value of the annotation.
    Held(String),
    /// It had a binding.
    Bound,
}

/// The consequence of a policy for a template that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The binding follows the policy as it is now.
    Follows(Record),
    /// The binding stays as it is, apart from claim and pause.
    Keeps(Record),
    /// The template gets a claim with this value of the annotation [`names::CLAIMED_FINGERPRINT`], and no
    /// binding before its next edit.
    Holds(String),
}

impl Activation {
    /// Returns the annotation's value for a template that is held.
    pub fn held(&self) -> Option<&str> {
        match self {
            Self::Holds(held) => Some(held),
            Self::Follows(_) | Self::Keeps(_) => None,
        }
    }
}

impl Record {
    /// Returns the record of a binding.
    pub fn of(binding: &ObjectMeta) -> Option<Self> {
        serde_json::from_str(binding.annotation(names::ACTIVATED)?).ok()
    }

    fn new(policy: &Candidate<'_>, object: &Value) -> Self {
        Self {
            policy: policy_text(policy.namespace(), policy.name()),
            uid: policy.metadata.uid.clone().unwrap_or_default(),
            generation: policy.metadata.generation.unwrap_or_default(),
            template: Fingerprint::of(object).to_string(),
            template_generation: object.generation(),
        }
    }

    /// Returns `true` if the binding follows the policy as it is now.
    pub fn follows(&self, policy: &Candidate<'_>) -> bool {
        let Self {
            uid, generation, ..
        } = self;
        policy.metadata.uid.as_deref() == Some(uid)
            && policy.metadata.generation == Some(*generation)
    }

    /// Returns the value of the annotation.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the record with the generation of the template once it has the policy's claim.
    fn once_claimed(self, facts: &Facts<'_>) -> Self {
        let claim = Claim::by(facts.policy);
        let mut annotations = marks(claim.as_ref())
            .into_iter()
            .filter(|mark| !mark.is_label());
        if annotations.all(|mark| mark.is_on(facts.template)) {
            return self;
        }
        Self {
            template_generation: annotated_generation(facts.template),
            ..self
        }
    }

    /// Returns the record of the same policy with the template as `now` has it.
    fn with_template_of(self, now: &Self) -> Self {
        Self {
            template: now.template.clone(),
            template_generation: now.template_generation,
            ..self
        }
    }

    /// Returns the record with the generation that the template got from a claim or a pause, which are no
    /// edits: the next version of the API may add defaults in that one.
    fn with_generation_of(self, now: &Self) -> Self {
        if self.template == now.template {
            self.with_template_of(now)
        } else {
            self
        }
    }
}

/// Decides whether a template follows the policy that has it.
pub fn decide(facts: &Facts<'_>) -> Activation {
    // As the claim leaves it: with that may come the defaults of a newer API, of which no event tells.
    let now = Record::new(facts.policy, facts.template).once_claimed(facts);
    if !facts.policy.spec.is_lazy() {
        return Activation::Follows(now);
    }
    match &facts.bound {
        Some(bound) => of_bound(facts, bound, now),
        None => of_unbound(facts, now),
    }
}

fn of_bound(facts: &Facts<'_>, bound: &Bound, now: Record) -> Activation {
    let Some(record) = bound.record.clone() else {
        // Made by Karmada, which keeps no record: earlier edits cannot be told.
        let generation = if bound.is_current { now.generation } else { 0 };
        return Activation::Keeps(Record { generation, ..now });
    };
    let is_edited = match (record.template.parse(), now.template.parse::<Fingerprint>()) {
        // The claim on the template may be still to come: a change since the record is an edit. Without
        // the claim on the binding, the record is that of another policy, or from before none had it.
        (Ok(before), Ok(fingerprint)) if bound.is_claimed => {
            let is_same = is_of_generation(facts.template, record.template_generation);
            Some(fingerprint.is_edit_of(&before, is_same))
        }
        _ => None,
    };
    match is_edited {
        Some(true) => Activation::Follows(now),
        _ if bound.is_current => Activation::Keeps(Record {
            policy: now.policy.clone(),
            uid: now.uid.clone(),
            generation: now.generation,
            ..record.with_generation_of(&now)
        }),
        Some(false) => Activation::Keeps(record.with_generation_of(&now)),
        // A claim that changes hands is no edit, and whatever else changed meanwhile cannot be told.
        None => Activation::Keeps(record.with_template_of(&now)),
    }
}

fn of_unbound(facts: &Facts<'_>, now: Record) -> Activation {
    let is_handed_over = facts
        .claimed
        .is_some_and(|claim| !claim.is_of(facts.policy));
    let remembered = match &facts.seen {
        // A binding that was deleted by hand is made again at once.
        Some(Seen::Bound) if !is_handed_over => return Activation::Follows(now),
        Some(Seen::Held(held)) => Some(held.as_str()),
        _ => None,
    };
    // A user's PUT wipes the annotation.
    let recorded = facts
        .template
        .annotation(names::CLAIMED_FINGERPRINT)
        .or(remembered);
    let held = recorded.and_then(Held::parse);
    let is_edited = held.is_some_and(|held| held.is_before_edit(facts.template));
    let is_younger = recorded.is_none() && is_younger(facts);
    if !is_handed_over && (is_edited || is_younger) {
        return Activation::Follows(now);
    }
    match (recorded, held) {
        // The record of the same content stays: each write of a Deployment is another generation.
        (Some(recorded), Some(held)) if !is_handed_over && held.has_fingerprint_of(&now) => {
            Activation::Holds(recorded.to_owned())
        }
        _ => Activation::Holds(Held::claimed(facts.template).to_string()),
    }
}

/// A template that waits without a binding, as its claim left it: the value of its annotation
/// [`names::CLAIMED_FINGERPRINT`].
#[derive(Clone, Copy, Debug)]
struct Held {
    fingerprint: Fingerprint,
    generation: Option<i64>,
}

impl Held {
    fn parse(text: &str) -> Option<Self> {
        let (fingerprint, generation) = text.split_once('@').unwrap_or((text, ""));
        Some(Self {
            fingerprint: fingerprint.parse().ok()?,
            generation: generation.parse().ok(),
        })
    }

    /// Returns the template as it will be once the annotation is written.
    fn claimed(template: &Value) -> Self {
        Self {
            fingerprint: Fingerprint::of(template),
            generation: annotated_generation(template),
        }
    }

    /// Returns `true` if the template was edited since, to be `now`.
    fn is_before_edit(&self, now: &Value) -> bool {
        let is_same = is_of_generation(now, self.generation);
        Fingerprint::of(now).is_edit_of(&self.fingerprint, is_same)
    }

    fn has_fingerprint_of(&self, now: &Record) -> bool {
        now.template == self.fingerprint.to_string()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fingerprint.fmt(f)?;
        match self.generation {
            Some(generation) => write!(f, "@{generation}"),
            None => Ok(()),
        }
    }
}

/// Returns `true` if the template is known to be of the generation that was recorded.
fn is_of_generation(template: &Value, recorded: Option<i64>) -> bool {
    recorded.is_some() && recorded == template.generation()
}

/// Returns the generation of a template once its annotations are written: to the API they belong to the desired state of a
/// Deployment, and of no other kind.
fn annotated_generation(template: &Value) -> Option<i64> {
    let is_deployment =
        kind(template) == "Deployment" && api_version(template).starts_with("apps/");
    template
        .generation()
        .map(|now| now + i64::from(is_deployment))
}

/// Returns `true` if the template is not older than its policy.
fn is_younger(facts: &Facts<'_>) -> bool {
    let created = facts.template.pointer("/metadata/creationTimestamp");
    let created: Option<Timestamp> = created.and_then(|time| time.as_str()?.parse().ok());
    match (created, facts.policy_changed) {
        // Times have seconds: who applies both in one file expects propagation.
        (Some(created), Some(changed)) if created == changed => facts.seen != Some(Seen::Unmatched),
        (Some(created), Some(changed)) => created > changed,
        _ => false,
    }
}

/// Returns the time of the last change of a policy's spec by somebody other than a control plane: a
/// policy that was never changed has that of its creation.
pub fn changed_at(policy: &ObjectMeta) -> Option<Timestamp> {
    let created = policy.creation_timestamp.as_ref().map(|time| time.0);
    if policy.generation == Some(1) {
        return created;
    }
    let entries = policy.managed_fields.iter().flatten();
    let of_others = entries.filter(|entry| {
        let manager = entry.manager.as_deref().unwrap_or_default();
        !manager.starts_with("karmada") && manager != "propagation-controller"
    });
    let times = of_others.filter_map(|entry| entry.time.as_ref().map(|time| time.0));
    times.max().or(created)
}

/// Returns `true` if a policy has made the binding, which is otherwise merely attached to those that require it.
pub fn is_activated(binding: BindingRef<'_>) -> bool {
    binding.spec.placement.is_some() || Record::of(binding.metadata).is_some()
}

/// Returns the message of a binding that does not follow its Lazy policy yet.
pub fn waiting(binding: &ObjectMeta, policy: &Candidate<'_>) -> Option<String> {
    let record = Record::of(binding)?;
    if !policy.spec.is_lazy() || record.follows(policy) {
        return None;
    }
    let now = Record::new(policy, &Value::Null);
    let before = match record.generation {
        0 => "an earlier version".to_owned(),
        generation if record.uid == now.uid => format!("generation {generation}"),
        generation => format!("generation {generation} of {}", record.policy),
    };
    Some(format!(
        "Generation {} of policy {} waits for the next edit of the template, which follows {before}.",
        now.generation, now.policy
    ))
}

#[cfg(test)]
mod tests;
