//! The requests to one cluster.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The time over which rates are counted.
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Traffic {
    sent: u64,
    /// Requests that have ended, with a response or without.
    pub(super) ended: u64,
    pub(super) errors: u64,
    pub(super) last_sent: Option<Instant>,
    /// Requests sent to other clusters since.
    pub(super) elsewhere: u64,
    /// The ends of the newest requests, and `true` for each success.
    recent: VecDeque<(Instant, bool)>,
}

impl Traffic {
    pub(super) fn sent(&mut self, at: Instant) {
        self.sent += 1;
        self.last_sent = Some(at);
        self.elsewhere = 0;
    }

    pub(super) fn ended(&mut self, at: Instant, ok: bool) {
        self.ended += 1;
        self.errors += u64::from(!ok);
        self.recent.push_back((at, ok));
        self.forget(at);
    }

    /// Returns `true` if every request that was sent has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.sent == self.ended
    }

    /// Returns the requests that ended within the last second, and the errors among them.
    pub(super) fn rates(&mut self, now: Instant) -> (usize, usize) {
        self.forget(now);
        let errors = self.recent.iter().filter(|(_, ok)| !ok).count();
        (self.recent.len(), errors)
    }

    fn forget(&mut self, now: Instant) {
        while self
            .recent
            .pop_front_if(|(at, _)| now.saturating_duration_since(*at) >= WINDOW)
            .is_some()
        {}
    }
}
