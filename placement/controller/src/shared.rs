//! The parts that the loops share: the watched objects, and the queues of the keys that their changes wake.

use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::dynamic::DynamicWatches;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::queue::Queue;
use objects::Key;
use parking_lot::Mutex;

use crate::args::Args;
use crate::debounce::Debounce;
use crate::index::Index;
use crate::inventory::HubObjects;
use crate::topics::{BINDINGS, MEMBERS, OVERRIDES, PROFILES, RUNS, SNAPSHOTS, STATUSES, WORKS};

/// The least time between two writes of the status of a placement on its way: that it is complete waits for nothing.
const PACE: Duration = Duration::from_secs(1);
/// The time that each cluster adds to that: such a write is as long as all of them together, and takes the API server as long.
const PACE_OF_CLUSTER: Duration = Duration::from_millis(30);

/// The queues of the loops. Those of `works` are the keys of bindings, of `fleet`, `membership` and `profiles` of clusters, of
/// `overrides` of overrides, of `updates` of runs, and the others of placements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) membership: Queue<Key>,
    pub(crate) profiles: Queue<Key>,
    pub(crate) fleet: Queue<Key>,
    pub(crate) snapshots: Queue<Key>,
    pub(crate) overrides: Queue<Key>,
    pub(crate) schedule: Queue<Key>,
    pub(crate) rollout: Queue<Key>,
    pub(crate) updates: Queue<Key>,
    pub(crate) works: Queue<Key>,
    pub(crate) evictions: Queue<Key>,
    pub(crate) status: Queue<Key>,
}

/// The index behind a lock, the objects that may be placed, and the queues of the keys that their changes wake.
pub(crate) struct SharedIndex {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) hub: HubObjects,
    pub(crate) debounce: Debounce,
    pub(crate) queues: Queues,
}

impl Queues {
    /// Wakes the status of placements on their way, at most once a second, and less often for many clusters.
    pub(crate) fn wake_status(&self, index: &Index, placements: impl IntoIterator<Item = Key>) {
        for placement in placements {
            let clusters = u32::try_from(index.count_bindings(&placement)).unwrap_or(u32::MAX);
            let pace = PACE + PACE_OF_CLUSTER.saturating_mul(clusters);
            self.status.add_paced(placement, pace);
        }
    }

    /// Has the queues take the keys that they hold back once the watches have shown our writes.
    fn resume_held(&self, expectations: &Expectations) {
        for (topic, queue) in [
            (MEMBERS, &self.membership),
            (PROFILES, &self.profiles),
            (SNAPSHOTS, &self.snapshots),
            (OVERRIDES, &self.overrides),
            (BINDINGS, &self.schedule),
            (BINDINGS, &self.rollout),
            (BINDINGS, &self.snapshots),
            (WORKS, &self.works),
            (STATUSES, &self.status),
            (RUNS, &self.updates),
        ] {
            expectations.add_queue(topic, queue);
        }
    }
}

impl SharedIndex {
    /// Creates an index without objects; `watches` are those of the objects that may be placed.
    pub(crate) fn new(args: &Args, watches: DynamicWatches) -> Self {
        let (index, queues) = (Index::new(args.waits.heartbeat_timeout), Queues::default());
        queues.resume_held(&index.expectations);
        let selection = &args.selection;
        Self {
            index: Arc::new(Mutex::new(index)),
            hub: HubObjects::new(watches),
            debounce: Debounce::new(selection.snapshot_quiet, selection.snapshot_interval),
            queues,
        }
    }

    /// Reads from the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
    }

    /// Changes the index.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        change(&mut self.index.lock())
    }

    /// Returns our writes that the watches have not shown yet.
    pub(crate) fn expectations(&self) -> Expectations {
        self.read(|index| index.expectations.clone())
    }

    /// Wakes the status of a placement, as [`Queues::wake_status`] does.
    pub(crate) fn wake_status(&self, placement: Key) {
        self.read(|index| self.queues.wake_status(index, [placement]));
    }
}
