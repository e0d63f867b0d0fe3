//! The Works and clusters, and the queues of the Works that wait for a sync.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apply::{KindCounts, Wake};
use jiff::Timestamp;
use karmada_api::{ClusterView, Work, cluster_of_execution_namespace, execution_namespace};
use karmada_runtime::cache::Transition;
use karmada_runtime::members::MemberQueues;
use karmada_runtime::store::Store;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use propagation_rules::execution::{Block, Progress, ServiceSlice};

use crate::arrivals::Arrivals;
use crate::imports::{BlockedSlices, Imports, Known};
use crate::stored::StoredWork;

/// The least time between two syncs of a Work after changes of its status, or its objects' status, alone.
const PACE: Duration = Duration::from_secs(1);

/// The Works and clusters behind a lock, and the queues of the Works that are woken.
#[derive(Debug)]
pub(crate) struct Works {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queues: MemberQueues<Key>,
    /// The edits that are not applied yet.
    pub(crate) arrivals: Arrivals,
}

/// The Works and clusters.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) works: Store<StoredWork>,
    pub(crate) clusters: Store<ClusterView>,
    /// The kinds of manifests, by cluster.
    kinds: BTreeMap<String, KindCounts>,
    /// Absent if no slices are withheld.
    pub(crate) imports: Option<Imports>,
}

/// How far the Works of one member have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberProgress {
    /// The number of Works by their progress.
    pub(crate) works: BTreeMap<Progress, usize>,
    /// The time for which the oldest one that is not applied has waited.
    pub(crate) oldest_unapplied: Duration,
}

impl Works {
    pub(crate) fn new(queues: MemberQueues<Key>, arrivals: Arrivals) -> Self {
        Self {
            index: Arc::default(),
            queues,
            arrivals,
        }
    }

    /// Wakes every Work of a cluster.
    pub(crate) fn wake(&self, cluster: &str) {
        let keys = self.index.lock().keys_in(cluster);
        self.wake_all(keys);
    }

    /// Wakes every Work whose manifests are of kinds that meet the condition.
    pub(crate) fn wake_where(&self, is_concerned: impl Fn(&BTreeSet<GroupVersionKind>) -> bool) {
        let index = self.index.lock();
        let works = index.works.iter();
        let concerned = works.filter(|(_, work)| is_concerned(&work.summary.kinds));
        self.wake_all(concerned.map(|(key, _)| key.clone()));
    }

    /// Wakes these Works.
    pub(crate) fn wake_all(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if let Some(cluster) = cluster_of_execution_namespace(&key.namespace) {
                let queue = self.queues.of(cluster);
                queue.add(key);
            }
        }
    }

    /// Changes the facts that decide about slices, wakes the Works that `change` returns, and returns the moment at which the next
    /// Remedy expires.
    pub(crate) fn change_imports(
        &self,
        change: impl FnOnce(&mut Imports) -> BTreeSet<Key>,
    ) -> Option<Timestamp> {
        let mut index = self.index.lock();
        let imports = index.imports.as_mut()?;
        self.wake_all(change(imports));
        imports.next_expiry()
    }

    /// Wakes a Work of a cluster after a change of it or of its objects.
    pub(crate) fn wake_one(&self, cluster: &str, wake: Wake) {
        let queue = self.queues.of(cluster);
        match wake {
            Wake::Now(key) => queue.add(key),
            Wake::Paced(key) => queue.add_paced(key, PACE),
        }
    }

    /// Drops the queue of a cluster that is gone, with all of its Works.
    pub(crate) fn retire(&self, index: &Index, cluster: &str) {
        let key = Key::cluster_scoped(cluster);
        if index.clusters.get(&key).is_none() && index.keys_in(cluster).is_empty() {
            self.queues.remove(cluster);
        }
    }
}

impl Index {
    /// Returns the keys of all Works with their clusters.
    pub(crate) fn keys(&self) -> Vec<(String, Key)> {
        let of_clusters = self.works.keys().filter_map(|key| {
            let cluster = cluster_of_execution_namespace(&key.namespace)?;
            Some((cluster.to_owned(), key.clone()))
        });
        of_clusters.collect()
    }

    /// Returns the keys of the Works of a cluster.
    pub(crate) fn keys_in(&self, cluster: &str) -> Vec<Key> {
        let namespace = execution_namespace(cluster);
        let keys = self.works.keys();
        keys.filter(|key| key.namespace == namespace)
            .cloned()
            .collect()
    }

    /// Returns the Work `key`.
    pub(crate) fn work(&self, key: &Key) -> Option<Arc<StoredWork>> {
        self.works.get(key).cloned()
    }

    /// Returns the cluster `name`, and `None` if it does not exist or was never readable.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<ClusterView>> {
        self.clusters.get(&Key::cluster_scoped(name)).cloned()
    }

    /// Returns `true` if there is no such cluster.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        !self.clusters.exists(&Key::cluster_scoped(name))
    }

    /// Returns `true` if a Work of a cluster could never be read.
    pub(crate) fn has_unread_works(&self, cluster: &str) -> bool {
        let namespace = execution_namespace(cluster);
        let mut unread = self.works.unread().iter();
        unread.any(|key| key.namespace == namespace)
    }

    /// Returns the effects of the blocks of clusters on the manifests of a Work of a cluster, in their order.
    pub(crate) fn blocks(&self, cluster: &str, work: &Work) -> Vec<Option<Block>> {
        let imports = self.imports.as_ref().filter(|_| !work.is_suspended());
        let manifests = work.spec.workload.manifests.iter();
        let blocks = manifests.map(|manifest| {
            let imports = imports?;
            let slice = ServiceSlice::of(manifest)?;
            let blocks = imports.blocks(cluster, &slice.service, self.known());
            blocks.block(&slice)
        });
        blocks.collect()
    }

    /// Returns `true` if a Work brings slices of other clusters, which may be withheld.
    pub(crate) fn brings_slices(&self, work: &Key) -> bool {
        let work = self.works.get(work).filter(|_| self.imports.is_some());
        let mut slices = work.iter().flat_map(|work| work.summary.slices.iter());
        slices.any(|slice| slice.source.is_some())
    }

    /// Returns the numbers of slices of blocked clusters, by member; none if no slices are withheld.
    pub(crate) fn blocked_slices(&self) -> BTreeMap<String, BlockedSlices> {
        let imports = self.imports.as_ref();
        imports
            .map(|imports| imports.counts(self.known()))
            .unwrap_or_default()
    }

    /// Returns the facts on which a decision about slices depends.
    fn known(&self) -> Known<'_> {
        Known {
            works: &self.works,
            clusters: &self.clusters,
        }
    }

    /// Returns the kinds of a cluster's manifests.
    pub(crate) fn kinds(&self, cluster: &str) -> BTreeSet<GroupVersionKind> {
        let kinds = self.kinds.get(cluster);
        kinds.map(KindCounts::kinds).unwrap_or_default()
    }

    /// Counts the kinds of a Work, and returns `true` if its cluster has another set of them now.
    pub(crate) fn count_kinds(&mut self, cluster: &str, change: &Transition<StoredWork>) -> bool {
        let [old, new] = [&change.old, &change.new].map(|work| {
            let work = work.as_ref();
            work.map(|work| work.summary.kinds.clone())
                .unwrap_or_default()
        });
        let kinds = self.kinds.entry(cluster.to_owned()).or_default();
        let changed = kinds.change(&old, &new);
        if kinds.is_empty() {
            self.kinds.remove(cluster);
        }
        changed
    }

    /// Returns the number of suspended Works.
    pub(crate) fn suspended(&self) -> usize {
        let works = self.works.iter();
        works.filter(|(_, work)| work.summary.suspended).count()
    }

    /// Returns how far the Works of each member have come at `now`.
    pub(crate) fn progress(
        &self,
        arrivals: &Arrivals,
        now: Timestamp,
    ) -> BTreeMap<String, MemberProgress> {
        let mut all: BTreeMap<&str, MemberProgress> = BTreeMap::new();
        for (key, work) in self.works.iter() {
            let Some(cluster) = cluster_of_execution_namespace(&key.namespace) else {
                continue;
            };
            let of_member = all.entry(cluster).or_default();
            let summary = &work.summary;
            *of_member.works.entry(summary.progress).or_default() += 1;
            if summary.progress == Progress::Unapplied {
                let said = summary
                    .unapplied_since
                    .map(|since| now.duration_since(since));
                let said = said.and_then(|age| Duration::try_from(age).ok());
                let age = said.or_else(|| arrivals.age(key)).unwrap_or_default();
                of_member.oldest_unapplied = of_member.oldest_unapplied.max(age);
            }
        }
        all.into_iter()
            .map(|(cluster, of_member)| (cluster.to_owned(), of_member))
            .collect()
    }
}
