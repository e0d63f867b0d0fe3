//! The Works and clusters, and the queues of the Works that wait for a sync.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apply::{KindCounts, Wake};
use jiff::Timestamp;
use karmada_api::{ClusterView, cluster_of_execution_namespace, execution_namespace};
use karmada_runtime::cache::Transition;
use karmada_runtime::members::MemberQueues;
use karmada_runtime::store::Store;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use propagation_rules::execution::Progress;

use crate::arrivals::Arrivals;
use crate::stored::StoredWork;

/// The least time between two syncs of a Work of whose objects, or of which itself, only the status changes.
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
        self.wake_all(cluster, keys);
    }

    /// Wakes these Works of a cluster.
    pub(crate) fn wake_all(&self, cluster: &str, keys: Vec<Key>) {
        if !keys.is_empty() {
            self.queues.of(cluster).add_all(keys);
        }
    }

    /// Wakes every Work whose manifests are of kinds that meet the condition.
    pub(crate) fn wake_where(&self, is_concerned: impl Fn(&BTreeSet<GroupVersionKind>) -> bool) {
        let index = self.index.lock();
        for (key, work) in index.works.iter() {
            if is_concerned(&work.summary.kinds)
                && let Some(cluster) = cluster_of_execution_namespace(&key.namespace)
            {
                self.queues.of(cluster).add(key.clone());
            }
        }
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
        let owned = |(cluster, progress): (&str, _)| (cluster.to_owned(), progress);
        all.into_iter().map(owned).collect()
    }
}
