//! The time that an HAProxy which was started anew is without a part of its servers.

use std::collections::BTreeSet;
use std::time::Duration;

use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::time::Instant;

/// Returns the histogram of repairs: 10 ms to 41 s.
pub(super) fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 13))
}

/// The repairs of an HAProxy.
#[derive(Debug)]
pub(super) struct Repairs {
    durations: Histogram,
    under_way: Mutex<Option<Repair>>,
}

#[derive(Debug)]
struct Repair {
    /// The time at which the new process was met.
    since: Instant,
    /// The ingresses whose servers may be missing.
    left: BTreeSet<Key>,
}

impl Repairs {
    /// Creates the repairs, with a histogram of their durations.
    pub(super) fn new(durations: Histogram) -> Self {
        Self {
            durations,
            under_way: Mutex::default(),
        }
    }

    /// Records that a process was met at `since` which has lost the servers of these ingresses.
    pub(super) fn begin(&self, since: Instant, left: BTreeSet<Key>) {
        let repair = Repair { since, left };
        *self.under_way.lock() = Some(repair).filter(|repair| !repair.left.is_empty());
    }

    /// Records that nothing is missing of the ingress `key`. Returns the duration of the repair that ends with it.
    pub(super) fn done(&self, key: &Key) -> Option<Duration> {
        let mut under_way = self.under_way.lock();
        let repair = under_way.as_mut()?;
        repair.left.remove(key);
        if !repair.left.is_empty() {
            return None;
        }
        let took = repair.since.elapsed();
        *under_way = None;
        self.durations.observe(took.as_secs_f64());
        Some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repair lasts until the last ingress is served, and begins anew with the next process.
    #[tokio::test(start_paused = true)]
    async fn last_ingress_ends_repair() {
        let repairs = Repairs::new(histogram());
        let keys = ["a", "b"].map(|name| Key::new("ns", name));
        let second = Duration::from_secs(1);
        repairs.begin(Instant::now(), keys.clone().into());
        assert_eq!(repairs.done(&keys[0]), None);
        tokio::time::advance(second).await;
        repairs.begin(Instant::now(), keys.clone().into());
        tokio::time::advance(2 * second).await;
        assert_eq!(repairs.done(&keys[1]), None);
        assert_eq!(repairs.done(&Key::new("ns", "other")), None);
        assert_eq!(repairs.done(&keys[0]), Some(2 * second));
        assert_eq!(repairs.done(&keys[0]), None, "none is under way");
        repairs.begin(Instant::now(), BTreeSet::new());
        assert_eq!(repairs.done(&keys[0]), None, "nothing was lost");
    }
}
