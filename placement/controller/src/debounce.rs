//! Changes that are taken together: a burst ends when nothing has changed for a while, or has gone on for long enough.

use std::collections::BTreeMap;
use std::time::Duration;

use objects::Key;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time after a burst in which its changes are surely looked at.
const GRACE: Duration = Duration::from_secs(5);

/// The bursts of changes that go on, and the times at which they end.
#[derive(Debug)]
pub(crate) struct Debounce {
    /// The time without a change after which a burst is over.
    quiet: Duration,
    /// The longest that a burst lasts.
    longest: Duration,
    going_on: Mutex<BTreeMap<Key, Burst>>,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Debounce {
    pub(crate) fn new(quiet: Duration, longest: Duration) -> Self {
        Self {
            quiet,
            longest,
            going_on: Mutex::default(),
        }
    }

    /// Notes a change, and returns the end of its burst if it begins one.
    pub(crate) fn note(&self, key: &Key) -> Option<Instant> {
        let now = Instant::now();
        let mut bursts = self.going_on.lock();
        if let Some(burst) = bursts.get_mut(key) {
            burst.last = now;
            return None;
        }
        let burst = Burst {
            first: now,
            last: now,
        };
        bursts.insert(key.clone(), burst);
        Some(self.end(burst))
    }

    /// Returns the end of the burst that goes on.
    pub(crate) fn open(&self, key: &Key) -> Option<Instant> {
        let burst = self.going_on.lock().get(key).copied()?;
        Some(self.end(burst)).filter(|end| Instant::now() < *end)
    }

    /// Returns the time until which somebody is about to look at the changes of a burst.
    pub(crate) fn pending(&self, key: &Key) -> Option<Instant> {
        let burst = self.going_on.lock().get(key).copied()?;
        Some(self.end(burst) + GRACE).filter(|until| Instant::now() < *until)
    }

    /// Forgets the burst: its changes are being looked at.
    pub(crate) fn close(&self, key: &Key) {
        self.going_on.lock().remove(key);
    }

    fn end(&self, burst: Burst) -> Instant {
        (burst.last + self.quiet).min(burst.first + self.longest)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// A burst of changes ends 200 ms after the last of them, and a lasting one after a second.
    #[tokio::test(start_paused = true)]
    async fn bursts_end() {
        let ms = Duration::from_millis;
        let debounce = Debounce::new(ms(200), ms(1000));
        let key = Key::cluster_scoped("web");
        let start = Instant::now();
        assert_eq!(debounce.note(&key), Some(start + ms(200)));
        advance(ms(150)).await;
        assert_eq!(debounce.note(&key), None);
        assert_eq!(debounce.open(&key), Some(start + ms(350)));
        for _ in 0..6 {
            advance(ms(150)).await;
            debounce.note(&key);
        }
        assert_eq!(debounce.open(&key), None);
        debounce.close(&key);
        assert_eq!(debounce.note(&key), Some(Instant::now() + ms(200)));
    }

    #[tokio::test(start_paused = true)]
    async fn zero_waits_for_nothing() {
        let debounce = Debounce::new(Duration::ZERO, Duration::ZERO);
        let key = Key::cluster_scoped("web");
        assert_eq!(debounce.note(&key), Some(Instant::now()));
        assert_eq!(debounce.open(&key), None);
    }
}
