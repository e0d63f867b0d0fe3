//! The watched objects, looked up by cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::{Cluster, Condition, Remedy};
use karmada_runtime::cache::{Cache, Undecoded};
use karmada_runtime::expectations::Expectations;
use objects::Key;
use objects::reverse_index::ReverseIndex;
use tokio::time::Instant;
use traffic::ClusterKind;
use traffic::remedy::{
    BlockBound, Claim, Expiries, FleetLookup, MaxBlocked, OverBound, Problem, Reach, ReachIndex,
    Reached, RemedyIndex, Scope, problems,
};

use crate::condition_types::ConditionTypes;

/// The topic of what is written to a cluster.
pub(crate) const CLUSTER: &str = "cluster";
/// The topic of what is written to a remedy.
pub(crate) const REMEDY: &str = "remedy";

/// The watched objects and what depends on their history.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) clusters: Cache<Cluster>,
    pub(crate) remedies: Cache<Remedy>,
    pub(crate) by_cluster: RemedyIndex,
    /// The writes that the watches have still to show.
    pub(crate) expectations: Expectations,
    /// The instant at which a change of conditions arrived, until the actions follow from them.
    pub(crate) arrived: BTreeMap<Key, Instant>,
    /// Conditions of ours whose status changed since the cluster was last reconciled.
    pub(crate) changed: BTreeMap<Key, BTreeMap<String, Condition>>,
    /// The clusters that conditions block or would block. The whole fleet decides about each of them, so
    /// it is kept with the objects and changes with them, before any cluster is woken.
    pub(crate) bound: BlockBound,
    /// Set unless a term has begun and no read has shown yet which blocks the former leader has set.
    pub(crate) is_surveyed: bool,
    /// The clusters over the bound whose Event has been recorded.
    pub(crate) noted_over_bound: BTreeSet<Key>,
    /// The remedies that only observe and whose Event on a cluster has been recorded.
    pub(crate) noted_observing: BTreeMap<Key, BTreeSet<String>>,
    /// The clusters that each remedy concerns.
    reach: ReachIndex,
    /// The moments at which remedies expire.
    pub(crate) expiries: Expiries,
    /// The remedies that require each type of condition.
    pub(crate) requiring: ReverseIndex<String, String>,
    /// The types of the conditions of all clusters.
    pub(crate) condition_types: ConditionTypes,
    /// The remedies whose status may differ since they were last taken.
    pub(crate) concerned: BTreeSet<String>,
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
    pub(crate) fn new(
        kind: ClusterKind,
        max_blocked: MaxBlocked,
        clock: fn() -> Timestamp,
    ) -> Self {
        let expectations = Expectations::default();
        Self {
            clusters: Cache::expecting_as(&expectations, kind.resource()),
            remedies: Cache::expecting(&expectations, &()),
            by_cluster: RemedyIndex::default(),
            expectations,
            arrived: BTreeMap::new(),
            changed: BTreeMap::new(),
            bound: BlockBound::new(max_blocked),
            is_surveyed: true,
            noted_over_bound: BTreeSet::new(),
            noted_observing: BTreeMap::new(),
            reach: ReachIndex::default(),
            expiries: Expiries::default(),
            requiring: ReverseIndex::default(),
            condition_types: ConditionTypes::default(),
            concerned: BTreeSet::new(),
            clock,
        }
    }

    /// Begins a term of leadership. Another leader may have set blocks that this replica admitted others
    /// for, and some of which its watch has not shown.
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

    /// Returns `true` if a read must show which clusters are blocked before another one is.
    pub(crate) fn needs_survey(&self) -> bool {
        !self.is_surveyed && self.bound.binds()
    }

    /// Updates what `clusters` claim of the bound and which remedies concern them, and returns those that
    /// are admitted thereby.
    pub(crate) fn claim<'a>(&mut self, clusters: impl IntoIterator<Item = &'a Key>) -> Vec<Key> {
        let now = self.now();
        let mut touched: Vec<Key> = Vec::new();
        for key in clusters {
            let claim = self.clusters.get(key).map_or(Claim::None, |cluster| {
                Claim::of(cluster, self.covering(key).map(|remedy| &**remedy), now)
            });
            self.bound.replace(&key.name, claim);
            touched.push(key.clone());
        }
        self.bound.set_clusters(self.clusters.existing());
        let admitted = self.admit();
        for key in touched.iter().chain(&admitted) {
            self.reach(key, now);
        }
        admitted
    }

    /// Updates which remedies concern the cluster `key`.
    fn reach(&mut self, key: &Key, now: Timestamp) {
        let reached = self.clusters.get(key).map(|cluster| {
            let may_block = self.bound.over(&key.name).is_none();
            let covering = self.covering(key).map(|remedy| &**remedy);
            Reached::of(cluster, covering, now, may_block)
        });
        let changed = self.reach.replace(&key.name, reached.unwrap_or_default());
        self.concerned.extend(changed);
    }

    /// Admits clusters to being blocked and returns them.
    fn admit(&mut self) -> Vec<Key> {
        if self.needs_survey() {
            return Vec::new();
        }
        let admitted = self.bound.admit();
        admitted.into_iter().map(Key::cluster_scoped).collect()
    }

    /// Iterates over the remedies whose scope covers the cluster `key`.
    fn covering(&self, key: &Key) -> impl Iterator<Item = &Arc<Remedy>> {
        self.by_cluster
            .covering(&key.name)
            .filter_map(|name| self.remedies.get(&Key::cluster_scoped(name)))
    }

    /// Returns the time by which remedies expire.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the keys of all clusters.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.clusters.iter().map(|(key, _)| key.clone()).collect()
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

    /// Returns what the remedy `key` does and why, and `None` if it does not exist.
    pub(crate) fn view(&self, key: &Key) -> Option<View> {
        let remedy = Arc::clone(self.remedies.get(key)?);
        Some(self.view_of(remedy))
    }

    /// Iterates over what each remedy does and why.
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        let remedies = self.remedies.iter();
        remedies.map(|(_, remedy)| self.view_of(Arc::clone(remedy)))
    }

    fn view_of(&self, remedy: Arc<Remedy>) -> View {
        let has_cluster = |name: &str| {
            let key = Key::cluster_scoped(name);
            self.clusters.get(&key).is_some() || self.clusters.unread().contains(&key)
        };
        let has_condition = |kind: &str| self.condition_types.contains(kind);
        let fleet = FleetLookup {
            has_cluster: &has_cluster,
            has_condition: &has_condition,
        };
        let name = remedy.metadata.name.as_deref().unwrap_or_default();
        View {
            problems: problems(&remedy, fleet),
            reach: self.reach.of(name),
            now: self.now(),
            remedy,
        }
    }

    /// Takes in a look at the clock, and wakes the clusters of the remedies that have expired since.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<Key> {
        let expired = self.expiries.look(now);
        let scopes = expired.iter().filter_map(|name| {
            let remedy = self.remedies.get(&Key::cluster_scoped(name))?;
            Some(Scope::of(remedy))
        });
        let concerned = scopes.fold(Scope::Named(BTreeSet::new()), Scope::union);
        self.concerned.extend(expired);
        self.wake(concerned)
    }

    /// Wakes the clusters of a scope, with those that are admitted thereby.
    pub(crate) fn wake(&mut self, scope: Scope) -> Vec<Key> {
        let mut woken = match scope {
            Scope::Every => self.keys(),
            Scope::Named(names) => names.into_iter().map(Key::cluster_scoped).collect(),
        };
        let admitted = self.claim(&woken);
        woken.extend(admitted);
        woken
    }

    /// Returns the number of objects of each kind whose newest version does not decode.
    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        vec![
            ("Cluster", self.clusters.undecoded()),
            ("Remedy", self.remedies.undecoded()),
        ]
    }
}
