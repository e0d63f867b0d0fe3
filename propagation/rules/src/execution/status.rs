//! The status of a Work.

use jiff::Timestamp;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::names::{self, NODE_PORTS};
use karmada_api::work::{APPLIED, DISPATCHING, ManifestIdentifier, ManifestStatus, WITHHELD};
use karmada_api::{Condition, TRAFFIC_CONTROL, Work};
use objects::condition::{self, find, transition};
use objects::health::Health;
use objects::message::{bounded, says_same};
use objects::ownership::ObservedObject;
use objects::replacement::node_ports;
use objects::write::{Guard, ObjectRef, Plan, Write};
use objects::{GroupVersionKind, Metadata};
use serde_json::{Value, json};

use super::imports::{Block, ServiceSlice};
use crate::interpret::{Timed, health, reflect};

/// The words of a Work that was applied about slices that are not in the member for now.
const BUT_WITHHELD: &str = "the condition Withheld tells what is kept out of the member";

/// The health of an object whose script has failed.
const UNKNOWN: &str = "Unknown";

/// The state of one manifest after a sync.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The manifest.
    pub manifest: &'a Value,
    /// The reason why the object is not as the manifest has it, which names the object.
    pub error: Option<String>,
    /// The fields of the manifest that the object lacks though it was written, if any.
    pub note: Option<&'a str>,
    /// The effect of the block of its cluster on the object, if it is a slice of a blocked one.
    pub block: Option<Block>,
    /// The object in the member.
    pub object: &'a ObservedObject,
    /// The answers of scripts and webhooks about it.
    pub interpreted: Interpreted,
}

/// The answers of scripts and webhooks about an object in a member; each is absent where none is asked.
#[derive(Clone, Debug, Default)]
pub struct Interpreted {
    /// The part of its status that is reported, or the error of the script.
    pub status: Option<Result<Timed, String>>,
    /// Whether it is well, or the error of the script.
    pub is_healthy: Option<Result<bool, String>>,
}

impl Interpreted {
    /// Returns the error of the first script that has failed.
    pub fn error(&self) -> Option<&str> {
        let of_status = self
            .status
            .as_ref()
            .and_then(|status| status.as_ref().err());
        let of_health = self.is_healthy.as_ref();
        let of_health = of_health.and_then(|health| health.as_ref().err());
        of_status.or(of_health).map(String::as_str)
    }
}

/// The results of a sync of a Work.
#[derive(Clone, Copy, Debug)]
pub struct SyncOutcome<'a> {
    /// The results of its manifests, in their order.
    pub manifests: &'a [Outcome<'a>],
    /// True if neither the Work nor its objects have changed since the start: an [`APPLIED`] condition by
    /// Karmada, which has no generation, is then as good as ours.
    pub untouched: bool,
}

/// News in the status of a Work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusNews {
    /// [`DISPATCHING`] has changed.
    Dispatching(Condition),
    /// [`APPLIED`] has become another, or fails for another reason.
    Applied(Condition),
    /// [`WITHHELD`] has become another, or slices stay for another reason.
    Withheld(Condition),
    /// The object of a manifest has a status now, and had none.
    Reflected(ManifestIdentifier),
    /// The object of a manifest has another health than before.
    Interpreted(ManifestStatus),
}

/// Plans the status of a Work after a sync of its manifests.
pub fn status(work: &Work, outcome: SyncOutcome<'_>, now: Timestamp) -> Plan<StatusNews> {
    let outcomes = outcome.manifests;
    let current = work.status.as_ref();
    let conditions = current.map_or(&[][..], |status| &status.conditions);
    let statuses = current.map_or(&[][..], |status| &status.manifest_statuses);
    let mut list = conditions.to_vec();
    let mut plan = Plan::default();

    let dispatching = dispatching(work.is_suspended());
    if let Some(condition) = upsert(&mut list, dispatching, outcome, now) {
        plan.events.push(StatusNews::Dispatching(condition));
    }
    let applied = if work.is_suspended() {
        applied_before(work, outcomes)
    } else {
        Some(applied(work, outcomes))
    };
    if let Some(applied) = applied
        && let Some(condition) = upsert(&mut list, applied, outcome, now)
    {
        plan.events.push(StatusNews::Applied(condition));
    }
    if let Some(withheld) = withheld(work, outcomes)
        && let Some(condition) = upsert(&mut list, withheld, outcome, now)
    {
        plan.events.push(StatusNews::Withheld(condition));
    }
    let new_statuses = manifest_statuses(work, outcomes, statuses);
    let mut interpreted = Vec::new();
    for new in &new_statuses {
        let old = statuses.iter().find(|old| old.identifier == new.identifier);
        if new.status.is_some() && old.is_none_or(|old| old.status.is_none()) {
            let reflected = StatusNews::Reflected(new.identifier.clone());
            plan.events.push(reflected);
        }
        if old.is_none_or(|old| old.health != new.health) {
            interpreted.push(StatusNews::Interpreted(new.clone()));
        }
    }
    plan.events.extend(interpreted);
    if list != conditions || new_statuses != statuses {
        let status = json!({ "conditions": list, "manifestStatuses": new_statuses });
        let object = ObjectRef::of(work, &());
        let write = Write::merge("work_status", object, json!({ "status": status }));
        plan.writes.push(write.of_status().guarded(Guard::Version));
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
    let mut errors: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| outcome.error.as_deref())
        .collect();
    let (status, reason, message) = if errors.is_empty() {
        let message = "Manifest has been successfully applied";
        let notes = outcomes.iter().filter_map(|outcome| outcome.note);
        let mut blocks = outcomes.iter().map(|outcome| outcome.block);
        let is_withheld = blocks.any(|block| block == Some(Block::Withheld));
        let parts: Vec<_> = std::iter::once(message)
            .chain(notes)
            .chain(is_withheld.then_some(BUT_WITHHELD))
            .collect();
        (TRUE, "AppliedSuccessful", parts.join("; "))
    } else {
        let (all, applied) = (outcomes.len(), outcomes.len() - errors.len());
        // Without a connection, all of them have the same.
        errors.dedup();
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

/// Returns the condition that says which slices of a Work are withheld; `None` if none is and was, or a sync does not tell.
fn withheld(work: &Work, outcomes: &[Outcome<'_>]) -> Option<Condition> {
    let has_failed = outcomes.iter().any(|outcome| outcome.error.is_some());
    if has_failed || work.is_suspended() {
        return None;
    }
    let [withheld, readmitted] =
        [Block::Withheld, Block::Readmitted].map(|block| block_notes(block, outcomes));
    let (status, reason, message) = if !withheld.is_empty() {
        (TRUE, TRAFFIC_CONTROL, withheld)
    } else if !readmitted.is_empty() {
        (FALSE, "AllProvidersBlocked", readmitted)
    } else if work.condition(WITHHELD).is_some() {
        (
            FALSE,
            "Released",
            "No EndpointSlice is withheld.".to_owned(),
        )
    } else {
        return None;
    };
    Some(Condition {
        type_: WITHHELD.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: work.metadata.generation,
        ..Condition::default()
    })
}

/// Returns the effect of the block on each of the slices that it concerns; empty if it concerns none.
fn block_notes(block: Block, outcomes: &[Outcome<'_>]) -> String {
    let concerned = outcomes.iter().filter(|one| one.block == Some(block));
    let notes = concerned.filter_map(|one| {
        let ServiceSlice {
            service, source, ..
        } = ServiceSlice::of(one.manifest)?;
        let (key, source) = (one.manifest.key(), source?);
        Some(match block {
            Block::Withheld => format!(
                "EndpointSlice {key} of cluster {source} is withheld: {TRAFFIC_CONTROL} is among the remedyActions of {source}"
            ),
            Block::Readmitted => format!(
                "EndpointSlice {key} of cluster {source} stays although {source} is blocked: no other cluster serves Service {service}"
            ),
        })
    });
    notes.collect::<Vec<_>>().join("; ")
}

/// Returns the condition of a suspended Work of which no report tells that it was applied, for nothing is applied
/// any more that would be reported.
fn applied_before(work: &Work, outcomes: &[Outcome<'_>]) -> Option<Condition> {
    let mut objects = outcomes.iter().map(|outcome| outcome.object);
    let is_settled = objects.all(|object| matches!(object, ObservedObject::Settled(_)));
    if !outcomes.is_empty() && is_settled {
        return Some(applied(work, outcomes));
    }
    // Of the same Work, and unlike its manifest: it was applied before that changed.
    let is_former = outcomes.iter().all(|outcome| {
        let object = outcome.object.seen();
        object.is_some_and(|object| has_id_of(object, work))
    });
    let changed = manifest_generation(work).filter(|changed| *changed > 1)?;
    // A failure since then took nothing from the running object.
    let is_reported = work
        .condition(APPLIED)
        .is_some_and(|applied| applied.status == TRUE);
    let is_lost = !is_reported && !outcomes.is_empty() && is_former;
    is_lost.then(|| Condition {
        observed_generation: Some(changed - 1),
        ..applied(work, &[])
    })
}

/// Returns `true` if the object was made from this Work, and not from a former one of its name.
fn has_id_of(object: &Value, work: &Work) -> bool {
    let id = work.metadata.label(names::WORK_ID);
    id.is_some() && object.label(names::WORK_ID) == id
}

/// Returns the generation in which the manifest of a Work changed last, if it is known.
fn manifest_generation(work: &Work) -> Option<i64> {
    let generation = work.metadata.annotation(names::MANIFEST_GENERATION)?;
    generation.parse().ok()
}

/// Puts `new` in the place of the condition of its type or at the end, and returns it if that is more than
/// news of its generation. A message that says the same stays as it was told.
fn upsert(
    list: &mut Vec<Condition>,
    mut new: Condition,
    outcome: SyncOutcome<'_>,
    now: Timestamp,
) -> Option<Condition> {
    new.message = bounded(new.message);
    let old = find(&*list, &new.type_);
    let same_status = old.is_some_and(|old| old.status == new.status);
    let told = old.filter(|old| old.reason == new.reason && says_same(&old.message, &new.message));
    let same_text = told.is_some();
    let is_of_karmada = old.is_some_and(|old| old.observed_generation.is_none());
    if same_status && same_text && outcome.untouched && is_of_karmada {
        return None;
    }
    new.last_transition_time = Some(transition(old, &new.status, now));
    if let Some(told) = told {
        new.message.clone_from(&told.message);
    }
    condition::upsert(list, new.clone());
    let news = !same_status || (new.status == FALSE && !same_text);
    news.then_some(new)
}

fn manifest_statuses(
    work: &Work,
    outcomes: &[Outcome<'_>],
    current: &[ManifestStatus],
) -> Vec<ManifestStatus> {
    let outcomes = outcomes.iter().zip(0..);
    outcomes
        .filter_map(|(outcome, ordinal)| manifest_status(work, outcome, ordinal, current))
        .collect()
}

/// Returns the status of the manifest of a Work that has this place in it, if it has one.
fn manifest_status(
    work: &Work,
    outcome: &Outcome<'_>,
    ordinal: i64,
    current: &[ManifestStatus],
) -> Option<ManifestStatus> {
    let identifier = identifier(outcome.manifest, ordinal);
    match outcome.object {
        ObservedObject::Present(object) | ObservedObject::Settled(object) => {
            let before = current.iter().find(|one| one.identifier == identifier);
            let before_status = before.and_then(|before| before.status.as_ref());
            let status = match &outcome.interpreted.status {
                None => reflect(object).or_else(|| own_node_ports(work, outcome.manifest, object)),
                Some(Ok(status)) => {
                    let before = before_status.unwrap_or(&Value::Null);
                    Some(status.clone().unless_only_times_differ_from(before))
                }
                // The last report stays, and so does the health.
                Some(Err(_)) => return before.cloned(),
            };
            let health = match &outcome.interpreted.is_healthy {
                None => health(object).to_string(),
                Some(Ok(true)) => Health::Healthy.to_string(),
                Some(Ok(false)) => Health::Unhealthy.to_string(),
                Some(Err(_)) => UNKNOWN.to_owned(),
            };
            Some(ManifestStatus {
                status,
                health: Some(health),
                identifier,
            })
        }
        ObservedObject::Absent => None,
        ObservedObject::Unknown => {
            let mut known = current.iter();
            known.find(|one| one.identifier == identifier).cloned()
        }
    }
}

/// Returns the status of a Service whose node ports in a member need not be those of the template, as the member has others than
/// the manifest, or the manifest was overridden: these by the names of their ports. Who sends requests to nodes reads it.
fn own_node_ports(work: &Work, manifest: &Value, object: &Value) -> Option<Value> {
    let own = node_ports(object);
    let mut overrides = [names::APPLIED_OVERRIDES, names::APPLIED_CLUSTER_OVERRIDES].iter();
    let is_overridden = overrides.any(|key| work.metadata.annotation(key).is_some());
    let is_told = !own.is_empty() && (is_overridden || own != node_ports(manifest));
    is_told.then(|| json!({ NODE_PORTS: own }))
}

/// Returns the identifier of a manifest in a Work's status.
pub fn identifier(manifest: &Value, ordinal: i64) -> ManifestIdentifier {
    let GroupVersionKind {
        group,
        version,
        kind,
    } = GroupVersionKind::of(manifest);
    ManifestIdentifier {
        ordinal,
        group,
        version,
        kind,
        resource: String::new(),
        namespace: manifest.namespace().to_owned(),
        name: manifest.name().to_owned(),
    }
}
