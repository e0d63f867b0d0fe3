//! The changes that wake a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::condition::OWNED;
use karmada_api::{Cluster, Key, Remedy};
use karmada_rules::remedy::{MaxBlocked, Scope};
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;

use crate::index::{Index, Snapshot};

/// The index behind a lock, and the queue of the clusters that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queue: Queue<Key>,
    /// The remedies that changed.
    remedy_queue: Queue<Key>,
}

impl SharedIndex {
    pub(crate) fn new(queue: Queue<Key>, max_blocked: MaxBlocked) -> Self {
        Self {
            index: Mutex::new(Index::new(max_blocked)),
            queue,
            remedy_queue: Queue::default(),
        }
    }

    /// Returns the queue of the remedies that changed.
    pub(crate) fn remedy_queue(&self) -> Queue<Key> {
        self.remedy_queue.clone()
    }

    /// Watches every kind that decides about clusters.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, client: &Client) {
        let (clusters, remedies) = (Arc::clone(self), Arc::clone(self));
        let all = || Api::all(client.clone());
        program.watch("clusters", all(), Config::default(), move |event| {
            clusters.observe(|index| index.observe_cluster(event));
        });
        let all = || Api::all(client.clone());
        program.watch("remedies", all(), Config::default(), move |event| {
            let changed = changed(&event);
            remedies.observe(|index| index.observe_remedy(event));
            remedies.remedy_queue.add_all(changed);
        });
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.index.lock().undecoded());
    }

    /// Applies an event with `observe` and wakes the clusters it returns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        let woken = observe(&mut self.index.lock());
        self.queue.add_all(woken);
    }

    /// Begins a term of leadership: returns the keys of all clusters, and drops the condition changes
    /// seen so far, whose Events the previous leader recorded.
    pub(crate) fn begin_term(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        index.begin_term();
        index.keys()
    }

    /// Returns `true` if a read must show which clusters are blocked before the cluster `key` is.
    pub(crate) fn needs_survey(&self, key: &Key) -> bool {
        let index = self.index.lock();
        index.needs_survey() && index.bound.over(&key.name).is_some()
    }

    /// Takes in the clusters that a read showed to be blocked.
    pub(crate) fn surveyed(&self, blocked: Vec<Cluster>) {
        self.observe(|index| index.surveyed(blocked));
    }

    /// Returns the keys of all remedies.
    pub(crate) fn remedies(&self) -> Vec<Key> {
        let index = self.index.lock();
        index.remedies.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Returns the remedy `key`.
    pub(crate) fn remedy(&self, key: &Key) -> Option<Arc<Remedy>> {
        self.index.lock().remedies.get(key).map(Arc::clone)
    }

    /// Remembers whether the cluster `key` is over the bound, and returns `true` if it was not before.
    pub(crate) fn note_over_bound(&self, key: &Key, over: bool) -> bool {
        let noted = &mut self.index.lock().noted_over_bound;
        if over {
            noted.insert(key.clone())
        } else {
            noted.remove(key);
            false
        }
    }

    /// Returns the number of clusters that conditions may block, and of those over that bound.
    pub(crate) fn bound(&self) -> (usize, usize) {
        let index = self.index.lock();
        (index.bound.limit(), index.bound.waiting())
    }

    /// Returns a snapshot of the cluster `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        self.index.lock().snapshot(key)
    }

    /// Returns the cluster `key`.
    pub(crate) fn cluster(&self, key: &Key) -> Option<Arc<Cluster>> {
        self.index.lock().clusters.get(key).map(Arc::clone)
    }

    /// Remembers whether the decision about the cluster `key` is a write.
    pub(crate) fn set_unsettled(&self, key: &Key, writes: bool) {
        let unsettled = &mut self.index.lock().unsettled;
        if writes {
            unsettled.insert(key.clone());
        } else {
            unsettled.remove(key);
        }
    }
}

impl Index {
    /// Applies an event of a cluster and wakes it if the decision about it may change. The echo of our
    /// own write is such a change too, so that a decision on an older version is made again.
    pub(crate) fn observe_cluster(&mut self, event: Event<Decoded<Cluster>>) -> Vec<Key> {
        let mut woken = Vec::new();
        let mut claiming = Vec::new();
        for transition in self.clusters.observe(event) {
            self.note_conditions(&transition);
            let Transition { key, old, new } = transition;
            claiming.push(key.clone());
            match (old, new) {
                (Some(old), Some(new))
                    if same_for_us(&old, &new)
                        && !self.unsettled.contains(&key)
                        && !self.is_ahead(&key) =>
                {
                    claiming.pop();
                }
                (_, Some(_)) => woken.push(key),
                (_, None) => {
                    self.unsettled.remove(&key);
                    self.noted_over_bound.remove(&key);
                }
            }
        }
        woken.extend(self.claim(&claiming));
        woken
    }

    /// Applies an event of a remedy and wakes the clusters of its old and its new scope.
    pub(crate) fn observe_remedy(&mut self, event: Event<Decoded<Remedy>>) -> Vec<Key> {
        let unread = self.remedies.unread().len();
        let mut concerned = Scope::Named(BTreeSet::new());
        for Transition { key, old, new } in self.remedies.observe(event) {
            if let (Some(old), Some(new)) = (&old, &new)
                && old.spec == new.spec
                && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            {
                continue;
            }
            let scope = new.as_deref().map(Scope::of);
            self.by_cluster.replace(&key.name, scope.clone());
            for scope in old.as_deref().map(Scope::of).into_iter().chain(scope) {
                concerned = concerned.union(scope);
            }
        }
        // While a remedy is unread no cluster's actions are cleared; once it decodes or is gone, any
        // cluster may have waited for that.
        if self.remedies.unread().len() < unread {
            concerned = Scope::Every;
        }
        let mut woken = match concerned {
            Scope::Every => self.keys(),
            Scope::Named(names) => names.into_iter().map(Key::cluster_scoped).collect(),
        };
        let admitted = self.claim(&woken);
        woken.extend(admitted);
        woken
    }

    fn note_conditions(&mut self, transition: &Transition<Cluster>) {
        let (Some(old), Some(new)) = (&transition.old, &transition.new) else {
            self.changed.remove(&transition.key);
            return;
        };
        for kind in OWNED {
            let status = |cluster: &Cluster| {
                let condition = cluster.condition(kind)?;
                Some((condition.status.clone(), condition.reason.clone()))
            };
            if let Some(condition) = new.condition(kind)
                && status(old) != status(new)
            {
                let changed = self.changed.entry(transition.key.clone()).or_default();
                changed.insert(kind, condition.clone());
            }
        }
    }
}

/// Returns the object of an event.
fn changed<K: Resource>(event: &Event<Decoded<K>>) -> Option<Key> {
    match event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
            Some(Key::of(object))
        }
        Event::Init | Event::InitDone => None,
    }
}

/// Returns `true` if nothing that decides about the cluster differs.
fn same_for_us(old: &Cluster, new: &Cluster) -> bool {
    // What is unreadable decides, too: an action may be kept because of it.
    old.status == new.status
        && old.metadata.uid == new.metadata.uid
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
}

#[cfg(test)]
mod tests;
