//! The changes that wake a Work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apply::Wake;
use karmada_api::{ClusterView, cluster_of_execution_namespace, execution_namespace};
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::members::MemberQueues;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;

use crate::fleet::Fleet;
use crate::stored::StoredWork;

/// The least time between two syncs of a Work of whose objects, or of which itself, only the status changes.
const PACE: Duration = Duration::from_secs(1);

/// The Works and clusters behind a lock, and the queues of the Works that their changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queues: MemberQueues<Key>,
}

#[derive(Debug, Default)]
struct Index {
    works: Cache<StoredWork>,
    clusters: Cache<ClusterView>,
    /// The number of manifests of each kind, by cluster.
    kinds: BTreeMap<String, BTreeMap<GroupVersionKind, usize>>,
}

impl SharedIndex {
    pub(crate) fn new(queues: MemberQueues<Key>) -> Self {
        Self {
            index: Mutex::default(),
            queues,
        }
    }

    /// Watches every kind that decides about Works.
    pub(crate) fn watch(
        self: &Arc<Self>,
        program: &mut Program,
        client: &Client,
        fleet: &Arc<Fleet>,
    ) {
        let (shared, members) = (Arc::clone(self), Arc::clone(fleet));
        let all = Api::all(client.clone());
        program.watch("works", all, Config::default(), move |event| {
            shared.observe_work(&members, event);
        });
        let (shared, members) = (Arc::clone(self), Arc::clone(fleet));
        let all = Api::all(client.clone());
        program.watch("clusters", all, Config::default(), move |event| {
            shared.observe_cluster(&members, event);
        });
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.undecoded());
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

    /// Returns the kinds of a cluster's manifests.
    pub(crate) fn kinds(&self, cluster: &str) -> BTreeSet<GroupVersionKind> {
        let index = self.index.lock();
        let kinds = index.kinds.get(cluster).into_iter().flatten();
        kinds.map(|(kind, _)| kind.clone()).collect()
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

    /// Wakes a Work of a cluster after a change of it or of its objects.
    pub(crate) fn wake_one(&self, cluster: &str, wake: Wake) {
        let queue = self.queues.of(cluster);
        match wake {
            Wake::Now(key) => queue.add(key),
            Wake::Paced(key) => queue.add_paced(key, PACE),
        }
    }

    fn observe_work(&self, fleet: &Fleet, event: Event<Decoded<StoredWork>>) {
        let mut woken = Vec::new();
        let mut rewatched = BTreeSet::new();
        {
            let mut index = self.index.lock();
            for change in index.works.observe(event) {
                let Some(cluster) = cluster_of_execution_namespace(&change.key.namespace) else {
                    continue;
                };
                if index.count(cluster, &change) {
                    rewatched.insert(cluster.to_owned());
                }
                let key = change.key.clone();
                let wake = if concerns_us(&change) {
                    Wake::Now(key)
                } else {
                    // A sync may have compared its report with a status older than our last one, and found
                    // no news.
                    Wake::Paced(key)
                };
                woken.push((cluster.to_owned(), wake));
            }
        }
        for cluster in rewatched {
            self.retire(&cluster);
            fleet.rewatch(&cluster, self.kinds(&cluster));
        }
        for (cluster, wake) in woken {
            self.wake_one(&cluster, wake);
        }
    }

    fn observe_cluster(&self, fleet: &Fleet, event: Event<Decoded<ClusterView>>) {
        let changes = self.index.lock().clusters.observe(event);
        for Transition { key, old, new } in changes {
            let same_access = match (&old, &new) {
                (Some(old), Some(new)) => old.spec.has_same_access(&new.spec),
                (None, _) => true,
                (Some(_), None) => false,
            };
            if !same_access {
                fleet.disconnect(&key.name);
            }
            let same_for_us = same_access
                && matches!((&old, &new), (Some(old), Some(new)) if
                    old.spec.sync_mode == new.spec.sync_mode
                    && old.status.api_enablements == new.status.api_enablements
                    && ready(old) == ready(new)
                    && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp);
            if new.is_none() {
                self.retire(&key.name);
            }
            if !same_for_us {
                self.queues.hurry(&key.name);
                self.wake(&key.name);
            }
        }
    }

    /// Drops the queue of a cluster that is gone, with all of its Works.
    fn retire(&self, cluster: &str) {
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

    fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        let index = self.index.lock();
        vec![
            ("Work", index.works.undecoded()),
            ("Cluster", index.clusters.undecoded()),
        ]
    }
}

impl Index {
    /// Counts the kinds of a Work, and returns `true` if its cluster has another set of them now.
    fn count(&mut self, cluster: &str, change: &Transition<StoredWork>) -> bool {
        let kinds = self.kinds.entry(cluster.to_owned()).or_default();
        let mut changed = false;
        for kind in change.new.iter().flat_map(|work| &work.summary.kinds) {
            let count = kinds.entry(kind.clone()).or_default();
            changed |= *count == 0;
            *count += 1;
        }
        for kind in change.old.iter().flat_map(|work| &work.summary.kinds) {
            if let Some(count) = kinds.get_mut(kind) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    kinds.remove(kind);
                    changed = true;
                }
            }
        }
        if kinds.is_empty() {
            self.kinds.remove(cluster);
        }
        changed
    }
}

/// Returns `true` if something besides the status has changed, which is ours.
fn concerns_us(change: &Transition<StoredWork>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return true;
    };
    let (old, new) = (old.meta(), new.meta());
    old.generation != new.generation
        || new.generation.is_none()
        || old.uid != new.uid
        || old.deletion_timestamp != new.deletion_timestamp
        || old.annotations != new.annotations
}

/// Returns the status of the cluster's condition `Ready`.
fn ready(cluster: &ClusterView) -> Option<&str> {
    let mut conditions = cluster.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}
