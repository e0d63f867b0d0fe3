//! Conditions of placements, bindings and Works.

use karmada_api::Condition;

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
