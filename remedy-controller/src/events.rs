//! The Events recorded on clusters.

use karmada_api::{Condition, Remedy, RemedySpec};
use karmada_rules::remedy::{ActionChange, Inert, OverBound};
use kube::Resource;
use kube::runtime::events::{Event, EventType};

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
        ActionChange::Set { remedy, .. } => (EventType::Warning, "RemedyActionSet", Some(remedy)),
        ActionChange::Cleared { .. } => (EventType::Normal, "RemedyActionCleared", None),
    };
    let secondary = remedy.map(|name| {
        let mut reference = Remedy::new(name, RemedySpec::default()).object_ref(&());
        reference.uid = None;
        reference
    });
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(change.to_string()),
        action: "Remedy".to_owned(),
        secondary,
    }
}

/// Returns the Event of a Remedy that can never act.
pub(crate) fn never_acts(inert: Inert) -> Event {
    Event {
        type_: EventType::Warning,
        reason: inert.reason().to_owned(),
        note: Some(inert.to_string()),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

/// Returns the Event of a cluster that the bound keeps unblocked.
pub(crate) fn kept_unblocked(over_bound: &OverBound) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "MaxBlockedClustersReached".to_owned(),
        note: Some(over_bound.to_string()),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::condition::DNS_READY;

    use super::*;

    #[test]
    fn a_condition_without_reason_and_message_makes_an_event_by_its_type() {
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
