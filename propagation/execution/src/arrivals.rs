//! The edits of Works that are not applied yet, and how long each takes.

use std::collections::BTreeMap;
use std::time::Duration;

use karmada_api::Work;
use karmada_runtime::cache::Transition;
use karmada_runtime::metrics::Registry;
use kube::Resource;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;
use propagation_rules::execution::Progress;
use tokio::time::Instant;

use crate::stored::StoredWork;

/// The edits that have arrived and are not applied, by Work.
#[derive(Debug)]
pub(crate) struct Arrivals {
    waiting: Mutex<BTreeMap<Key, Arrival>>,
    delay: Histogram,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// The generation of the newest edit.
    generation: Option<i64>,
    /// The moment at which the first of them was received.
    at: Instant,
}

impl Arrivals {
    /// Registers `propagation_delay_seconds`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            waiting: Mutex::default(),
            delay: registry.register_with_unit(
                "propagation_delay",
                "Time from receiving an edit of a Work to the end of the write that applies it in the member",
                Unit::Seconds,
                // 10 ms to 5 minutes: a member that cannot be reached is another metric's concern.
                Histogram::new(exponential_buckets(0.01, 2.0, 16)),
            ),
        }
    }

    /// Takes in a change of a Work.
    pub(crate) fn observe(&self, change: &Transition<StoredWork>) {
        let mut waiting = self.waiting.lock();
        let Some(work) = unapplied(change) else {
            waiting.remove(&change.key);
            return;
        };
        let generation = work.meta().generation;
        waiting
            .entry(change.key.clone())
            .and_modify(|arrival| arrival.generation = generation)
            .or_insert_with(|| Arrival {
                generation,
                at: Instant::now(),
            });
    }

    /// Notes that a Work is applied, and measures the time if that took a write. An edit that has arrived meanwhile waits
    /// on, from the moment of the first.
    pub(crate) fn applied(&self, work: &Work, is_written: bool) {
        let key = Key::of(work);
        let mut waiting = self.waiting.lock();
        let Some(arrival) = waiting.get(&key).copied() else {
            return;
        };
        if arrival.generation != work.metadata.generation {
            return;
        }
        waiting.remove(&key);
        if is_written {
            self.delay.observe(arrival.at.elapsed().as_secs_f64());
        }
    }

    /// Returns for how long an edit of a Work has waited.
    pub(crate) fn age(&self, key: &Key) -> Option<Duration> {
        let waiting = self.waiting.lock();
        waiting.get(key).map(|arrival| arrival.at.elapsed())
    }
}

/// Returns the Work if it is to be applied.
fn unapplied(change: &Transition<StoredWork>) -> Option<&StoredWork> {
    let work = change.new.as_deref()?;
    (work.summary.progress == Progress::Unapplied).then_some(work)
}
