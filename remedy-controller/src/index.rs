//! The watched objects, the facts about each cluster, and the state of each remedy.
//!
//! - `follow`: the consequences of changes of clusters and remedies, and of the clock.
//! - `claims`: which clusters may be blocked, and which remedies concern each. The whole fleet decides about that.

mod claims;
mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::{Cluster, Condition, Remedy};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::store::Store;
use objects::Key;
use tokio::time::Instant;
use traffic::ClusterKind;
use traffic::remedy::{
    BlockBound, Expiries, FleetLookup, MaxBlocked, OverBound, Problem, Reach, ReachIndex, Scope,
    keep_facts, problems, required_conditions,
};

use crate::condition_types::ConditionTypes;

/// The topic of writes to a cluster.
pub(crate) const CLUSTER: &str = "cluster";
/// The topic of writes to a remedy.
pub(crate) const REMEDY: &str = "remedy";

/// A part of the fleet to which a remedy refers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reference {
    /// Every cluster, by its scope.
    EveryCluster,
    /// The cluster of this name, by its scope.
    Cluster(String),
    /// The conditions of this type.
    Condition(String),
}

/// The watched objects and the state that depends on their history.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) clusters: Store<Cluster>,
    pub(crate) remedies: Store<Remedy, Reference>,
    /// The instant at which a change of conditions arrived, until the actions follow from them.
    arrived: BTreeMap<Key, Instant>,
    /// Conditions of ours whose status changed since the cluster was last reconciled.
    changed: BTreeMap<Key, BTreeMap<String, Condition>>,
    /// The clusters that conditions block or would block. The whole fleet decides about each of them, so
    /// it is kept with the objects and changes with them, before any cluster is woken.
    pub(crate) bound: BlockBound,
    /// Set unless a term has begun and no read has shown yet which blocks the former leader has set.
    is_surveyed: bool,
    /// The clusters over the bound whose Event has been recorded.
    noted_over_bound: BTreeSet<Key>,
    /// The remedies that only observe and whose Event on a cluster has been recorded.
    noted_observing: BTreeMap<Key, BTreeSet<String>>,
    /// The clusters that each remedy concerns.
    reach: ReachIndex,
    /// The moments at which remedies expire.
    pub(crate) expiries: Expiries,
    /// The types of the conditions of all clusters.
    condition_types: ConditionTypes,
    /// The remedies whose status may differ since they were last taken.
    concerned: BTreeSet<Key>,
    /// The clock by which remedies expire.
    clock: fn() -> Timestamp,
}

/// Everything that decides about one cluster, at one instant.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) cluster: Arc<Cluster>,
    /// The remedies whose scope covers the cluster.
    pub(crate) remedies: Vec<Arc<Remedy>>,
    /// Set if every remedy decoded.
    pub(crate) complete: bool,
    /// Conditions of ours whose status changed since the last snapshot.
    pub(crate) changed: Vec<Condition>,
    /// Set if the bound keeps the cluster unblocked although a condition requires a block.
    pub(crate) over_bound: Option<OverBound>,
    /// The instant at which a change of conditions arrived, if the actions do not follow from them yet.
    pub(crate) arrived: Option<Instant>,
    /// The time.
    pub(crate) now: Timestamp,
}

/// Everything that decides about the status of one remedy, at one instant.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) remedy: Arc<Remedy>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) reach: Reach,
    /// The time.
    pub(crate) now: Timestamp,
}

impl Index {
    /// Creates an index of clusters of this `kind`, and of remedies, whose objects `expectations` wait for.
    pub(crate) fn new(
        kind: ClusterKind,
        max_blocked: MaxBlocked,
        clock: fn() -> Timestamp,
        expectations: &Expectations,
    ) -> Self {
        let clusters = Store::default().keeping(keep_facts);
        Self {
            clusters: clusters.expecting_as(expectations, kind.resource()),
            remedies: Store::by(references).expecting(expectations, &()),
            arrived: BTreeMap::new(),
            changed: BTreeMap::new(),
            bound: BlockBound::new(max_blocked),
            is_surveyed: true,
            noted_over_bound: BTreeSet::new(),
            noted_observing: BTreeMap::new(),
            reach: ReachIndex::default(),
            expiries: Expiries::default(),
            condition_types: ConditionTypes::default(),
            concerned: BTreeSet::new(),
            clock,
        }
    }

    /// Begins a term of leadership. Another leader may have set blocks that this replica admitted others
    /// for, and some of which its watch has not shown. It has recorded the changes of conditions so far.
    pub(crate) fn begin_term(&mut self) {
        self.changed.clear();
        self.arrived.clear();
        self.is_surveyed = false;
        self.bound.restart();
        let all = self.keys();
        self.claim(&all);
        self.noted_over_bound.clear();
        self.noted_observing.clear();
    }

    /// Returns `true` if a read must show which clusters are blocked before the cluster `key` is.
    pub(crate) fn needs_survey(&self, key: &Key) -> bool {
        self.is_unsurveyed() && self.bound.over(&key.name).is_some()
    }

    /// Returns `true` if a read must show which clusters are blocked before another one is.
    fn is_unsurveyed(&self) -> bool {
        !self.is_surveyed && self.bound.binds()
    }

    /// Iterates over the remedies whose scope covers the cluster `key`.
    fn covering(&self, key: &Key) -> impl Iterator<Item = &Arc<Remedy>> + use<'_> {
        let every = self.remedies.of(&Reference::EveryCluster);
        every.chain(self.remedies.of(&Reference::Cluster(key.name.clone())))
    }

    /// Returns the time by which remedies expire.
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the keys of all clusters.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.clusters.keys().cloned().collect()
    }

    /// Returns the remedies whose status may differ since this was last asked.
    pub(crate) fn take_concerned(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.concerned)
    }

    /// Returns a snapshot of the cluster `key`, and `None` if it does not exist.
    pub(crate) fn snapshot(&mut self, key: &Key) -> Option<Snapshot> {
        let changed = self.changed.remove(key).unwrap_or_default();
        let cluster = Arc::clone(self.clusters.get(key)?);
        let remedies = self.covering(key).map(Arc::clone).collect();
        Some(Snapshot {
            cluster,
            remedies,
            complete: self.remedies.unread().is_empty(),
            changed: changed.into_values().collect(),
            over_bound: self.bound.over(&key.name),
            arrived: self.arrived.get(key).copied(),
            now: self.now(),
        })
    }

    /// Returns the effect of the remedy `key` and its reason, and `None` if it does not exist.
    pub(crate) fn view(&self, key: &Key) -> Option<View> {
        let remedy = Arc::clone(self.remedies.get(key)?);
        Some(self.view_of(remedy))
    }

    /// Iterates over the effect of each remedy, and its reason.
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        let remedies = self.remedies.iter();
        remedies.map(|(_, remedy)| self.view_of(Arc::clone(remedy)))
    }

    fn view_of(&self, remedy: Arc<Remedy>) -> View {
        let fleet = FleetLookup {
            has_cluster: &|name| self.clusters.exists(&Key::cluster_scoped(name)),
            has_condition: &|kind| self.condition_types.contains(kind),
        };
        let name = remedy.metadata.name.as_deref().unwrap_or_default();
        View {
            problems: problems(&remedy, fleet),
            reach: self.reach.of(name),
            now: self.now(),
            remedy,
        }
    }

    /// Takes in that a change of conditions of the cluster `key` has led to its actions, or to nothing.
    pub(crate) fn followed(&mut self, key: &Key) {
        self.arrived.remove(key);
    }

    /// Remembers whether the cluster `key` is over the bound, and returns `true` if it was not before.
    pub(crate) fn note_over_bound(&mut self, key: &Key, over: bool) -> bool {
        let noted = &mut self.noted_over_bound;
        if over {
            noted.insert(key.clone())
        } else {
            noted.remove(key);
            false
        }
    }

    /// Remembers the remedies that only observe and would act on the cluster `key`, and returns those that
    /// did not before.
    pub(crate) fn note_observing(
        &mut self,
        key: &Key,
        remedies: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let noted = &mut self.noted_observing;
        let before = noted.remove(key).unwrap_or_default();
        let new = remedies.difference(&before).cloned().collect();
        if !remedies.is_empty() {
            noted.insert(key.clone(), remedies);
        }
        new
    }
}

impl Reference {
    fn cluster(&self) -> Option<&str> {
        match self {
            Self::Cluster(name) => Some(name),
            Self::EveryCluster | Self::Condition(_) => None,
        }
    }
}

/// Returns the references of a remedy.
fn references(remedy: &Remedy) -> BTreeSet<Reference> {
    let mut references: BTreeSet<Reference> = match Scope::of(remedy) {
        Scope::Every => [Reference::EveryCluster].into(),
        Scope::Named(names) => names.into_iter().map(Reference::Cluster).collect(),
    };
    let required = required_conditions(remedy).into_iter();
    references.extend(required.map(Reference::Condition));
    references
}
