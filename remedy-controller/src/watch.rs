//! What the watches have told, and which change wakes which cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_api::condition::OWNED;
use karmada_api::{Cluster, Key, Remedy};
use karmada_rules::remedy::{RemedyIndex, Scope};
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::metrics::register_unread;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Guarded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use parking_lot::Mutex;

/// All that the controller knows.
#[derive(Debug)]
pub(crate) struct Index {
    known: Mutex<Known>,
    queue: Queue<Key>,
}

#[derive(Debug, Default)]
struct Known {
    clusters: Cache<Cluster>,
    remedies: Cache<Remedy>,
    index: RemedyIndex,
    /// Clusters of which the last decision was to write. What they show may be older than that write:
    /// if another writer undid it unseen, a later version looks like this one (karmada#7776).
    unsettled: BTreeSet<Key>,
    /// Conditions of ours whose status changed since the cluster was last reconciled.
    changed: BTreeMap<Key, BTreeMap<&'static str, Condition>>,
}

/// What is known of one cluster.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) cluster: Arc<Cluster>,
    /// The remedies whose scope covers it.
    pub(crate) remedies: Vec<Arc<Remedy>>,
    /// Whether every remedy could be read.
    pub(crate) complete: bool,
    /// Conditions of ours whose status changed since the last view.
    pub(crate) changed: Vec<Condition>,
}

impl Index {
    pub(crate) fn new(queue: Queue<Key>) -> Self {
        Self {
            known: Mutex::default(),
            queue,
        }
    }

    /// Watches everything that decides about clusters.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, client: &Client) {
        let (clusters, remedies) = (Arc::clone(self), Arc::clone(self));
        let all = || Api::all(client.clone());
        program.watch("clusters", all(), Config::default(), move |event| {
            clusters.observe(|known| known.observe_cluster(event));
        });
        let all = || Api::all(client.clone());
        program.watch("remedies", all(), Config::default(), move |event| {
            remedies.observe(|known| known.observe_remedy(event));
        });
        let index = Arc::clone(self);
        register_unread(&mut program.registry, move || index.unread());
    }

    /// Takes an event in and wakes the clusters it concerns.
    fn observe(&self, observe: impl FnOnce(&mut Known) -> Vec<Key>) {
        let woken = observe(&mut self.known.lock());
        self.queue.add_all(woken);
    }

    /// All clusters; what changed before now is another leader's to tell.
    pub(crate) fn begin(&self) -> Vec<Key> {
        let mut known = self.known.lock();
        known.changed.clear();
        known.all()
    }

    /// What is known of the cluster `key`; none when it is gone.
    pub(crate) fn view(&self, key: &Key) -> Option<View> {
        self.known.lock().view(key)
    }

    /// The last decision of the cluster `key` was to write, or not.
    pub(crate) fn decided(&self, key: &Key, writes: bool) {
        let unsettled = &mut self.known.lock().unsettled;
        if writes {
            unsettled.insert(key.clone());
        } else {
            unsettled.remove(key);
        }
    }

    /// How many objects of each kind could never be read.
    fn unread(&self) -> Vec<(&'static str, usize)> {
        let known = self.known.lock();
        let (clusters, remedies) = (known.clusters.unread(), known.remedies.unread());
        vec![("Cluster", clusters.len()), ("Remedy", remedies.len())]
    }
}

impl Known {
    /// A cluster changed: it is woken when that can change what is decided of it. The echo of our own
    /// write is such a change too, so that what was decided on an older view is decided again.
    fn observe_cluster(&mut self, event: Event<Guarded<Cluster>>) -> Vec<Key> {
        let mut woken = Vec::new();
        for transition in self.clusters.observe(event) {
            self.note_conditions(&transition);
            let Transition { key, old, new } = transition;
            match (old, new) {
                (Some(old), Some(new))
                    if same_for_us(&old, &new) && !self.unsettled.contains(&key) => {}
                (_, Some(_)) => woken.push(key),
                (_, None) => {
                    self.unsettled.remove(&key);
                }
            }
        }
        woken
    }

    /// A remedy changed: the clusters that its old scope or its new one covers are woken. Where one
    /// could never be read and now can be, or is gone, every cluster may have depended on it.
    fn observe_remedy(&mut self, event: Event<Guarded<Remedy>>) -> Vec<Key> {
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
            self.index.replace(&key.name, scope.clone());
            for scope in old.as_deref().map(Scope::of).into_iter().chain(scope) {
                concerned = concerned.union(scope);
            }
        }
        if self.remedies.unread().len() < unread {
            concerned = Scope::Every;
        }
        match concerned {
            Scope::Every => self.all(),
            Scope::Named(names) => names.into_iter().map(Key::cluster_scoped).collect(),
        }
    }

    fn all(&self) -> Vec<Key> {
        self.clusters.iter().map(|(key, _)| key.clone()).collect()
    }

    fn view(&mut self, key: &Key) -> Option<View> {
        let changed = self.changed.remove(key).unwrap_or_default();
        let cluster = Arc::clone(self.clusters.get(key)?);
        let remedies = self
            .index
            .covering(&key.name)
            .filter_map(|name| self.remedies.get(&Key::cluster_scoped(name)))
            .map(Arc::clone)
            .collect();
        Some(View {
            cluster,
            remedies,
            complete: self.remedies.unread().is_empty(),
            changed: changed.into_values().collect(),
        })
    }

    fn note_conditions(&mut self, transition: &Transition<Cluster>) {
        let (Some(old), Some(new)) = (&transition.old, &transition.new) else {
            self.changed.remove(&transition.key);
            return;
        };
        for kind in OWNED {
            let status = |cluster: &Cluster| cluster.condition(kind).map(|c| c.status.clone());
            if let Some(condition) = new.condition(kind)
                && status(old) != status(new)
            {
                let changed = self.changed.entry(transition.key.clone()).or_default();
                changed.insert(kind, condition.clone());
            }
        }
    }
}

/// Whether nothing we decide from differs.
fn same_for_us(old: &Cluster, new: &Cluster) -> bool {
    old.conditions() == new.conditions()
        && old.remedy_actions() == new.remedy_actions()
        && old.metadata.uid == new.metadata.uid
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
}

#[cfg(test)]
mod tests;
