//! The clock by which Remedies expire: in a simulated run it advances with virtual time.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

thread_local! {
    /// The begin of the run in this thread, if it is simulated.
    static BEGIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Begins a run in this thread.
pub(crate) fn begin() {
    BEGIN.set(Some(Instant::now()));
}

/// Returns the time.
pub(crate) fn now() -> Timestamp {
    at(Instant::now())
}

/// Returns the time at an instant.
pub(crate) fn at(instant: Instant) -> Timestamp {
    let Some(begin) = BEGIN.get() else {
        return Timestamp::now();
    };
    let elapsed = SignedDuration::try_from(instant.saturating_duration_since(begin));
    Timestamp::UNIX_EPOCH + elapsed.unwrap_or_default()
}
