use std::fmt;

use super::said::RESOLVED_REFS;

/// The reason why an `HTTPRoute` is not served as it is now. One that was served before goes on as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The condition that is False for it, beside `Accepted`, if any.
    pub(super) also: Option<&'static str>,
    /// The reason of the condition, one of the Gateway API's.
    pub(super) reason: &'static str,
    /// The problem and its remedy.
    pub(super) message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Refusal {
    /// Creates a refusal by a Gateway or its listeners.
    pub(super) fn of_parent(reason: &'static str, message: String) -> Self {
        Self {
            also: None,
            reason,
            message,
        }
    }

    /// Creates a refusal of an unsupported field.
    pub(super) fn unsupported(message: String) -> Self {
        Self::of_parent("UnsupportedValue", message)
    }

    /// Creates a refusal for a backend that cannot be one.
    pub(super) fn of_backend(reason: &'static str, message: String) -> Self {
        Self {
            also: Some(RESOLVED_REFS),
            reason,
            message,
        }
    }
}
