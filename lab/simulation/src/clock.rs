//! The time of a run, which all programs and servers share. In a simulated run it advances with virtual
//! time.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

thread_local! {
    /// The start of the run in this thread, if it is simulated, and the time then.
    static BEGUN: Cell<Option<(Instant, Timestamp)>> = const { Cell::new(None) };
}

/// Begins a simulated run in this thread at `time`.
pub(crate) fn begin(time: Timestamp) {
    BEGUN.set(Some((Instant::now(), time)));
}

/// Returns the time.
pub(crate) fn now() -> Timestamp {
    at(Instant::now())
}

/// Returns the time at an instant.
pub(crate) fn at(instant: Instant) -> Timestamp {
    let Some((begun, time)) = BEGUN.get() else {
        return Timestamp::now();
    };
    let elapsed = SignedDuration::try_from(instant.saturating_duration_since(begun));
    time + elapsed.unwrap_or_default()
}
