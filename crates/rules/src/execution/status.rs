//! The status of a Work.

use jiff::Timestamp;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::work::{APPLIED, DISPATCHING, ManifestIdentifier, ManifestStatus};
use karmada_api::{Condition, Work, names};
use objects::condition::{self, find, transition};
use objects::health::health;
use objects::patch::guarded;
use serde_json::{Value, json};

use super::apply::label;
use crate::propagation::interpret::reflect;

/// The state of one manifest after a sync.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The manifest.
    pub manifest: &'a Value,
    /// The reason why the object is not as the manifest has it.
    pub error: Option<String>,
    /// The object in the member.
    pub object: Seen<'a>,
}

/// An object in the member, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// The object.
    Present(&'a Value),
    /// The object, which has nothing to be applied though its Work is suspended.
    Settled(&'a Value),
    /// It does not exist, or is not ours.
    Absent,
    /// The member was not reached: what was reported before stands.
    Unknown,
}

/// The write of a Work's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusPlan {
    /// The merge patch (RFC 7396) of the status, guarded by resourceVersion; `None` if it is up to date.
    pub patch: Option<Value>,
    /// Set if [`DISPATCHING`] has changed.
    pub dispatching: Option<Condition>,
    /// Set if [`APPLIED`] has become another, or fails for another reason.
    pub applied: Option<Condition>,
    /// The manifests whose object has a status now, and had none.
    pub reflected: Vec<ManifestIdentifier>,
    /// The manifests whose object has another health than before.
    pub interpreted: Vec<ManifestStatus>,
}

/// Plans the status of a Work after a sync of its manifests.
///
/// With `adopted`, neither the Work nor its objects have changed since the start: an [`APPLIED`] condition by
/// Karmada, which has no generation, is then as good as ours.
pub fn status(work: &Work, outcomes: &[Outcome<'_>], adopted: bool, now: Timestamp) -> StatusPlan {
    let current = work.status.as_ref();
    let conditions = current.map_or(&[][..], |status| &status.conditions);
    let statuses = current.map_or(&[][..], |status| &status.manifest_statuses);
    let mut list = conditions.to_vec();
    let mut plan = StatusPlan::default();

    let dispatching = dispatching(work.is_suspended());
    if let Some(condition) = upsert(&mut list, dispatching, adopted, now) {
        plan.dispatching = Some(condition);
    }
    let applied = if work.is_suspended() {
        applied_before(work, outcomes)
    } else {
        Some(applied(work, outcomes))
    };
    if let Some(applied) = applied
        && let Some(condition) = upsert(&mut list, applied, adopted, now)
    {
        plan.applied = Some(condition);
    }
    let new_statuses = manifest_statuses(outcomes, statuses);
    for new in &new_statuses {
        let old = statuses.iter().find(|old| old.identifier == new.identifier);
        if new.status.is_some() && old.is_none_or(|old| old.status.is_none()) {
            plan.reflected.push(new.identifier.clone());
        }
        if old.is_none_or(|old| old.health != new.health) {
            plan.interpreted.push(new.clone());
        }
    }
    if list != conditions || new_statuses != statuses {
        let status = json!({ "conditions": list, "manifestStatuses": new_statuses });
        let version = work.metadata.resource_version.as_deref();
        plan.patch = Some(guarded(version, json!({ "status": status })));
    }
    plan
}

fn dispatching(suspended: bool) -> Condition {
    let (status, reason, message) = if suspended {
        let message = "Work dispatching is in a suspended state.";
        (FALSE, "SuspendDispatching", message)
    } else {
        let message = "Work is being dispatched to member clusters.";
        (TRUE, "Dispatching", message)
    };
    Condition {
        type_: DISPATCHING.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

fn applied(work: &Work, outcomes: &[Outcome<'_>]) -> Condition {
    let errors: Vec<String> = outcomes.iter().filter_map(error).collect();
    let (status, reason, message) = if errors.is_empty() {
        let message = "Manifest has been successfully applied".to_owned();
        (TRUE, "AppliedSuccessful", message)
    } else {
        let (all, applied) = (outcomes.len(), outcomes.len() - errors.len());
        let errors = errors.join("; ");
        let message = format!("Failed to apply all manifests ({applied}/{all}): {errors}");
        (FALSE, "AppliedFailed", message)
    };
    Condition {
        type_: APPLIED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: work.metadata.generation,
        ..Condition::default()
    }
}

/// Returns the condition of a suspended Work of which no report tells that it was applied, for nothing is applied
/// any more that would be reported.
fn applied_before(work: &Work, outcomes: &[Outcome<'_>]) -> Option<Condition> {
    let is_settled = |outcome: &Outcome<'_>| matches!(outcome.object, Seen::Settled(_));
    if !outcomes.is_empty() && outcomes.iter().all(is_settled) {
        return Some(applied(work, outcomes));
    }
    // Of the same Work, and unlike its manifest: it was applied before that changed.
    let is_former = |outcome: &Outcome<'_>| match outcome.object {
        Seen::Present(object) | Seen::Settled(object) => has_id_of(object, work),
        Seen::Absent | Seen::Unknown => false,
    };
    let changed = manifest_generation(work).filter(|changed| *changed > 1)?;
    // A failure since then took nothing from what runs.
    let is_told = work
        .condition(APPLIED)
        .is_some_and(|told| told.status == TRUE);
    let is_lost = !is_told && !outcomes.is_empty() && outcomes.iter().all(is_former);
    is_lost.then(|| Condition {
        observed_generation: Some(changed - 1),
        ..applied(work, &[])
    })
}

/// Returns `true` if the object was made from this Work, and not from a former one of its name.
fn has_id_of(object: &Value, work: &Work) -> bool {
    let labels = work.metadata.labels.as_ref();
    let id = labels.and_then(|labels| labels.get(names::WORK_ID));
    id.is_some() && label(object, names::WORK_ID) == id.map(String::as_str)
}

/// Returns the generation in which the manifest of a Work changed last, if it is known.
fn manifest_generation(work: &Work) -> Option<i64> {
    let annotations = work.metadata.annotations.as_ref()?;
    annotations.get(names::MANIFEST_GENERATION)?.parse().ok()
}

fn error(outcome: &Outcome<'_>) -> Option<String> {
    let error = outcome.error.as_ref()?;
    let identifier = identifier(outcome.manifest, 0);
    let (kind, name) = (identifier.kind, identifier.name);
    Some(if identifier.namespace.is_empty() {
        format!("{kind} {name}: {error}")
    } else {
        format!("{kind} {}/{name}: {error}", identifier.namespace)
    })
}

/// Puts `new` in the place of the condition of its type or at the end, and returns it if that is more than
/// news of its generation.
fn upsert(
    list: &mut Vec<Condition>,
    mut new: Condition,
    adopted: bool,
    now: Timestamp,
) -> Option<Condition> {
    let old = find(&*list, &new.type_);
    let same_status = old.is_some_and(|old| old.status == new.status);
    let same_text = old.is_some_and(|old| old.reason == new.reason && old.message == new.message);
    let is_of_karmada = old.is_some_and(|old| old.observed_generation.is_none());
    if same_status && same_text && adopted && is_of_karmada {
        return None;
    }
    new.last_transition_time = Some(transition(old, &new.status, now));
    condition::upsert(list, new.clone());
    let news = !same_status || (new.status == FALSE && !same_text);
    news.then_some(new)
}

fn manifest_statuses(outcomes: &[Outcome<'_>], current: &[ManifestStatus]) -> Vec<ManifestStatus> {
    let of_one = |(outcome, ordinal): (&Outcome<'_>, i64)| {
        let identifier = identifier(outcome.manifest, ordinal);
        match outcome.object {
            Seen::Present(object) | Seen::Settled(object) => Some(ManifestStatus {
                status: reflect(object),
                health: Some(health(object).to_string()),
                identifier,
            }),
            Seen::Absent => None,
            Seen::Unknown => current
                .iter()
                .find(|status| status.identifier == identifier)
                .cloned(),
        }
    };
    outcomes.iter().zip(0..).filter_map(of_one).collect()
}

fn identifier(manifest: &Value, ordinal: i64) -> ManifestIdentifier {
    let text = |pointer: &str| {
        let value = manifest.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let api_version = text("/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ManifestIdentifier {
        ordinal,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("/kind").to_owned(),
        resource: String::new(),
        namespace: text("/metadata/namespace").to_owned(),
        name: text("/metadata/name").to_owned(),
    }
}
