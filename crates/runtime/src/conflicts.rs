//! Reconciles that met a newer version of the object that they write. Each is decided again at once, so one is no
//! news; those of one key that go on for a minute are.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::{BoxError, Chain};
use crate::write::is_conflict as is_refused_for_version;

/// The time after which conflicts of one key are a warning.
const REPORT_AFTER: Duration = Duration::from_mins(1);

/// The keys whose last reconciles all met a conflict.
#[derive(Debug)]
pub(crate) struct Conflicts<K>(Mutex<BTreeMap<K, Streak>>);

#[derive(Debug)]
struct Streak {
    since: Instant,
    is_reported: bool,
}

/// The way in which a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Success,
    /// It met a newer version.
    Conflict,
    /// It met newer versions for a minute, which has not been reported yet.
    LastingConflict,
    /// It failed in any other way.
    Failure,
}

impl<K> Default for Conflicts<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Ord> Conflicts<K> {
    /// Classifies the result of a reconcile of `key`, which ended at `now`.
    pub(crate) fn outcome(
        &self,
        key: &K,
        error: Option<&(dyn Error + 'static)>,
        now: Instant,
    ) -> Outcome {
        let mut streaks = self.0.lock();
        let ended = match error {
            Some(error) if is_conflict(error) => None,
            Some(_) => Some(Outcome::Failure),
            None => Some(Outcome::Success),
        };
        if let Some(ended) = ended {
            streaks.remove(key);
            return ended;
        }
        let streak = streaks.entry(key.clone()).or_insert(Streak {
            since: now,
            is_reported: false,
        });
        if now < streak.since + REPORT_AFTER || std::mem::replace(&mut streak.is_reported, true) {
            Outcome::Conflict
        } else {
            Outcome::LastingConflict
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl Outcome {
    /// Returns the value of the label `result`.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Conflict | Self::LastingConflict => "conflict",
            Self::Failure => "error",
        }
    }
}

/// A reconcile that did not succeed.
pub(crate) struct Failed<'a> {
    pub(crate) controller: &'static str,
    pub(crate) member: Option<&'a str>,
    pub(crate) key: &'a dyn Debug,
    pub(crate) error: &'a BoxError,
    /// The pause before the next attempt.
    pub(crate) delay: Duration,
}

impl Failed<'_> {
    /// Logs that the key will be tried again.
    pub(crate) fn log(&self, outcome: Outcome) {
        let Self {
            controller,
            member,
            key,
            error,
            delay,
        } = self;
        let error = Chain(&***error);
        match outcome {
            Outcome::Success | Outcome::Conflict => {
                tracing::debug!(controller, member, ?key, %error, ?delay, "Reconcile met a newer version, will retry");
            }
            Outcome::LastingConflict => {
                tracing::warn!(controller, member, ?key, %error, ?delay, "Reconciles have met newer versions for a minute, will retry");
            }
            Outcome::Failure => {
                tracing::warn!(controller, member, ?key, %error, ?delay, "Reconcile failed, will retry");
            }
        }
    }
}

fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            return is_refused_for_version(status);
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::write::WriteError;

    fn refused(code: u16) -> WriteError {
        let status = Status::failure("no", "Reason").with_code(code);
        WriteError::Api(kube::Error::Api(status.boxed()))
    }

    /// Only newer versions are no failure.
    #[test]
    fn newer_versions_are_no_failure() {
        let (conflicts, now) = (Conflicts::default(), Instant::now());
        for (error, expected) in [
            (Some(refused(409)), Outcome::Conflict),
            (Some(refused(422)), Outcome::Failure),
            (Some(refused(500)), Outcome::Failure),
            (Some(WriteError::NotLeading), Outcome::Failure),
            (None, Outcome::Success),
        ] {
            let error = error.as_ref().map(|error| error as &(dyn Error + 'static));
            assert_eq!(conflicts.outcome(&1, error, now), expected, "{error:?}");
        }
    }

    /// A success begins a new minute, and the keys do not share one.
    #[test]
    fn lasting_conflicts_are_reported_once() {
        let (conflicts, begun) = (Conflicts::default(), Instant::now());
        let conflict = refused(409);
        for (key, seconds, error, expected) in [
            (1, 0, Some(&conflict), Outcome::Conflict),
            (1, 59, Some(&conflict), Outcome::Conflict),
            (2, 59, Some(&conflict), Outcome::Conflict),
            (1, 60, Some(&conflict), Outcome::LastingConflict),
            (1, 61, Some(&conflict), Outcome::Conflict),
            (2, 61, Some(&conflict), Outcome::Conflict),
            (1, 62, None, Outcome::Success),
            (1, 121, Some(&conflict), Outcome::Conflict),
            (1, 182, Some(&conflict), Outcome::LastingConflict),
        ] {
            let now = begun + Duration::from_secs(seconds);
            let error = error.map(|error: &WriteError| error as &(dyn Error + 'static));
            assert_eq!(
                conflicts.outcome(&key, error, now),
                expected,
                "{key} {seconds}"
            );
        }
    }
}
