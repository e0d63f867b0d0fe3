//! The pace of requests: a program that repeats one without a pause would stop virtual time.

use tokio::time::Instant;

/// The most requests that all programs may make in one instant of virtual time. Starting, or changing
/// every object, takes a few hundred.
const MOST_AT_ONCE: usize = 3_000;

/// The number of requests in the newest instant.
#[derive(Debug, Default)]
pub(super) struct Pace {
    instant: Option<(Instant, usize)>,
    exceeded: Option<String>,
}

impl Pace {
    /// Counts a request. Returns `false` if this instant has too many: virtual time advances only while every
    /// task waits, so a busy loop would never end.
    pub(super) fn admits(&mut self, request: &str) -> bool {
        let now = Instant::now();
        let count = match self.instant {
            Some((at, count)) if at == now => count + 1,
            _ => 1,
        };
        self.instant = Some((now, count));
        if count > MOST_AT_ONCE {
            self.exceeded.get_or_insert_with(|| request.to_owned());
        }
        count <= MOST_AT_ONCE
    }

    /// Returns the first request that was too many.
    pub(super) fn exceeded(&self) -> Option<String> {
        self.exceeded.clone()
    }
}
