//! The time of a run, which all programs and servers share. It follows tokio's.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The time at the start of every run, 2026-01-01T00:00:00Z.
pub(crate) const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);

thread_local! {
    /// The start of the run of this thread.
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Begins a run on this thread.
pub(crate) fn begin() {
    BEGUN.set(Some(Instant::now()));
}

/// Returns the time in the run of this thread.
pub(crate) fn now() -> Timestamp {
    let elapsed = BEGUN.get().map(|begun| begun.elapsed()).unwrap_or_default();
    let elapsed = SignedDuration::try_from(elapsed).unwrap_or_default();
    BEGINNING.saturating_add(elapsed).unwrap_or(BEGINNING)
}
