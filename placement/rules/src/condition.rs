//! Conditions of placements, bindings and Works.

use fleet_api::Binding;
use fleet_api::conditions::BEEN_AVAILABLE;
use jiff::Timestamp;
use objects::condition::{Condition, TRUE, find, transition, upsert};

/// Returns a condition of a type and status that is not dated yet.
pub(super) fn condition((kind, status): (&str, &str), reason: &str, message: &str) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

/// Returns the condition of a type that is about a binding as it is.
pub(super) fn current_condition<'a>(binding: &'a Binding, kind: &str) -> Option<&'a Condition> {
    let condition = find(&binding.status.as_ref()?.conditions, kind)?;
    (condition.observed_generation == binding.metadata.generation).then_some(condition)
}

/// Returns `true` if a condition is True of a binding as it is.
pub(super) fn is_true(binding: &Binding, kind: &str) -> bool {
    current_condition(binding, kind).is_some_and(|condition| condition.status == TRUE)
}

/// Returns the condition whether a binding has ever served.
pub(super) fn been_available(status: &str) -> Condition {
    let reason = if status == TRUE {
        "BeenAvailable"
    } else {
        "NeverAvailable"
    };
    condition((BEEN_AVAILABLE, status), reason, "")
}

/// Puts new conditions, which are about a generation, in the places of those of their types, or at the end. Each is as old
/// as its status.
pub(super) fn put(
    conditions: &mut Vec<Condition>,
    new: impl IntoIterator<Item = Condition>,
    (generation, now): (Option<i64>, Timestamp),
) {
    for mut condition in new {
        let old = find(&*conditions, &condition.type_);
        condition.last_transition_time = Some(transition(old, &condition.status, now));
        condition.observed_generation = generation;
        upsert(conditions, condition);
    }
}
