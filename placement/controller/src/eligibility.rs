//! Looks at a cluster whenever it changes, or may have changed by itself: an agent that is not heard of sends nothing.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::Key;
use placement_rules::pick::{ClusterChange, wakes};
use placement_rules::snapshot::latest_policy;

use crate::index::Index;
use crate::shared::SharedIndex;

/// Looks at clusters, and writes nothing.
pub(crate) struct Judge {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Judge {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| index.fleet.keys())
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let (now, queues) = ((self.clock)(), &self.index.queues);
        let judgement = self.index.change(|index| index.fleet.judge(&key.name, now));
        if judgement.change.is_some() || judgement.is_gone {
            queues.profiles.add(key.clone());
            self.index
                .read(|index| self.wake_placed(index, &key.name, judgement.change));
        }
        if let Some(at) = judgement.until {
            queues.fleet.add_at_time(key.clone(), at, now);
        }
        Ok(())
    }
}

impl Judge {
    /// Wakes the placements on a cluster, and those that may be after this change of it.
    fn wake_placed(&self, index: &Index, cluster: &str, change: Option<ClusterChange>) {
        let queues = &self.index.queues;
        let placed = index.placements_on(cluster);
        if let Some(change) = change {
            let scheduled = index.placements.keys().filter(|key| {
                let policies = index.policies.of(key);
                let policies: Vec<_> = policies.iter().map(|policy| &**policy).collect();
                latest_policy(&policies)
                    .is_some_and(|policy| wakes(policy, placed.contains(*key), change))
            });
            queues.schedule.add_all(scheduled.cloned());
        }
        queues.works.add_all(index.bindings_on(cluster));
        queues.rollout.add_all(placed.iter().cloned());
        let runs = index.runs.open_keys(placed.iter().cloned());
        queues.updates.add_all(runs);
        queues.wake_status(index, placed);
    }
}
