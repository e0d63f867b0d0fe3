//! The server's clock: a timestamp at its start that advances with tokio's clock.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    pub(crate) fn starting_at(base: Timestamp) -> Self {
        Self {
            base,
            // tokio's `Instant`, so that the clock stands still while a test pauses time.
            start: Instant::now(),
        }
    }

    /// Returns a clock that starts now at the same timestamp as this one did.
    pub(crate) fn again(&self) -> Self {
        Self::starting_at(self.base)
    }

    pub(crate) fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.start.elapsed())
            .ok()
            .and_then(|elapsed| self.base.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

/// Formats a timestamp as `metav1.Time`, in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a timestamp as `metav1.MicroTime`.
pub(crate) fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
