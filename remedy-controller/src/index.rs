//! The watched objects, looked up by cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::{Cluster, Condition, Key, Remedy};
use karmada_rules::remedy::{BlockBound, Claim, MaxBlocked, OverBound, RemedyIndex};
use karmada_runtime::cache::{Cache, Undecoded};

/// The watched objects and what depends on their history.
#[derive(Debug)]
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
    /// The clusters that conditions block or would block. The whole fleet decides about each of them, so
    /// it is kept with the objects and changes with them, before any cluster is woken.
    pub(crate) bound: BlockBound,
    /// The clusters over the bound whose Event has been recorded.
    pub(crate) noted_over_bound: BTreeSet<Key>,
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
    /// Set if the bound keeps the cluster unblocked although a condition requires a block.
    pub(crate) over_bound: Option<OverBound>,
}

impl Index {
    pub(crate) fn new(max_blocked: MaxBlocked) -> Self {
        Self {
            clusters: Cache::default(),
            remedies: Cache::default(),
            by_cluster: RemedyIndex::default(),
            unsettled: BTreeSet::new(),
            changed: BTreeMap::new(),
            bound: BlockBound::new(max_blocked),
            noted_over_bound: BTreeSet::new(),
        }
    }

    /// Updates what `clusters` claim of the bound, and returns those that are admitted thereby.
    pub(crate) fn claim<'a>(&mut self, clusters: impl IntoIterator<Item = &'a Key>) -> Vec<Key> {
        for key in clusters {
            let claim = self.clusters.get(key).map_or(Claim::None, |cluster| {
                Claim::of(cluster, self.covering(key).map(|remedy| &**remedy))
            });
            self.bound.replace(&key.name, claim);
        }
        self.bound.set_clusters(self.clusters.existing());
        self.admit()
    }

    /// Admits clusters to being blocked and returns them.
    pub(crate) fn admit(&mut self) -> Vec<Key> {
        let admitted = self.bound.admit();
        admitted.into_iter().map(Key::cluster_scoped).collect()
    }

    /// Iterates over the remedies whose scope covers the cluster `key`.
    fn covering(&self, key: &Key) -> impl Iterator<Item = &Arc<Remedy>> {
        self.by_cluster
            .covering(&key.name)
            .filter_map(|name| self.remedies.get(&Key::cluster_scoped(name)))
    }

    /// Returns the keys of all clusters.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.clusters.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Returns a snapshot of the cluster `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&mut self, key: &Key) -> Option<Snapshot> {
        let changed = self.changed.remove(key).unwrap_or_default();
        let cluster = Arc::clone(self.clusters.get(key)?);
        let remedies = self.covering(key).map(Arc::clone).collect();
        Some(Snapshot {
            cluster,
            remedies,
            complete: self.remedies.unread().is_empty(),
            changed: changed.into_values().collect(),
            over_bound: self.bound.over(&key.name),
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
