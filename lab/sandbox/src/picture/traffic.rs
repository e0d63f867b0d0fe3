//! The requests that one cluster gets.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How far back the rates look.
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Traffic {
    sent: u64,
    pub(super) answered: u64,
    pub(super) errors: u64,
    pub(super) last_sent: Option<Instant>,
    /// Requests sent elsewhere since.
    pub(super) elsewhere: u64,
    /// When the newest answers came, and whether they were good.
    recent: VecDeque<(Instant, bool)>,
}

impl Traffic {
    pub(super) fn sent(&mut self, at: Instant) {
        self.sent += 1;
        self.last_sent = Some(at);
        self.elsewhere = 0;
    }

    pub(super) fn answered(&mut self, at: Instant, ok: bool) {
        self.answered += 1;
        self.errors += u64::from(!ok);
        self.recent.push_back((at, ok));
        self.forget(at);
    }

    /// Whether every request that was sent has come to an end.
    pub(super) fn is_settled(&self) -> bool {
        self.sent == self.answered
    }

    /// Answers in the second before now, and how many of them were errors.
    pub(super) fn rates(&mut self, now: Instant) -> (usize, usize) {
        self.forget(now);
        let errors = self.recent.iter().filter(|(_, ok)| !ok).count();
        (self.recent.len(), errors)
    }

    fn forget(&mut self, now: Instant) {
        let old = |(at, _): &mut (Instant, bool)| now.saturating_duration_since(*at) >= WINDOW;
        while self.recent.pop_front_if(old).is_some() {}
    }
}
