//! The changes that wake a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::condition::owned;
use karmada_api::{Cluster, Remedy};
use karmada_runtime::alarm;
use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use traffic::ClusterKind;
use traffic::remedy::{Decision, MaxBlocked, Mode, Scope, required_conditions};

use crate::clusters::Clusters;
use crate::index::{CLUSTER, Index, REMEDY, Snapshot, View};

/// The index behind a lock, and the queue of the clusters that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queue: Queue<Key>,
    /// The remedies whose status may differ.
    remedy_queue: Queue<Key>,
    /// Notified when another moment is that of the next expiry.
    expiries: Arc<Notify>,
}

impl SharedIndex {
    pub(crate) fn new(
        queue: Queue<Key>,
        kind: ClusterKind,
        max_blocked: MaxBlocked,
        clock: fn() -> Timestamp,
    ) -> Self {
        let (index, remedy_queue) = (Index::new(kind, max_blocked, clock), Queue::default());
        index.expectations.add_queue(CLUSTER, &queue);
        index.expectations.add_queue(REMEDY, &remedy_queue);
        Self {
            index: Mutex::new(index),
            queue,
            remedy_queue,
            expiries: Arc::default(),
        }
    }

    /// Returns the queue of the remedies whose status may differ.
    pub(crate) fn remedy_queue(&self) -> Queue<Key> {
        self.remedy_queue.clone()
    }

    /// Returns the writes that the watches have still to show.
    pub(crate) fn expectations(&self) -> Expectations {
        self.index.lock().expectations.clone()
    }

    /// Returns `true` if clusters wait for their turn.
    pub(crate) fn clusters_wait(&self) -> bool {
        self.queue.has_backlog()
    }

    /// Watches every kind that decides about clusters.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, clusters: &Clusters) {
        let (shared, remedies) = (Arc::clone(self), Arc::clone(self));
        clusters.watch(program, move |event| {
            shared.observe(|index| index.observe_cluster(event));
        });
        let all = Api::all(clusters.client.clone());
        program.watch("remedies", all, Config::default(), move |event| {
            remedies.observe(|index| index.observe_remedy(event));
        });
        let (shared, changed) = (Arc::clone(self), Arc::clone(&self.expiries));
        alarm::spawn(program, "expiries", changed, move |now| {
            shared.observe(|index| index.expire(now));
            shared.read(|index| index.expiries.next())
        });
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.index.lock().undecoded());
    }

    /// Applies an event with `observe` and wakes the clusters it returns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        let mut index = self.index.lock();
        let expiry = index.expiries.next();
        let woken = observe(&mut index);
        let concerned = std::mem::take(&mut index.concerned);
        if index.expiries.next() != expiry {
            self.expiries.notify_one();
        }
        drop(index);
        self.queue.add_all(woken);
        let concerned = concerned.into_iter().map(Key::cluster_scoped);
        self.remedy_queue.add_all(concerned);
    }

    /// Begins a term of leadership: returns the keys of all clusters, and drops the condition changes
    /// seen so far, whose Events the previous leader recorded.
    pub(crate) fn begin_term(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.observe(|index| {
            index.begin_term();
            keys = index.keys();
            Vec::new()
        });
        keys
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

    /// Returns what the remedy `key` does and why, and `None` if it does not exist.
    pub(crate) fn view(&self, key: &Key) -> Option<View> {
        self.index.lock().view(key)
    }

    /// Remembers the remedies that only observe and would act on the cluster `key`, and returns those that
    /// did not before.
    pub(crate) fn note_observing(&self, key: &Key, remedies: BTreeSet<String>) -> BTreeSet<String> {
        let noted = &mut self.index.lock().noted_observing;
        let before = noted.remove(key).unwrap_or_default();
        let new = remedies.difference(&before).cloned().collect();
        if !remedies.is_empty() {
            noted.insert(key.clone(), remedies);
        }
        new
    }

    /// Returns what `read` finds in the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
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

    /// Returns a snapshot of the cluster `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        self.index.lock().snapshot(key)
    }

    /// Returns the cluster `key`.
    pub(crate) fn cluster(&self, key: &Key) -> Option<Arc<Cluster>> {
        self.index.lock().clusters.get(key).map(Arc::clone)
    }

    /// Returns the clusters that have a condition of this type.
    pub(crate) fn clusters_with(&self, kind: &str) -> Vec<Arc<Cluster>> {
        let index = self.index.lock();
        let clusters = index.clusters.iter();
        let found = clusters.filter(|(_, cluster)| cluster.condition(kind).is_some());
        found.map(|(_, cluster)| Arc::clone(cluster)).collect()
    }

    /// Takes in that a change of conditions of the cluster `key` has led to its actions, or to nothing.
    pub(crate) fn followed(&self, key: &Key) {
        self.index.lock().arrived.remove(key);
    }
}

impl Index {
    /// Applies an event of a cluster and wakes it if the decision about it may change. The echo of our
    /// own write is such a change too, so that a decision on an older version is made again.
    pub(crate) fn observe_cluster(&mut self, event: Event<Decoded<Cluster>>) -> Vec<Key> {
        let changes = self.clusters.observe(event);
        self.change_clusters(changes)
    }

    /// Takes in the clusters that a read showed to be blocked, which may be newer than what the watch has shown, and wakes
    /// those that are admitted now.
    pub(crate) fn surveyed(&mut self, blocked: Vec<Cluster>) -> Vec<Key> {
        self.is_surveyed = true;
        let read = blocked.into_iter();
        let changes = read.filter_map(|cluster| self.clusters.read_ahead(cluster));
        let changes = changes.collect();
        self.change_clusters(changes)
    }

    /// Takes in changes of clusters, and wakes those of them about which something else may be decided, with those that
    /// are admitted thereby.
    pub(crate) fn change_clusters(&mut self, changes: Vec<Transition<Cluster>>) -> Vec<Key> {
        let mut woken = Vec::new();
        let mut claiming = Vec::new();
        for transition in changes {
            self.note_conditions(&transition);
            self.concern(&transition);
            let Transition { key, old, new } = transition;
            claiming.push(key.clone());
            match (old, new) {
                (Some(old), Some(new)) if same_for_us(&old, &new) => {
                    claiming.pop();
                }
                (_, Some(_)) => woken.push(key),
                (_, None) => {
                    self.arrived.remove(&key);
                    self.noted_over_bound.remove(&key);
                    self.noted_observing.remove(&key);
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
            self.concerned.insert(key.name.clone());
            self.expiries.replace(&key.name, new.as_deref());
            if let (Some(old), Some(new)) = (&old, &new)
                && old.spec == new.spec
                && Decision::of(old) == Decision::of(new)
                && self.same_mode(old, new)
                && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            {
                continue;
            }
            let required = new.as_deref().map(required_conditions);
            self.requiring
                .replace(&key.name, required.unwrap_or_default());
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
        self.wake(concerned)
    }

    fn same_mode(&self, old: &Remedy, new: &Remedy) -> bool {
        let now = self.now();
        Mode::of(old, now) == Mode::of(new, now)
    }

    /// Remembers the remedies that may refer to a cluster which appears or disappears, or to a type of
    /// condition that does.
    fn concern(&mut self, Transition { key, old, new }: &Transition<Cluster>) {
        if old.is_some() != new.is_some() {
            self.concerned
                .extend(self.by_cluster.naming(&key.name).cloned());
        }
        let types = self.condition_types.replace(old.as_deref(), new.as_deref());
        let requiring = types.iter().flat_map(|kind| self.requiring.sources(kind));
        self.concerned.extend(requiring.cloned());
        let before = old.as_deref().map(Cluster::conditions);
        let after = new.as_deref().map(Cluster::conditions);
        if after.is_some() && before != after {
            let arrived = self.arrived.entry(key.clone());
            arrived.or_insert_with(Instant::now);
        }
    }

    fn note_conditions(&mut self, transition: &Transition<Cluster>) {
        let (Some(old), Some(new)) = (&transition.old, &transition.new) else {
            self.changed.remove(&transition.key);
            return;
        };
        for condition in owned(new.conditions()) {
            let before = old.condition(&condition.type_);
            let is_same = before.is_some_and(|before| {
                before.status == condition.status && before.reason == condition.reason
            });
            if !is_same {
                let changed = self.changed.entry(transition.key.clone()).or_default();
                changed.insert(condition.type_.clone(), condition.clone());
            }
        }
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
