use jiff::Timestamp;
use karmada_api::Condition;
use objects::condition::{FALSE, TRUE, find, transition};
use serde::Serialize;

/// The condition for whether an object is served as it is.
pub(super) const ACCEPTED: &str = "Accepted";
/// The condition about its references.
pub(super) const RESOLVED_REFS: &str = "ResolvedRefs";

/// A condition, without the moments at which it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Said {
    pub(super) kind: &'static str,
    pub(super) is_true: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Said {
    /// Creates a condition that is true. By convention of the Gateway API its reason is its own name.
    pub(super) fn yes(kind: &'static str, message: &str) -> Self {
        Self {
            kind,
            is_true: true,
            reason: kind,
            message: message.to_owned(),
        }
    }

    /// Creates a condition that is false.
    pub(super) fn no(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            is_true: false,
            reason,
            message,
        }
    }

    /// Returns the condition of an object of this `generation` in the place of that among `told`.
    pub(super) fn condition(
        &self,
        told: &[Condition],
        generation: Option<i64>,
        now: Timestamp,
    ) -> Condition {
        let status = if self.is_true { TRUE } else { FALSE };
        Condition {
            type_: self.kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            last_transition_time: Some(transition(find(told, self.kind), status, now)),
            observed_generation: generation,
            ..Condition::default()
        }
    }
}
