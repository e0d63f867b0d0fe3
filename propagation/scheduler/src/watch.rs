//! The changes that wake a binding: those of clusters here, its own in `bindings`, with what they free for the others of its
//! `groups` and for those that wait for `room`. `decisions` count before they are written.

mod bindings;
mod decisions;
mod groups;
mod room;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::{ClusterView, ResourceBindingSpec};
use karmada_rules::schedule::{
    Scheduler, concerns, halted_clusters, is_held, is_observed, is_unscheduled, left_clusters,
    waits_for_room,
};
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::Key;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::assumptions::AssumedBindings;
use crate::binding::AnyBinding;
use crate::index::{BINDING, Index, Snapshot};

/// The index behind a lock, and the queue of the bindings that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queue: Queue<Key>,
}

/// Numbers of bindings.
#[derive(Debug)]
pub(crate) struct Counts {
    /// By the reason of their condition `Scheduled`.
    pub(crate) by_reason: BTreeMap<&'static str, usize>,
    /// Those whose placement is not supported.
    pub(crate) left_alone: usize,
    /// Those that take room which their clusters do not report yet.
    pub(crate) assumed: usize,
}

impl SharedIndex {
    pub(crate) fn new(queue: Queue<Key>, scheduler: Scheduler) -> Self {
        let index = Index::new(scheduler);
        index.expectations.add_queue(BINDING, &queue);
        Self {
            index: Mutex::new(index),
            queue,
        }
    }

    /// Returns the writes that the watches have still to show.
    pub(crate) fn expectations(&self) -> Expectations {
        self.index.lock().expectations.clone()
    }

    /// Has bindings of a higher priority scheduled first from now on.
    pub(crate) fn heed_priority(&self) {
        self.index.lock().heeds_priority = true;
    }

    /// Watches every kind that decides about bindings.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, client: &Client) {
        let shared = Arc::clone(self);
        let all = Api::all(client.clone());
        program.watch("clusters", all, Config::default(), move |event| {
            shared.observe(|index| index.observe_cluster(event));
        });
        let shared = Arc::clone(self);
        let all = Api::all(client.clone());
        program.watch("resourcebindings", all, Config::default(), move |event| {
            shared.observe(|index| index.observe_binding(event));
        });
        let shared = Arc::clone(self);
        let all = Api::all(client.clone());
        program.watch(
            "clusterresourcebindings",
            all,
            Config::default(),
            move |event| {
                shared.observe(|index| index.observe_cluster_binding(event));
            },
        );
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.index.lock().undecoded());
    }

    /// Applies an event with `observe` and wakes the bindings it returns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        let mut index = self.index.lock();
        let woken = observe(&mut index);
        let priorities = index.priorities(&woken);
        drop(index);
        self.queue.rank_all(priorities);
        self.queue.add_all(woken);
    }

    /// Begins a term of leadership: returns the keys of all bindings. The previous leader has decided
    /// about the clusters' changes so far.
    pub(crate) fn begin_term(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        index.cluster_changed.clear();
        index.decisions.clear();
        index.end_all_assumptions();
        index.ours().map(|binding| binding.key()).collect()
    }

    /// Wakes the binding `key` at a time of the clock that shows `now`.
    pub(crate) fn wake_at(&self, key: Key, at: Timestamp, now: Timestamp) {
        self.queue.add_at_time(key, at, now);
    }

    /// Puts off the decision about the binding `key` until then: it was not written.
    pub(crate) fn pause(&self, key: &Key, until: Instant) {
        self.not_written(key);
        self.queue.add_at(key.clone(), until);
    }

    /// Returns a snapshot of the binding `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        self.index.lock().snapshot(key)
    }

    /// Returns the binding `key`.
    pub(crate) fn binding(&self, key: &Key) -> Option<AnyBinding> {
        self.index.lock().binding(key)
    }

    /// Returns the spec of the binding `key`, if it is that of the template.
    pub(crate) fn spec_of(
        &self,
        key: &Key,
        group: &str,
        kind: &str,
        template: &Key,
    ) -> Option<ResourceBindingSpec> {
        let binding = self.binding(key)?;
        let view = binding.view();
        view.is_of(group, kind, template).then(|| view.spec.clone())
    }

    /// Forgets the clusters' changes that `snapshot` of the binding `key` has seen, once it is settled.
    pub(crate) fn settled(&self, key: &Key, snapshot: &Snapshot) {
        let mut index = self.index.lock();
        let clusters = index.clusters.iter().map(|(_, cluster)| cluster);
        if clusters
            .zip(&snapshot.clusters)
            .all(|(now, seen)| Arc::ptr_eq(now, seen))
        {
            index.cluster_changed.remove(key);
        }
    }

    /// Forgets a binding that does not exist any more.
    pub(crate) fn forget(&self, key: &Key) {
        let mut index = self.index.lock();
        index.cluster_changed.remove(key);
        index.left_alone.remove(key);
        if let Some(assumed) = &mut index.assumed {
            assumed.note_waiting(key, false);
        }
    }

    /// Remembers that the binding `key` is left alone for the reason `message`, and returns `true` if that
    /// is news.
    pub(crate) fn note_left_alone(&self, key: &Key, message: Option<&str>) -> bool {
        let noted = &mut self.index.lock().left_alone;
        match message {
            Some(message) => {
                let before = noted.insert(key.clone(), message.to_owned());
                before.as_deref() != Some(message)
            }
            None => noted.remove(key).is_some(),
        }
    }

    /// Returns the numbers of bindings.
    pub(crate) fn counts(&self) -> Counts {
        let index = self.index.lock();
        let assumed = index.assumed.iter().flat_map(AssumedBindings::keys);
        Counts {
            by_reason: index.by_reason(),
            left_alone: index.left_alone.len(),
            assumed: assumed.count(),
        }
    }

    /// Counts the bindings that stay in clusters that are not ready, because too much of the fleet is not.
    pub(crate) fn halted_evictions(&self, now: Timestamp) -> usize {
        let (bindings, clusters) = {
            let index = self.index.lock();
            let halted = halted_clusters(&index.scheduler, all(&index.clusters).collect());
            if halted.is_empty() {
                return 0;
            }
            let halted: Vec<_> = halted.into_iter().cloned().collect();
            (index.ours().collect::<Vec<_>>(), halted)
        };
        // Without the lock: no decision waits for a scrape.
        let clusters: Vec<_> = clusters.iter().collect();
        let views = bindings.iter().map(AnyBinding::view);
        views.filter(|view| is_held(*view, &clusters, now)).count()
    }
}

impl Index {
    /// Applies an event of a cluster and wakes the bindings that have it or may get it.
    pub(crate) fn observe_cluster(&mut self, mut event: Event<Decoded<ClusterView>>) -> Vec<Key> {
        if let Event::Apply(Decoded::Valid(cluster)) | Event::InitApply(Decoded::Valid(cluster)) =
            &mut event
        {
            cluster.status.conditions.clear();
            cluster.metadata.annotations = None;
        }
        // The loop starts with every binding once all have been listed: no cluster must go through all of
        // them before.
        if !self.clusters_listed {
            self.clusters_listed = matches!(event, Event::InitDone);
            self.clusters.observe(event);
            return Vec::new();
        }
        let unread = self.clusters.unread().len();
        let mut woken = Vec::new();
        for Transition { old, new, .. } in self.clusters.observe(event) {
            let (old, new) = (old.as_deref(), new.as_deref());
            let forms = [old, new];
            let forms = || forms.into_iter().flatten();
            let differs = differs(old, new);
            if !differs && has_same_room(old, new) {
                continue;
            }
            let is_edit = is_edit(old, new);
            let left = left(&self.scheduler, &self.clusters);
            let ours: Vec<_> = self.ours().collect();
            for binding in ours {
                let waits = || waits_for_room(&self.scheduler, binding.view(), &left);
                let is_concerned = (differs && is_unscheduled(binding.view()))
                    || forms().any(|cluster| concerns(binding.view(), cluster));
                if (!differs && !waits()) || !is_concerned {
                    continue;
                }
                let key = binding.key();
                if is_edit && forms().any(|cluster| is_observed(binding.view(), cluster)) {
                    self.cluster_changed.insert(key.clone());
                }
                woken.push(key);
            }
        }
        // While a cluster is unread nothing is taken away on its account.
        if self.clusters.unread().len() < unread {
            woken.extend(self.ours().map(|binding| binding.key()));
        }
        woken
    }
}

/// Returns the clusters that workloads may have to leave.
fn left<'a>(scheduler: &Scheduler, clusters: &'a Cache<ClusterView>) -> Vec<&'a ClusterView> {
    left_clusters(scheduler, all(clusters).collect())
}

fn all(clusters: &Cache<ClusterView>) -> impl Iterator<Item = &ClusterView> {
    clusters.iter().map(|(_, cluster)| &**cluster)
}

/// Returns `true` if the clusters differ in what decides about bindings.
fn differs(old: Option<&ClusterView>, new: Option<&ClusterView>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return true;
    };
    is_edit(Some(old), Some(new))
        || old.metadata.uid != new.metadata.uid
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || old.status.api_enablements != new.status.api_enablements
}

fn has_same_room(old: Option<&ClusterView>, new: Option<&ClusterView>) -> bool {
    let [was, is] = [old, new].map(|cluster| cluster?.status.resource_summary.as_ref());
    was == is
}

/// Returns `true` if a person, or who acts like one, has changed the cluster.
fn is_edit(old: Option<&ClusterView>, new: Option<&ClusterView>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    old.metadata.labels != new.metadata.labels
        || old.metadata.generation != new.metadata.generation
        || old.spec != new.spec
}
