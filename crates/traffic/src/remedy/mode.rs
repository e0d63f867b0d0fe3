//! The way in which a remedy takes effect, which its annotations decide.

use jiff::Timestamp;
use karmada_api::Remedy;
use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY};

/// The way in which a remedy takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It requires its actions.
    Enforce,
    /// It shows on which clusters it would act, and does nothing.
    Observe,
    /// Its annotation [`OBSERVE_ONLY`] cannot be read: it neither sets an action nor clears one.
    ///
    /// Its author may have meant either. To set the actions would block clusters of someone who wants to
    /// try; to clear them would send traffic to clusters of someone who does not.
    Hold,
    /// It has expired, and counts as deleted.
    Expired,
}

/// The moment from which a remedy acts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// There is none.
    Never,
    /// It is this one.
    At(Timestamp),
    /// It cannot be read. To lift the block of a maintenance window too early does more harm than to keep
    /// it for too long, so there is none until the annotation is corrected.
    Unreadable,
}

impl Mode {
    /// Returns the mode of `remedy` at `now`.
    pub fn of(remedy: &Remedy, now: Timestamp) -> Self {
        if matches!(Expiry::of(remedy), Expiry::At(end) if end <= now) {
            return Self::Expired;
        }
        match annotation(remedy, OBSERVE_ONLY) {
            None | Some("false") => Self::Enforce,
            Some("true") => Self::Observe,
            Some(_) => Self::Hold,
        }
    }
}

impl Expiry {
    /// Returns the expiry of `remedy`.
    pub fn of(remedy: &Remedy) -> Self {
        match annotation(remedy, EXPIRES_AT).map(str::parse) {
            None => Self::Never,
            Some(Ok(end)) => Self::At(end),
            Some(Err(_)) => Self::Unreadable,
        }
    }
}

/// Returns the value of an annotation.
pub(super) fn annotation<'a>(remedy: &'a Remedy, name: &str) -> Option<&'a str> {
    let annotations = remedy.metadata.annotations.as_ref()?;
    annotations.get(name).map(|value| value.trim())
}
