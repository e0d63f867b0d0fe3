//! The backoff of failed writes.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
/// Beyond this many doublings every delay is longer than any limit; more would overflow.
const MOST_DOUBLINGS: u32 = 16;

/// The number of failures in a row, each of which doubles the delay before the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns `true` after a failure that no success has followed yet.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Records a failure and returns the delay before the next attempt, at most `longest`.
    pub(crate) fn next(&mut self, longest: Duration) -> Duration {
        let delay = FIRST * 2_u32.saturating_pow(self.failures);
        self.failures = (self.failures + 1).min(MOST_DOUBLINGS);
        delay.min(longest)
    }

    /// Records a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
