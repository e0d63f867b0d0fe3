//! The timeline: the events, with the time between the stages of each cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TimelineEntry {
    /// Counted from 1, in the order in which entries were made.
    pub(crate) id: u64,
    #[serde(skip)]
    pub(crate) at: Instant,
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The cluster it happened to; none for the whole fleet.
    pub(crate) cluster: Option<String>,
    pub(crate) stage: Stage,
    /// Set if it is a step towards health.
    pub(crate) good: bool,
    pub(crate) text: String,
    /// Milliseconds since the stage before it; none for a stage that [opens](Stage::opens) a sequence.
    pub(crate) after_ms: Option<u64>,
}

impl TimelineEntry {
    pub(crate) fn step(&self) -> Step {
        Step(self.stage, self.good)
    }
}

/// A stage, and `true` for a step towards health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step(pub(crate) Stage, pub(crate) bool);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// A pod could not resolve a name.
    DnsBroken,
    /// Pods resolve names again.
    DnsMended,
    /// Pods of a node could not connect to Services.
    NetworkBroken,
    /// Pods of every node connect to Services again.
    NetworkMended,
    /// The gateway got no response of the cluster.
    ReachLost,
    /// It gets responses again.
    ReachBack,
    /// The control plane got no response of the cluster's API.
    LinkLost,
    /// It gets responses again.
    LinkBack,
    /// A node changed its vote.
    Vote,
    /// The Cluster's condition on its DNS, on its Service network, or on whether the gateway reaches it, was set or changed
    /// its status.
    Condition,
    /// The Cluster's condition on a reporter was set or changed its status.
    Reporter,
    /// The Cluster's remedyActions were set or cleared.
    Actions,
    /// An ingress blocks the cluster.
    Blocked,
    /// No ingress blocks the cluster any more.
    Unblocked,
    /// The cluster is blocked, and the last request to it has ended.
    TrafficGone,
    /// The first request went there again.
    TrafficBack,
    AgentGone,
    AgentBack,
    /// Another agent holds the lease.
    Leader,
    /// The Cluster object was deleted.
    ClusterDeleted,
    /// A Cluster object that was deleted was created again.
    ClusterCreated,
    IngressCreated,
    IngressDeleted,
    RemedyCreated,
    RemedyDeleted,
    /// The end of a Remedy passed.
    RemedyExpired,
    /// The template wants another version.
    VersionWanted,
    /// The pods of the cluster are of another version, and ready.
    VersionRuns,
    /// Changes of the workload no longer reach the cluster.
    RolloutPaused,
    /// Changes of the workload reach the cluster again.
    RolloutResumed,
    /// The Cluster's `NoExecute` taints, which drive workloads out, were set or cleared.
    Taints,
    /// The hub wants another version of the store.
    StoreWanted,
    /// The pods of the store are of another version, and ready.
    StoreRuns,
    /// A placement picks the cluster, or no longer.
    Picked,
    /// The cluster gets the latest of a placement.
    Wave,
    /// The latest of a placement will not be available in the cluster.
    PlacementStuck,
    /// The cluster joins the fleet of the hub, or leaves it.
    Membership,
    /// Placements give the cluster nothing new, or they do again.
    Cordon,
    /// The Karmada API stopped responding.
    ApiGone,
    /// The Karmada API responds again.
    ApiBack,
}

impl Stage {
    /// Returns `true` if a sequence begins with it, so that the time since the stage before means
    /// nothing.
    fn opens(self) -> bool {
        matches!(
            self,
            Self::DnsBroken
                | Self::DnsMended
                | Self::NetworkBroken
                | Self::NetworkMended
                | Self::ReachLost
                | Self::ReachBack
                | Self::LinkLost
                | Self::LinkBack
                | Self::AgentGone
                | Self::AgentBack
                | Self::ClusterDeleted
                | Self::ClusterCreated
                | Self::IngressCreated
                | Self::IngressDeleted
                | Self::RemedyCreated
                | Self::RemedyDeleted
                | Self::RemedyExpired
                | Self::VersionWanted
                | Self::RolloutPaused
                | Self::RolloutResumed
                | Self::StoreWanted
                | Self::Membership
                | Self::Cordon
                | Self::ApiGone
                | Self::ApiBack
        )
    }

    /// Returns the histories that the stage is a part of. Its time counts from the first one.
    fn histories(self) -> &'static [History] {
        match self {
            Self::VersionWanted
            | Self::VersionRuns
            | Self::RolloutPaused
            | Self::RolloutResumed => &[History::Workload],
            Self::StoreWanted
            | Self::StoreRuns
            | Self::Picked
            | Self::Wave
            | Self::PlacementStuck
            | Self::Membership
            | Self::Cordon => &[History::Placement],
            // A verdict leads to it, and it leads to the eviction of the workload.
            Self::Taints => &[History::Traffic, History::Workload],
            _ => &[History::Traffic],
        }
    }
}

/// A line of stages of a cluster that follow each other: a rollout says nothing about how long an outage took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum History {
    Traffic,
    Workload,
    Placement,
}

/// A converter of monotonic instants to the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    /// The time since 1970 at that instant.
    time: Duration,
}

impl Clock {
    /// Reads the system's clock once, so that its later adjustments cannot reorder the timeline.
    pub(crate) fn new() -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            instant: Instant::now(),
            time: time.unwrap_or_default(),
        }
    }

    /// Returns an instant in milliseconds since 1970.
    pub(crate) fn ms(&self, at: Instant) -> u64 {
        ms(self.time + at.saturating_duration_since(self.instant))
    }
}

/// Returns a duration in whole milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The number of moments of a cluster that are remembered: more than can pass before an entry that is
/// timed earlier is made.
const MOMENTS: usize = 16;

#[derive(Debug)]
pub(super) struct Timeline {
    clock: Clock,
    last_id: u64,
    /// The newest moments of each cluster's histories.
    moments: BTreeMap<(String, History), BTreeSet<Instant>>,
    fresh: Vec<TimelineEntry>,
}

impl Timeline {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last_id: 0,
            moments: BTreeMap::new(),
            fresh: Vec::new(),
        }
    }

    /// Adds an entry on a cluster, which may be timed before the entry added last.
    pub(super) fn add(&mut self, at: Instant, cluster: &str, step: Step, text: String) {
        let after = match step.0.histories() {
            [history, ..] if !step.0.opens() => self.since_last(*history, cluster, at),
            _ => None,
        };
        self.remember(step.0, cluster, at);
        self.push(at, Some(cluster.to_owned()), step, text, after.map(ms));
    }

    /// Adds an entry on the fleet, with which a sequence begins for these clusters.
    pub(super) fn add_for_all<'a>(
        &mut self,
        at: Instant,
        clusters: impl IntoIterator<Item = &'a String>,
        step: Step,
        text: String,
    ) {
        for cluster in clusters {
            self.remember(step.0, cluster, at);
        }
        self.push(at, None, step, text, None);
    }

    /// Returns the time from the newest moment of a history before `at` until then.
    fn since_last(&self, history: History, cluster: &str, at: Instant) -> Option<Duration> {
        let moments = self.moments.get(&(cluster.to_owned(), history))?;
        moments.range(..=at).next_back().map(|before| at - *before)
    }

    fn remember(&mut self, stage: Stage, cluster: &str, at: Instant) {
        for history in stage.histories() {
            let moments = self.moments.entry((cluster.to_owned(), *history));
            let moments = moments.or_default();
            moments.insert(at);
            if moments.len() > MOMENTS {
                moments.pop_first();
            }
        }
    }

    /// Takes the entries added since the last call.
    pub(super) fn take(&mut self) -> Vec<TimelineEntry> {
        std::mem::take(&mut self.fresh)
    }

    fn push(
        &mut self,
        at: Instant,
        cluster: Option<String>,
        Step(stage, good): Step,
        text: String,
        after_ms: Option<u64>,
    ) {
        self.last_id += 1;
        self.fresh.push(TimelineEntry {
            id: self.last_id,
            at,
            at_ms: self.clock.ms(at),
            cluster,
            stage,
            good,
            text,
            after_ms,
        });
    }
}
