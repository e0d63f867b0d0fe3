//! The Works and clusters, and the queues of the Works that wait for a sync.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apply::{KindCounts, Wake};
use jiff::Timestamp;
use karmada_api::{ClusterView, cluster_of_execution_namespace, execution_namespace};
use karmada_rules::execution::Progress;
use karmada_rules::ingress::Cached;
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::members::MemberQueues;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::write::{ObjectRef, Write};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;

use crate::arrivals::Arrivals;
use crate::stored::StoredWork;

/// The least time between two syncs of a Work of whose objects, or of which itself, only the status changes.
const PACE: Duration = Duration::from_secs(1);

/// The Works and clusters behind a lock, and the queues of the Works that their changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queues: MemberQueues<Key>,
    /// The edits that are not applied yet.
    pub(crate) arrivals: Arrivals,
}

#[derive(Debug, Default)]
struct Index {
    works: Cache<StoredWork>,
    clusters: Cache<ClusterView>,
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

/// The changes that one event has brought to the Works.
pub(crate) struct WorkChanges {
    /// Each Work of a cluster that has changed, with the cluster.
    pub(crate) works: Vec<(String, Transition<StoredWork>)>,
    /// The clusters whose manifests are of other kinds now.
    pub(crate) other_kinds: BTreeSet<String>,
    /// The clusters of Works that could not be read, and are gone or mended.
    pub(crate) unread_gone: BTreeSet<String>,
}

impl SharedIndex {
    pub(crate) fn new(queues: MemberQueues<Key>, arrivals: Arrivals) -> Self {
        Self {
            index: Mutex::default(),
            queues,
            arrivals,
        }
    }

    /// Takes in an event of the Works.
    pub(crate) fn observe_works(&self, event: Event<Decoded<StoredWork>>) -> WorkChanges {
        let mut changes = WorkChanges {
            works: Vec::new(),
            other_kinds: BTreeSet::new(),
            unread_gone: BTreeSet::new(),
        };
        let mut index = self.index.lock();
        let unread = index.works.unread().clone();
        let works = index.works.observe(event);
        for key in unread.difference(index.works.unread()) {
            let cluster = cluster_of_execution_namespace(&key.namespace);
            changes.unread_gone.extend(cluster.map(ToOwned::to_owned));
        }
        for change in works {
            self.arrivals.observe(&change);
            let Some(cluster) = cluster_of_execution_namespace(&change.key.namespace) else {
                continue;
            };
            if index.count_kinds(cluster, &change) {
                changes.other_kinds.insert(cluster.to_owned());
            }
            changes.works.push((cluster.to_owned(), change));
        }
        changes
    }

    /// Takes in what was written to a Work: a report on an older version would only conflict.
    pub(crate) fn written(&self, write: &Write, stored: &ObjectRef) {
        self.index.lock().works.written(write, stored);
    }

    /// Takes in an event of the clusters.
    pub(crate) fn observe_clusters(
        &self,
        event: Event<Decoded<ClusterView>>,
    ) -> Vec<Transition<ClusterView>> {
        self.index.lock().clusters.observe(event)
    }

    /// Returns the keys of all Works with their clusters.
    pub(crate) fn keys(&self) -> Vec<(String, Key)> {
        let index = self.index.lock();
        let works = index.works.iter();
        let of_clusters = works.filter_map(|(key, _)| {
            let cluster = cluster_of_execution_namespace(&key.namespace)?;
            Some((cluster.to_owned(), key.clone()))
        });
        of_clusters.collect()
    }

    /// Returns the Work `key`.
    pub(crate) fn work(&self, key: &Key) -> Option<Arc<StoredWork>> {
        self.index.lock().works.get(key).map(Arc::clone)
    }

    /// Returns the cluster `name`, and `None` if it does not exist or was never readable.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<ClusterView>> {
        let key = Key::cluster_scoped(name);
        self.index.lock().clusters.get(&key).map(Arc::clone)
    }

    /// Returns `true` if there is no such cluster.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        let key = Key::cluster_scoped(name);
        let index = self.index.lock();
        index.clusters.get(&key).is_none() && !index.clusters.unread().contains(&key)
    }

    /// Returns the cluster `name` as far as it is known.
    pub(crate) fn cached_cluster(&self, name: &str) -> Cached<Arc<ClusterView>> {
        match self.cluster(name) {
            Some(cluster) => Cached::Present(cluster),
            None if self.is_gone(name) => Cached::Absent,
            None => Cached::Unread,
        }
    }

    /// Returns `true` if a Work of a cluster could never be read.
    pub(crate) fn has_unread_works(&self, cluster: &str) -> bool {
        let namespace = execution_namespace(cluster);
        let index = self.index.lock();
        let mut unread = index.works.unread().iter();
        unread.any(|key| key.namespace == namespace)
    }

    /// Returns the kinds of a cluster's manifests.
    pub(crate) fn kinds(&self, cluster: &str) -> BTreeSet<GroupVersionKind> {
        let index = self.index.lock();
        let kinds = index.kinds.get(cluster);
        kinds.map(KindCounts::kinds).unwrap_or_default()
    }

    /// Returns the number of suspended Works.
    pub(crate) fn suspended(&self) -> usize {
        let index = self.index.lock();
        index
            .works
            .iter()
            .filter(|(_, work)| work.summary.suspended)
            .count()
    }

    /// Returns how far the Works of each member have come at `now`.
    pub(crate) fn progress(&self, now: Timestamp) -> BTreeMap<String, MemberProgress> {
        let index = self.index.lock();
        let mut all: BTreeMap<&str, MemberProgress> = BTreeMap::new();
        for (key, work) in index.works.iter() {
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
                let age = said.or_else(|| self.arrivals.age(key)).unwrap_or_default();
                of_member.oldest_unapplied = of_member.oldest_unapplied.max(age);
            }
        }
        let owned = |(cluster, progress): (&str, _)| (cluster.to_owned(), progress);
        all.into_iter().map(owned).collect()
    }

    /// Ends the pause of a cluster that was not reached.
    pub(crate) fn hurry(&self, cluster: &str) {
        self.queues.hurry(cluster);
    }

    /// Wakes every Work of a cluster.
    pub(crate) fn wake(&self, cluster: &str) {
        let namespace = execution_namespace(cluster);
        let index = self.index.lock();
        let keys = index.works.iter().map(|(key, _)| key);
        let keys: Vec<_> = keys
            .filter(|key| key.namespace == namespace)
            .cloned()
            .collect();
        drop(index);
        if !keys.is_empty() {
            self.queues.of(cluster).add_all(keys);
        }
    }

    /// Wakes every Work whose manifests are of kinds that meet the condition.
    pub(crate) fn wake_where(&self, is_concerned: impl Fn(&BTreeSet<GroupVersionKind>) -> bool) {
        let index = self.index.lock();
        let works = index.works.iter();
        let concerned = works.filter(|(_, work)| is_concerned(&work.summary.kinds));
        let keys: Vec<_> = concerned.map(|(key, _)| key.clone()).collect();
        drop(index);
        for key in keys {
            if let Some(cluster) = cluster_of_execution_namespace(&key.namespace) {
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
    pub(crate) fn retire(&self, cluster: &str) {
        let namespace = execution_namespace(cluster);
        let key = Key::cluster_scoped(cluster);
        let index = self.index.lock();
        let is_needed = index.clusters.get(&key).is_some()
            || index
                .works
                .iter()
                .any(|(key, _)| key.namespace == namespace);
        drop(index);
        if !is_needed {
            self.queues.remove(cluster);
        }
    }

    /// Returns the numbers of objects that cannot be read, by kind.
    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        let index = self.index.lock();
        vec![
            ("Work", index.works.undecoded()),
            ("Cluster", index.clusters.undecoded()),
        ]
    }
}

impl Index {
    /// Counts the kinds of a Work, and returns `true` if its cluster has another set of them now.
    fn count_kinds(&mut self, cluster: &str, change: &Transition<StoredWork>) -> bool {
        let of = |work: &Option<Arc<StoredWork>>| {
            let work = work.as_ref();
            work.map(|work| work.summary.kinds.clone())
                .unwrap_or_default()
        };
        let kinds = self.kinds.entry(cluster.to_owned()).or_default();
        let changed = kinds.change(&of(&change.old), &of(&change.new));
        if kinds.is_empty() {
            self.kinds.remove(cluster);
        }
        changed
    }
}
