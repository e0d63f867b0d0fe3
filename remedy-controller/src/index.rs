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
    /// Set unless a term has begun and no read has shown yet which blocks the former leader has set.
    pub(crate) is_surveyed: bool,
    /// Blocked clusters as that read showed them, until the watch shows them too.
    ahead: BTreeMap<Key, Arc<Cluster>>,
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
            is_surveyed: true,
            ahead: BTreeMap::new(),
            noted_over_bound: BTreeSet::new(),
        }
    }

    /// Begins a term of leadership. Another leader may have set blocks that this replica admitted others
    /// for, and some of which its watch has not shown.
    pub(crate) fn begin_term(&mut self) {
        self.changed.clear();
        self.is_surveyed = false;
        self.ahead.clear();
        self.bound.restart();
        self.admit();
        self.noted_over_bound.clear();
    }

    /// Returns `true` if a read must show which clusters are blocked before another one is.
    pub(crate) fn needs_survey(&self) -> bool {
        !self.is_surveyed && self.bound.binds()
    }

    /// Takes in the clusters that a read showed to be blocked, and returns those that are admitted now.
    pub(crate) fn surveyed(&mut self, blocked: Vec<Cluster>) -> Vec<Key> {
        self.is_surveyed = true;
        let blocked = blocked
            .into_iter()
            .map(|cluster| (Key::of(&cluster), Arc::new(cluster)));
        self.ahead = blocked.collect();
        let keys: Vec<Key> = self.ahead.keys().cloned().collect();
        self.claim(&keys)
    }

    /// Returns `true` if a read showed a block of the cluster `key` that the watch has not shown.
    pub(crate) fn is_ahead(&self, key: &Key) -> bool {
        self.ahead.contains_key(key)
    }

    /// Returns the newest known version of the cluster `key`.
    fn newest(&mut self, key: &Key) -> Option<Arc<Cluster>> {
        let seen = self.clusters.get(key).map(Arc::clone);
        if let Some(ahead) = self.ahead.get(key) {
            if seen.as_deref().is_some_and(|seen| !is_as_new(seen, ahead)) {
                return Some(Arc::clone(ahead));
            }
            self.ahead.remove(key);
        }
        seen
    }

    /// Updates what `clusters` claim of the bound, and returns those that are admitted thereby.
    pub(crate) fn claim<'a>(&mut self, clusters: impl IntoIterator<Item = &'a Key>) -> Vec<Key> {
        for key in clusters {
            let claim = self.newest(key).map_or(Claim::None, |cluster| {
                Claim::of(&cluster, self.covering(key).map(|remedy| &**remedy))
            });
            self.bound.replace(&key.name, claim);
        }
        self.bound.set_clusters(self.clusters.existing());
        self.admit()
    }

    /// Admits clusters to being blocked and returns them.
    fn admit(&mut self) -> Vec<Key> {
        if self.needs_survey() {
            return Vec::new();
        }
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

/// Returns `true` if `seen` is at least as new as `other`. Resource versions of one kind compare as numbers
/// (Kubernetes API concepts, "Resource versions"); if one is no number, what the watch shows counts.
fn is_as_new(seen: &Cluster, other: &Cluster) -> bool {
    let version = |cluster: &Cluster| {
        cluster
            .metadata
            .resource_version
            .as_ref()?
            .parse::<u128>()
            .ok()
    };
    match (version(seen), version(other)) {
        (Some(seen), Some(other)) => seen >= other,
        _ => true,
    }
}
