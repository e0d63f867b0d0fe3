//! The server's time: a timestamp at its start that goes on as tokio's time does.

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
            start: Instant::now(),
        }
    }

    /// A clock that begins as this one began.
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

/// A timestamp of whole seconds, as `metav1.Time` is written.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A timestamp of microseconds, as `metav1.MicroTime` is written.
pub(crate) fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
