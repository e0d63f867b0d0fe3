//! The Events of this program.

use karmada_api::Condition;
use karmada_api::condition::TRUE;
use kube::runtime::events::{Event, EventType};

/// Returns the Event about a change of the condition `Dispatching`.
pub(crate) fn dispatching_changed(condition: &Condition) -> Event {
    event(
        EventType::Normal,
        "WorkDispatching",
        &condition.message,
        "Dispatch",
    )
}

/// Returns the Event about a change of the condition `Applied`.
pub(crate) fn applied_changed(condition: &Condition) -> Event {
    if condition.status == TRUE {
        event(EventType::Normal, "SyncSucceed", &condition.message, "Sync")
    } else {
        event(EventType::Warning, "SyncFailed", &condition.message, "Sync")
    }
}

fn event(type_: EventType, reason: &str, note: &str, action: &str) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note.to_owned()),
        action: action.to_owned(),
        secondary: None,
    }
}
