//! The changes that wake clusters and remedies.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::{Cluster, Remedy};
use karmada_runtime::alarm;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::wakes::Watch;
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clusters::Clusters;
use crate::index::{Index, Reference};

/// The keys that are due.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// The clusters whose actions may differ.
    pub(crate) clusters: Queue<Key>,
    /// The remedies whose status may differ.
    pub(crate) remedies: Queue<Key>,
}

/// Watches every kind that decides about clusters, and the clock.
pub(crate) fn watch(
    program: &mut Program,
    fleet: &Clusters,
    index: &Arc<Mutex<Index>>,
    queues: &Queues,
) {
    let expiries = Arc::<Notify>::default();
    fleet.watch(program, clusters(index, queues));
    remedies(index, queues, &expiries).start(program, &fleet.client, "remedies");
    let (index, queues) = (Arc::clone(index), queues.clone());
    alarm::spawn(program, "expiries", expiries, move |now| {
        let mut index = index.lock();
        queues.clusters.add_all(index.expire(now));
        queues.remedies.add_all(index.take_concerned());
        index.expiries.next()
    });
}

/// Itself, and those that may be blocked in its place, or because there is one more, be it readable or not. The echo of our
/// own write is a change, too, so that a decision on an older version is made again.
fn clusters(index: &Arc<Mutex<Index>>, queues: &Queues) -> Watch<Index, Cluster> {
    let recounting = queues.clone();
    let recount = move |index: &mut Index, _: &BTreeSet<Key>| {
        recounting.clusters.add_all(index.claim([]));
        recounting.remedies.add_all(index.take_concerned());
    };
    Watch::new(index, |index| &mut index.clusters)
        .wakes(&queues.clusters, Index::follow_cluster)
        .wakes(&queues.remedies, |index, _| index.take_concerned())
        .follows_unread(recount.clone())
        .follows_known(recount)
}

/// Itself, and the clusters of its old and its new scope. While one is unread no cluster's actions are cleared; once it
/// decodes or is gone, any cluster may have waited for that.
fn remedies(
    index: &Arc<Mutex<Index>>,
    queues: &Queues,
    expiries: &Arc<Notify>,
) -> Watch<Index, Remedy, Reference> {
    let expiries = Arc::clone(expiries);
    Watch::new(index, |index| &mut index.remedies)
        .follows(move |index, change| {
            let (remedy, new) = (&change.key.name, change.new.as_deref());
            index.expiries.replace(remedy, new);
            expiries.notify_one();
        })
        .wakes(&queues.remedies, |_, change| [change.key.clone()])
        .wakes(&queues.clusters, Index::follow_remedy)
        .wakes_when_known(&queues.clusters, |index, _| index.every_cluster())
        .wakes(&queues.remedies, |index, _| index.take_concerned())
        .wakes_when_known(&queues.remedies, |index, _| index.take_concerned())
}

#[cfg(test)]
pub(crate) mod tests;
