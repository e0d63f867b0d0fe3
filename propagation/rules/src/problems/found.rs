//! The problems of a policy.

use std::fmt;

/// A reason for which a policy is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The policy contradicts itself or the API: it is as if it did not exist.
    Invalid(String),
    /// The policy asks for something that karmada-rs does not do: it has its templates, which are left alone.
    Unsupported(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) | Self::Unsupported(message) => f.write_str(message),
        }
    }
}

/// The problems that were found so far.
#[derive(Default)]
pub(super) struct Found(pub(super) Vec<Problem>);

impl Found {
    pub(super) fn invalid(&mut self, message: impl Into<String>) {
        self.0.push(Problem::Invalid(message.into()));
    }

    pub(super) fn unsupported(&mut self, feature: impl fmt::Display) {
        let message = format!("{feature} is not supported by karmada-rs");
        self.0.push(Problem::Unsupported(message));
    }

    /// Refuses a value that only a later version understands.
    pub(super) fn known(&mut self, field: &str, value: Option<&str>, known: &[&str]) {
        if let Some(value) = value.filter(|value| !value.is_empty() && !known.contains(value)) {
            self.unsupported(format_args!("{field} {value}"));
        }
    }
}
