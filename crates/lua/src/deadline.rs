//! The time that a script has.

use std::time::{Duration, Instant};

/// The time of a script, from its load to its result.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);

/// The end of that time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

/// The error of a script whose time is over.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("context deadline exceeded: the script ran longer than {} s", LIMIT.as_secs())]
pub(crate) struct Expired;

impl Deadline {
    /// Starts the time.
    pub(crate) fn start() -> Self {
        Self(Instant::now() + LIMIT)
    }

    /// Fails once it is over.
    pub(crate) fn check(self) -> Result<(), Expired> {
        if Instant::now() < self.0 {
            Ok(())
        } else {
            Err(Expired)
        }
    }
}
