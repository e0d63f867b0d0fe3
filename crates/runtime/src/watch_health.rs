//! The ability of one watch to read its API, judged by the results of its requests.
//!
//! A list or watch request that fails says little alone: an API server that restarts fails them all for
//! a while, for every replica. Only failures that last mean that this replica cannot read, and then
//! only a complete list, or requests that no longer fail, mean that it can again.

use std::time::Duration;

use tokio::time::Instant;

/// The time for which every request must fail before the watch counts as unable to read. Longer than a
/// lost connection, which is noticed after 15 s, or most restarts of an API server, which every replica
/// lives through; as short as the time after which a DNS failure becomes a verdict.
pub(crate) const UNABLE_AFTER: Duration = Duration::from_secs(30);
/// The longest time between two failures that belong together: the longest delay before a retry, 5 s,
/// plus the timeout of its response, 30 s, and some more. After a longer one a request has succeeded,
/// although an idle watch showed nothing.
const QUIET: Duration = Duration::from_secs(45);
/// The time after a list within which the watch that continues it is refused, if it is. A user who may
/// list and not watch must not count as able to read once a minute.
const PROOF: Duration = Duration::from_secs(2);

/// The state of one watch. The watch begins able, because the gate of its first list is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchHealth {
    /// It reads, or has failed for less than [`UNABLE_AFTER`].
    Able {
        /// The first and the newest of the failures since the last success.
        failing: Option<(Instant, Instant)>,
    },
    /// Its requests have failed for [`UNABLE_AFTER`].
    Unable {
        /// The moment from which it counts as able again, unless a request fails before; `None` while
        /// a list is under way.
        until: Option<Instant>,
    },
}

impl WatchHealth {
    pub(crate) const fn new() -> Self {
        Self::Able { failing: None }
    }

    /// Takes in a failed request. Returns `true` if the watch is unable to read from now on.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        match self {
            Self::Able { failing } => {
                let first = match *failing {
                    Some((first, last)) if now <= last + QUIET => first,
                    _ => now,
                };
                *failing = Some((first, now));
                let unable = first + UNABLE_AFTER <= now;
                if unable {
                    *self = Self::Unable {
                        until: Some(now + QUIET),
                    };
                }
                unable
            }
            Self::Unable { until } => {
                *until = Some(now + QUIET);
                false
            }
        }
    }

    /// Takes in the break of a watch that was open: until then it could read.
    pub(crate) fn broke(&mut self) {
        if let Self::Able { failing } = self {
            *failing = None;
        }
    }

    /// Takes in the start of a list, which shows only at its end that it can be read.
    pub(crate) fn listing(&mut self) {
        if let Self::Unable { until } = self {
            *until = None;
        }
    }

    /// Takes in a complete list or an event of a watch.
    pub(crate) fn succeeded(&mut self, now: Instant) {
        match self {
            Self::Able { failing } => *failing = None,
            Self::Unable { until } => {
                let proven = now + PROOF;
                *until = Some(until.map_or(proven, |until| until.min(proven)));
            }
        }
    }

    /// Returns the moment at which the watch counts as able again, if nothing fails before.
    pub(crate) fn able_at(&self) -> Option<Instant> {
        match self {
            Self::Able { .. } => None,
            Self::Unable { until } => *until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    /// A watch whose requests fail every five seconds from `start` on, until it is unable.
    fn unable(start: Instant) -> (WatchHealth, Instant) {
        let mut health = WatchHealth::new();
        let mut now = start;
        while !health.failed(now) {
            now += seconds(5);
        }
        (health, now)
    }

    /// A watch is unable once its requests have failed for long enough.
    #[tokio::test]
    async fn long_failure_is_unable() {
        let start = Instant::now();
        let (_, at) = unable(start);
        assert_eq!(at - start, UNABLE_AFTER);
    }

    /// A success or a long quiet time between failures starts the count of seconds again.
    #[tokio::test]
    async fn success_restarts_the_count() {
        let start = Instant::now();
        let mut health = WatchHealth::new();
        assert!(!health.failed(start));
        assert!(!health.failed(start + seconds(29)));
        health.succeeded(start + seconds(30));
        assert!(!health.failed(start + seconds(31)));
        let later = start + seconds(31) + QUIET + seconds(1);
        assert!(!health.failed(later));
        assert!(!health.failed(later + seconds(29)));
        assert!(health.failed(later + seconds(30)));
    }

    /// A watch that breaks was open before.
    #[tokio::test]
    async fn broken_watch_was_open() {
        let start = Instant::now();
        let mut health = WatchHealth::new();
        assert!(!health.failed(start));
        health.broke();
        assert!(!health.failed(start + UNABLE_AFTER));
        let (mut unable, now) = unable(start);
        let until = unable.able_at();
        unable.broke();
        assert_eq!(unable.able_at(), until);
        assert!(until.is_some_and(|until| until > now));
    }

    /// A watch that fails once an hour stays able.
    #[tokio::test]
    async fn rare_failures_stay_able() {
        let start = Instant::now();
        let mut health = WatchHealth::new();
        for hour in 0..24 {
            assert!(!health.failed(start + seconds(3600 * hour)));
        }
    }

    /// A complete list makes a watch able unless the watch after it is refused.
    #[tokio::test]
    async fn refused_watch_stays_unable() {
        let (mut health, now) = unable(Instant::now());
        health.listing();
        assert_eq!(health.able_at(), None);
        let listed = now + seconds(70);
        health.succeeded(listed);
        assert_eq!(health.able_at(), Some(listed + PROOF));
        let refused = listed + seconds(1);
        assert!(!health.failed(refused));
        assert_eq!(health.able_at(), Some(refused + QUIET));
    }
}
