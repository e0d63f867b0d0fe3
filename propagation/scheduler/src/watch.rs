//! The changes that wake a binding.

use std::sync::Arc;

use karmada_api::{ClusterResourceBinding, ClusterView, ResourceBinding};
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::wakes::Watch;
use kube::Client;
use objects::Key;
use parking_lot::Mutex;

use crate::groups::Group;
use crate::index::Index;

/// Watches every kind that decides about bindings.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
) {
    clusters(index, queue).start(program, client, "clusters");
    bindings(index, queue).start(program, client, "resourcebindings");
    cluster_bindings(index, queue).start(program, client, "clusterresourcebindings");
}

/// Those that have a cluster or may get it. While one cannot be read nothing is taken away on its account, from any.
pub(crate) fn clusters(index: &Arc<Mutex<Index>>, queue: &Queue<Key>) -> Watch<Index, ClusterView> {
    Watch::new(index, |index| &mut index.clusters)
        .wakes(queue, Index::concerned_by)
        .wakes_when_known(queue, |index, _| index.keys())
}

/// Itself, those that wait for room which was promised to it, and the others of its groups that wait for clusters that it left.
/// The echo of our own write is a change, too, so that a decision on an older version is made again.
pub(crate) fn bindings(
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
) -> Watch<Index, ResourceBinding, Group> {
    let ranked = queue.clone();
    Watch::new(index, |index| &mut index.bindings)
        .follows(move |index, change| ranked.rank_all(index.priority(change)))
        .wakes(queue, Index::follow)
        .wakes(queue, |index, change| index.left_beside(change))
}

/// Itself, and those that wait for room which was promised to it.
pub(crate) fn cluster_bindings(
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
) -> Watch<Index, ClusterResourceBinding> {
    Watch::new(index, |index| &mut index.cluster_bindings).wakes(queue, Index::follow)
}
