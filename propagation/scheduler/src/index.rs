//! The watched objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::{ClusterResourceBinding, ClusterView, ResourceBinding, TargetCluster};
use karmada_rules::schedule::{Assumed, KnownClusters, Neighbours, Scheduler};
use karmada_runtime::cache::{Cache, Undecoded};
use karmada_runtime::expectations::Expectations;
use objects::Key;

use crate::assumptions::AssumedBindings;
use crate::binding::AnyBinding;
use crate::groups::Groups;

/// The topic of writes to a binding.
pub(crate) const BINDING: &str = "binding";

/// The watched objects and what depends on their history.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) scheduler: Scheduler,
    /// The groups of workloads; `None` if they are not heeded.
    pub(crate) groups: Option<Groups>,
    /// What is assumed of bindings; `None` if nobody keeps account of it.
    pub(crate) assumed: Option<AssumedBindings>,
    /// The clusters of the last decisions about bindings that heed others, unless they are written: `bindings` have those.
    pub(crate) decisions: BTreeMap<Key, Vec<TargetCluster>>,
    /// True if bindings of a higher priority go first.
    pub(crate) heeds_priority: bool,
    /// The writes that `bindings` and `cluster_bindings` have still to show.
    pub(crate) expectations: Expectations,
    pub(crate) bindings: Cache<ResourceBinding>,
    pub(crate) cluster_bindings: Cache<ClusterResourceBinding>,
    pub(crate) clusters: Cache<ClusterView>,
    /// True once every cluster has been listed.
    pub(crate) clusters_listed: bool,
    /// Bindings whose affinity selects a cluster that has changed since they were decided.
    pub(crate) cluster_changed: BTreeSet<Key>,
    /// Bindings whose placement is not supported, with the message of the last Event.
    pub(crate) left_alone: BTreeMap<Key, String>,
}

/// Everything that decides about one binding, at one instant.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) scheduler: Scheduler,
    pub(crate) binding: AnyBinding,
    /// The others of its groups of workloads; `None` if it is in none.
    pub(crate) neighbours: Option<Neighbours>,
    /// What is assumed to be in clusters besides what they report; `None` if nobody keeps account of it.
    pub(crate) assumed: Option<Assumed>,
    pub(crate) clusters: Vec<Arc<ClusterView>>,
    /// Set if every cluster decoded.
    pub(crate) complete: bool,
    pub(crate) cluster_changed: bool,
}

impl Snapshot {
    /// Returns the clusters that decoded.
    pub(crate) fn clusters(&self) -> Vec<&ClusterView> {
        self.clusters.iter().map(|cluster| &**cluster).collect()
    }

    /// Returns `true` if what is decided about other bindings decides about this one.
    pub(crate) fn depends_on_others(&self) -> bool {
        self.neighbours.is_some() || self.assumed.is_some()
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
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        let expectations = Expectations::default();
        Self {
            scheduler,
            groups: None,
            assumed: None,
            decisions: BTreeMap::new(),
            heeds_priority: false,
            bindings: Cache::expecting(&expectations, &()),
            cluster_bindings: Cache::expecting(&expectations, &()),
            expectations,
            clusters: Cache::default(),
            clusters_listed: false,
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

    /// Returns the binding `key`; one without a namespace is a `ClusterResourceBinding`.
    pub(crate) fn binding(&self, key: &Key) -> Option<AnyBinding> {
        if key.namespace.is_empty() {
            let binding = self.cluster_bindings.get(key)?;
            return Some(AnyBinding::ClusterScoped(Arc::clone(binding)));
        }
        let binding = self.bindings.get(key)?;
        Some(AnyBinding::Namespaced(Arc::clone(binding)))
    }

    /// Returns bindings with their priorities, as far as these are heeded.
    pub(crate) fn priorities(&self, keys: &[Key]) -> Vec<(Key, i32)> {
        let keys = keys.iter().filter(|_| self.heeds_priority);
        let priority = |key: &Key| {
            let binding = self.bindings.get(key)?;
            Some(binding.spec.schedule_priority.as_ref()?.priority)
        };
        keys.map(|key| (key.clone(), priority(key).unwrap_or_default()))
            .collect()
    }

    /// Returns a snapshot of the binding `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let groups = self.groups.as_ref();
        Some(Snapshot {
            scheduler: self.scheduler.clone(),
            binding: self.binding(key)?,
            neighbours: groups
                .and_then(|groups| groups.neighbours(key, &self.bindings, &self.decisions)),
            assumed: self.assumed_for(key),
            clusters: self
                .clusters
                .iter()
                .map(|(_, cluster)| Arc::clone(cluster))
                .collect(),
            complete: self.clusters.unread().is_empty(),
            cluster_changed: self.cluster_changed.contains(key),
        })
    }

    /// Counts our bindings by the reason of their condition `Scheduled`; empty for those without one.
    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(REASONS.map(|reason| (reason, 0)));
        let ours = self.ours();
        for binding in ours.filter(|binding| self.scheduler.schedules(binding.view())) {
            let condition = binding.view().scheduled();
            let reason = condition.map_or("", |condition| &condition.reason);
            let known = REASONS.into_iter().find(|known| *known == reason);
            *counts.entry(known.unwrap_or("")).or_default() += 1;
        }
        counts
    }

    /// Returns the number of objects of each kind whose newest version does not decode.
    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        vec![
            ("Cluster", self.clusters.undecoded()),
            ("ClusterResourceBinding", self.cluster_bindings.undecoded()),
            ("ResourceBinding", self.bindings.undecoded()),
        ]
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
