//! The watched objects, and the facts that depend on their history.

mod decided;
mod groups;
mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::{ClusterResourceBinding, ClusterView, ResourceBinding, TargetCluster};
use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::metrics::count_value;
use karmada_runtime::store::Store;
use objects::Key;
use propagation_rules::schedule::{
    AffinityGroups, Assumed, KnownClusters, Scheduler, concerns, is_observed, is_unscheduled,
    keep_facts, left_clusters, waits_for_room,
};

use crate::assumptions::AssumedBindings;
use crate::binding::{AnyBinding, Reports, keep};
use crate::groups::{Group, groups_of};

/// The topic of writes to a binding.
pub(crate) const BINDING: &str = "binding";

/// The watched objects and the facts that depend on their history.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) scheduler: Scheduler,
    pub(crate) clusters: Store<ClusterView>,
    /// By their groups of workloads, if these are heeded.
    pub(crate) bindings: Store<ResourceBinding, Group>,
    pub(crate) cluster_bindings: Store<ClusterResourceBinding>,
    heeds_priority: bool,
    /// The assumptions about bindings; `None` if nobody keeps account of it.
    assumed: Option<AssumedBindings>,
    /// The clusters of the last decisions about bindings that heed others, unless they are written: `bindings` have those.
    pub(crate) decisions: BTreeMap<Key, Vec<TargetCluster>>,
    /// Bindings whose affinity selects a cluster that has changed since they were decided.
    cluster_changed: BTreeSet<Key>,
    /// Bindings whose placement is not supported, with the message of the last Event.
    left_alone: BTreeMap<Key, String>,
}

/// The facts of other bindings that bindings heed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heeded {
    /// Which workloads are to be together, or apart.
    pub(crate) groups: bool,
    /// That those of a higher priority go first.
    pub(crate) priority: bool,
    /// The room that is promised to others, by this clock.
    pub(crate) promises: Option<fn() -> Timestamp>,
}

/// Everything that decides about one binding, at one instant.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) scheduler: Scheduler,
    pub(crate) binding: AnyBinding,
    /// The others of its groups of workloads; `None` if it is in none.
    pub(crate) affinity_groups: Option<AffinityGroups>,
    /// The Pods that are assumed in clusters besides those that they report; `None` if nobody keeps account of it.
    pub(crate) assumed: Option<Assumed>,
    pub(crate) clusters: Vec<Arc<ClusterView>>,
    /// Set if every cluster decoded.
    pub(crate) complete: bool,
    pub(crate) cluster_changed: bool,
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

impl Snapshot {
    /// Returns the clusters that decoded.
    pub(crate) fn clusters(&self) -> Vec<&ClusterView> {
        self.clusters.iter().map(|cluster| &**cluster).collect()
    }

    /// Returns `true` if decisions about other bindings decide about this one.
    pub(crate) fn depends_on_others(&self) -> bool {
        self.affinity_groups.is_some() || self.assumed.is_some()
    }

    /// Returns the fleet of these clusters.
    pub(crate) fn fleet<'a>(&self, clusters: &'a [&'a ClusterView]) -> KnownClusters<'a> {
        KnownClusters {
            clusters,
            complete: self.complete,
        }
    }
}

impl Index {
    /// Creates an index whose bindings `expectations` wait for.
    pub(crate) fn new(scheduler: Scheduler, heeded: Heeded, expectations: &Expectations) -> Self {
        let bindings = if heeded.groups {
            Store::by(groups_of)
        } else {
            Store::default()
        };
        let reports = match heeded.promises {
            Some(_) => Reports::Health,
            None => Reports::OfMoves,
        };
        let bindings = bindings.keeping(keep(reports));
        let cluster_bindings = Store::default().keeping(keep(reports));
        Self {
            scheduler,
            clusters: Store::default().keeping(keep_facts),
            bindings: bindings.expecting(expectations, &()),
            cluster_bindings: cluster_bindings.expecting(expectations, &()),
            heeds_priority: heeded.priority,
            assumed: heeded.promises.map(AssumedBindings::new),
            decisions: BTreeMap::new(),
            cluster_changed: BTreeSet::new(),
            left_alone: BTreeMap::new(),
        }
    }

    /// Iterates over the bindings that are ours, suspended ones too.
    pub(crate) fn ours(&self) -> impl Iterator<Item = AnyBinding> {
        let bindings = self.bindings.iter();
        let bindings = bindings.map(|(_, binding)| AnyBinding::Namespaced(Arc::clone(binding)));
        let others = self.cluster_bindings.iter();
        let others = others.map(|(_, binding)| AnyBinding::ClusterScoped(Arc::clone(binding)));
        let all = bindings.chain(others);
        all.filter(|binding| self.scheduler.has(binding.view()))
    }

    /// Returns the keys of the bindings that are ours.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.ours().map(|binding| binding.key()).collect()
    }

    /// Begins a term of leadership. The previous leader has decided about the clusters' changes so far.
    pub(crate) fn begin_term(&mut self) {
        self.cluster_changed.clear();
        self.decisions.clear();
        self.end_all_assumptions();
    }

    /// Returns the binding `key`; one without a namespace is a `ClusterResourceBinding`.
    pub(crate) fn binding(&self, key: &Key) -> Option<AnyBinding> {
        if key.namespace.is_empty() {
            let binding = self.cluster_bindings.get(key)?;
            return Some(AnyBinding::ClusterScoped(Arc::clone(binding)));
        }
        let binding = self.bindings.get(key)?;
        Some(AnyBinding::Namespaced(Arc::clone(binding)))
    }

    /// Returns a snapshot of the binding `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let clusters = self.clusters.iter();
        Some(Snapshot {
            scheduler: self.scheduler.clone(),
            binding: self.binding(key)?,
            affinity_groups: self.affinity_groups(key),
            assumed: self.assumed_for(key),
            clusters: clusters.map(|(_, cluster)| Arc::clone(cluster)).collect(),
            complete: self.clusters.unread().is_empty(),
            cluster_changed: self.cluster_changed.contains(key),
        })
    }

    /// Returns the priority of a binding after a change, if it is heeded.
    pub(crate) fn priority(&self, change: &Transition<ResourceBinding>) -> Option<(Key, i32)> {
        let binding = change.new.as_ref();
        let priority = binding.and_then(|binding| binding.spec.schedule_priority.as_ref());
        let priority = priority.map_or(0, |priority| priority.priority);
        self.heeds_priority.then(|| (change.key.clone(), priority))
    }

    /// Returns the bindings that have a cluster which has changed, or may get it.
    pub(crate) fn concerned_by(&mut self, change: &Transition<ClusterView>) -> Vec<Key> {
        // The loop starts with every binding once all have been listed: no cluster must go through all of
        // them before.
        if !self.clusters.is_listed() {
            return Vec::new();
        }
        let differs = change.differs(differs_beyond_room);
        let both = change.old.as_deref().zip(change.new.as_deref());
        let is_edit = both.is_some_and(|(old, new)| is_edited(old, new));
        let left = left(&self.scheduler, &self.clusters);
        let ours: Vec<_> = self.ours().collect();
        let mut woken = Vec::new();
        for binding in ours {
            let view = binding.view();
            let is_concerned = (differs && is_unscheduled(view))
                || change.versions().any(|cluster| concerns(view, cluster));
            if !is_concerned || (!differs && !waits_for_room(&self.scheduler, view, &left)) {
                continue;
            }
            let key = binding.key();
            if is_edit && change.versions().any(|cluster| is_observed(view, cluster)) {
                self.cluster_changed.insert(key.clone());
            }
            woken.push(key);
        }
        woken
    }

    /// Forgets the clusters' changes that `snapshot` of the binding `key` has seen, once it is settled.
    pub(crate) fn settle(&mut self, key: &Key, snapshot: &Snapshot) {
        let mut clusters = self.clusters.iter().zip(&snapshot.clusters);
        if clusters.all(|((_, now), seen)| Arc::ptr_eq(now, seen)) {
            self.cluster_changed.remove(key);
        }
    }

    /// Forgets a binding that does not exist any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.cluster_changed.remove(key);
        self.left_alone.remove(key);
        if let Some(assumed) = &mut self.assumed {
            assumed.note_waiting(key, false);
        }
    }

    /// Remembers that the binding `key` is left alone for the reason `message`, and returns `true` if that
    /// is news.
    pub(crate) fn note_left_alone(&mut self, key: &Key, message: Option<&str>) -> bool {
        let noted = &mut self.left_alone;
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
        let assumed = self.assumed.iter().flat_map(AssumedBindings::keys);
        Counts {
            by_reason: self.by_reason(),
            left_alone: self.left_alone.len(),
            assumed: assumed.count(),
        }
    }

    /// Counts our bindings by the reason of their condition `Scheduled`; empty for those without one.
    fn by_reason(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(REASONS.map(|reason| (reason, 0)));
        let ours = self.ours();
        for binding in ours.filter(|binding| self.scheduler.schedules(binding.view())) {
            let condition = binding.view().scheduled();
            count_value(&mut counts, condition.map_or("", |it| &it.reason));
        }
        counts
    }
}

/// The reasons of the condition `Scheduled`. A label has no other value.
const REASONS: [&str; 6] = [
    "",
    "NoClusterFit",
    "QuotaExceeded",
    "SchedulerError",
    "Success",
    "Unschedulable",
];

/// Returns the clusters that workloads may have to leave.
fn left<'a>(scheduler: &Scheduler, clusters: &'a Store<ClusterView>) -> Vec<&'a ClusterView> {
    left_clusters(scheduler, all(clusters).collect())
}

/// Iterates over the clusters.
pub(crate) fn all(clusters: &Store<ClusterView>) -> impl Iterator<Item = &ClusterView> {
    clusters.iter().map(|(_, cluster)| &**cluster)
}

/// Returns `true` if versions of a cluster differ in more than their room.
fn differs_beyond_room(old: &ClusterView, new: &ClusterView) -> bool {
    let mut with_old_room = new.clone();
    let version = &mut with_old_room.metadata.resource_version;
    version.clone_from(&old.metadata.resource_version);
    let room = &mut with_old_room.status.resource_summary;
    room.clone_from(&old.status.resource_summary);
    with_old_room != *old
}

/// Returns `true` if a person, or who acts like one, has changed the cluster.
fn is_edited(old: &ClusterView, new: &ClusterView) -> bool {
    old.metadata.labels != new.metadata.labels
        || old.metadata.generation != new.metadata.generation
        || old.spec != new.spec
}
