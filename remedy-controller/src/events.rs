//! The Events recorded on clusters and remedies.

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::remedy::EXPIRES_AT;
use karmada_api::{Condition, Remedy, RemedySpec};
use karmada_runtime::commit::{Notices, Obstacle};
use karmada_runtime::events::{EventReason, EventRecorder};
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use objects::write::Write;
use traffic::remedy::{ActionChange, ObservedActions, OverBound, Problem};

use crate::reason::Reason;

/// Returns the Event of a condition of ours whose status changed. Any client may have written it, without
/// a reason too, which an Event must have.
pub(crate) fn condition_changed(condition: &Condition) -> Event {
    let healthy = condition.status == karmada_api::condition::TRUE;
    let Condition {
        type_,
        status,
        reason,
        message,
        ..
    } = condition;
    Event {
        type_: if healthy {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason: if reason.is_empty() { type_ } else { reason }.clone(),
        note: Some(if message.is_empty() {
            format!("{type_} is {status}")
        } else {
            format!("{type_} is {status}: {message}")
        }),
        action: "Observe".to_owned(),
        secondary: None,
    }
}

/// Returns the Event of an action that was set or cleared.
pub(crate) fn action_changed(change: &ActionChange) -> Event {
    let (type_, reason, remedy) = match change {
        ActionChange::Set { remedy, .. } => {
            (EventType::Warning, Reason::RemedyActionSet, Some(remedy))
        }
        ActionChange::Cleared { .. } => (EventType::Normal, Reason::RemedyActionCleared, None),
    };
    Event {
        type_,
        reason: reason.as_str().to_owned(),
        note: Some(change.to_string()),
        action: "Remedy".to_owned(),
        secondary: remedy.map(|name| reference(name)),
    }
}

/// Returns the Event of actions that a Remedy which only observes would set.
pub(crate) fn would_act(observed: &ObservedActions) -> Event {
    Event {
        type_: EventType::Normal,
        reason: Reason::RemedyWouldAct.as_str().to_owned(),
        note: Some(observed.to_string()),
        action: "Observe".to_owned(),
        secondary: Some(reference(&observed.remedy)),
    }
}

fn reference(remedy: &str) -> ObjectReference {
    let mut reference = Remedy::new(remedy, RemedySpec::default()).object_ref(&());
    reference.uid = None;
    reference
}

/// Returns the Event of a Remedy that may not act as its author means.
pub(crate) fn problem(problem: &Problem) -> Event {
    Event {
        type_: EventType::Warning,
        reason: reason_of(problem).as_str().to_owned(),
        note: Some(problem.to_string()),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

/// Returns the reason of the Event about `problem`, which is the one of the condition.
fn reason_of(problem: &Problem) -> Reason {
    match problem {
        Problem::SelectsNoCluster => Reason::SelectsNoCluster,
        Problem::NeverMatches => Reason::NeverMatches,
        Problem::NoActions => Reason::NoActions,
        Problem::IncompleteMatch { .. } => Reason::IncompleteMatch,
        Problem::InvalidExpiry { .. } => Reason::InvalidExpiry,
        Problem::InvalidObserveOnly { .. } => Reason::InvalidObserveOnly,
        Problem::InvalidWhen(_) => Reason::InvalidWhen,
        Problem::UnknownStatus { .. } => Reason::UnknownStatus,
        Problem::ClusterNotFound { .. } => Reason::ClusterNotFound,
        Problem::ConditionNotFound { .. } => Reason::ConditionNotFound,
        Problem::UnknownAction { .. } => Reason::UnknownAction,
    }
}

/// Returns the Event of a Remedy that has expired.
pub(crate) fn expired(remedy: &Remedy) -> Event {
    let annotations = remedy.metadata.annotations.as_ref();
    let end = annotations.and_then(|annotations| annotations.get(EXPIRES_AT));
    let end = end.map(String::as_str).unwrap_or_default();
    Event {
        type_: EventType::Normal,
        reason: Reason::RemedyExpired.as_str().to_owned(),
        note: Some(format!("it expired at {end} and acts no more")),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

/// Returns the Event of a cluster that the bound keeps unblocked.
pub(crate) fn kept_unblocked(over_bound: &OverBound) -> Event {
    Event {
        type_: EventType::Warning,
        reason: Reason::MaxBlockedClustersReached.as_str().to_owned(),
        note: Some(over_bound.to_string()),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

/// Returns the Events that tell users of obstacles, on the object that is written.
pub(crate) fn notices(events: EventRecorder) -> Notices {
    Box::new(move |write, obstacle| {
        events.record(write.object.reference(), of_obstacle(write, obstacle));
    })
}

/// Returns the Event of an object whose write meets an obstacle.
fn of_obstacle(write: &Write, obstacle: Obstacle<'_>) -> Event {
    let is_condition = write.body()["status"].get("conditions").is_some();
    let (refused, field) = match write.target {
        "remedy_actions" if is_condition => (Reason::RemedyActionsRefused, "status.conditions"),
        "remedy_actions" => (Reason::RemedyActionsRefused, "status.remedyActions"),
        "remedy_status" => (Reason::StatusRefused, "status"),
        _ => (Reason::ConditionRefused, "status.conditions"),
    };
    let (reason, note) = match obstacle {
        Obstacle::Refused(message) => (
            refused,
            format!("the API refuses every write to {field}: {message}"),
        ),
        Obstacle::Contested(manager) => (
            Reason::RemedyActionsContested,
            format!(
                "{manager} undoes every write to {field}; this controller writes again after growing pauses, up to 5 minutes"
            ),
        ),
    };
    Event {
        type_: EventType::Warning,
        reason: reason.as_str().to_owned(),
        note: Some(note),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::condition::DNS_READY;

    use super::*;

    /// A condition without reason and message makes an event by its type.
    #[test]
    fn bare_condition_makes_event() {
        let mut condition = Condition {
            type_: DNS_READY.to_owned(),
            status: "False".to_owned(),
            ..Condition::default()
        };
        let bare = condition_changed(&condition);
        assert_eq!(bare.reason, DNS_READY);
        assert_eq!(bare.note, Some(format!("{DNS_READY} is False")));
        condition.reason = "Broken".to_owned();
        condition.message = "no answer".to_owned();
        let full = condition_changed(&condition);
        assert_eq!(full.reason, "Broken");
        assert_eq!(full.note, Some(format!("{DNS_READY} is False: no answer")));
    }
}
