//! The watched objects, looked up by cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::{Cluster, Condition, Key, Remedy};
use karmada_rules::remedy::RemedyIndex;
use karmada_runtime::cache::{Cache, Undecoded};

/// The watched objects and what depends on their history.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) clusters: Cache<Cluster>,
    pub(crate) remedies: Cache<Remedy>,
    pub(crate) by_cluster: RemedyIndex,
    /// Clusters whose last decision was a write that the watch may not have shown yet. If another
    /// writer undoes that write unseen, a later version looks like this one (karmada#7776), so every
    /// event wakes such a cluster.
    pub(crate) unsettled: BTreeSet<Key>,
    /// Conditions of ours whose status changed since the cluster was last reconciled.
    pub(crate) changed: BTreeMap<Key, BTreeMap<&'static str, Condition>>,
}

/// Everything that decides about one cluster, at one instant.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) cluster: Arc<Cluster>,
    /// The remedies whose scope covers the cluster.
    pub(crate) remedies: Vec<Arc<Remedy>>,
    /// Set if every remedy decoded.
    pub(crate) complete: bool,
    /// Conditions of ours whose status changed since the last snapshot.
    pub(crate) changed: Vec<Condition>,
}

impl Index {
    /// Returns the keys of all clusters.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.clusters.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Returns a snapshot of the cluster `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&mut self, key: &Key) -> Option<Snapshot> {
        let changed = self.changed.remove(key).unwrap_or_default();
        let cluster = Arc::clone(self.clusters.get(key)?);
        let remedies = self
            .by_cluster
            .covering(&key.name)
            .filter_map(|name| self.remedies.get(&Key::cluster_scoped(name)))
            .map(Arc::clone)
            .collect();
        Some(Snapshot {
            cluster,
            remedies,
            complete: self.remedies.unread().is_empty(),
            changed: changed.into_values().collect(),
        })
    }

    /// Returns the number of objects of each kind whose newest version does not decode.
    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        vec![
            ("Cluster", self.clusters.undecoded()),
            ("Remedy", self.remedies.undecoded()),
        ]
    }
}
