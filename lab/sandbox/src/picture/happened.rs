//! What happened, in its order, with the time from one stage of a cluster's story to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::Instant;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Happened {
    /// Counts from 1.
    pub(crate) id: u64,
    #[serde(skip)]
    pub(crate) at: Instant,
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The cluster it happened to; none: the whole fleet.
    pub(crate) cluster: Option<String>,
    pub(crate) stage: Stage,
    /// Whether it is a step towards health.
    pub(crate) good: bool,
    pub(crate) text: String,
    /// Since the stage before it in the same story; none where a story begins.
    pub(crate) after_ms: Option<u64>,
}

impl Happened {
    pub(crate) fn step(&self) -> Step {
        Step(self.stage, self.good)
    }
}

/// A kind of thing that happens, and whether it is a step towards health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step(pub(crate) Stage, pub(crate) bool);

/// The kinds of things that happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// A pod could not resolve a name.
    DnsBroken,
    /// Pods resolve names again.
    DnsMended,
    /// A node's agent turned its vote.
    Vote,
    /// The Cluster's condition on its DNS turned.
    Condition,
    /// The one on whether that is fresh turned.
    Reporter,
    /// The Cluster's remedyActions were set or cleared.
    Actions,
    /// The ingress blocks the cluster.
    Blocked,
    /// It does no more.
    Unblocked,
    /// The cluster is blocked and the last request that went there has gone.
    TrafficGone,
    /// The first one went there again.
    TrafficBack,
    /// An agent ended.
    AgentGone,
    /// It runs again.
    AgentBack,
    /// Another agent holds the lease.
    Leader,
    /// The Cluster object was deleted.
    ClusterDeleted,
    /// There is one again.
    ClusterCreated,
    /// An ingress was created.
    IngressCreated,
    /// An ingress was deleted.
    IngressDeleted,
    /// A Remedy was created.
    RemedyCreated,
    /// A Remedy was deleted.
    RemedyDeleted,
    /// The Karmada API does not answer.
    ApiGone,
    /// It answers again.
    ApiBack,
}

impl Stage {
    /// Whether a story begins with it, so that the time since the stage before means nothing.
    fn opens(self) -> bool {
        matches!(
            self,
            Self::DnsBroken
                | Self::DnsMended
                | Self::AgentGone
                | Self::AgentBack
                | Self::ClusterDeleted
                | Self::ClusterCreated
                | Self::IngressCreated
                | Self::IngressDeleted
                | Self::RemedyCreated
                | Self::RemedyDeleted
                | Self::ApiGone
                | Self::ApiBack
        )
    }
}

/// Tells moments of our own clock as the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    /// Since 1970.
    time: Duration,
}

impl Clock {
    /// Set by the system's clock, which is not looked at again.
    pub(crate) fn new() -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            instant: Instant::now(),
            time: time.unwrap_or_default(),
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn ms(&self, at: Instant) -> u64 {
        ms(self.time + at.saturating_duration_since(self.instant))
    }
}

/// Whole milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How many moments of a cluster are remembered: more than are told before something older is.
const MOMENTS: usize = 16;

fn remember(moments: &mut BTreeSet<Instant>, at: Instant) {
    moments.insert(at);
    if moments.len() > MOMENTS {
        moments.pop_first();
    }
}

/// Everything that happened so far, as it is told.
#[derive(Debug)]
pub(super) struct Story {
    clock: Clock,
    last_id: u64,
    /// When something happened to each cluster, lately.
    moments: BTreeMap<String, BTreeSet<Instant>>,
    fresh: Vec<Happened>,
}

impl Story {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last_id: 0,
            moments: BTreeMap::new(),
            fresh: Vec::new(),
        }
    }

    /// Something happened to a cluster, perhaps before what was told last.
    pub(super) fn tell(&mut self, at: Instant, cluster: &str, step: Step, text: String) {
        let moments = self.moments.entry(cluster.to_owned()).or_default();
        let before = moments.range(..=at).next_back();
        let after = before
            .filter(|_| !step.0.opens())
            .map(|before| at - *before);
        remember(moments, at);
        self.add(at, Some(cluster.to_owned()), step, text, after.map(ms));
    }

    /// Something happened to the fleet; for these clusters a story begins with it.
    pub(super) fn tell_of_all<'a>(
        &mut self,
        at: Instant,
        clusters: impl IntoIterator<Item = &'a String>,
        step: Step,
        text: String,
    ) {
        for cluster in clusters {
            remember(self.moments.entry(cluster.clone()).or_default(), at);
        }
        self.add(at, None, step, text, None);
    }

    /// What happened since this was last asked.
    pub(super) fn take(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.fresh)
    }

    fn add(
        &mut self,
        at: Instant,
        cluster: Option<String>,
        Step(stage, good): Step,
        text: String,
        after_ms: Option<u64>,
    ) {
        self.last_id += 1;
        self.fresh.push(Happened {
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
