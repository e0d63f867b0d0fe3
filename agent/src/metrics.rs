//! What the agent counts. Labels are closed sets: no names, no servers.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use rules::observation::Observation;
use rules::threshold::Vote;

/// What becomes of the probe's rounds.
#[derive(Clone, Debug)]
pub(crate) struct ProbeMetrics {
    rounds: Family<RoundLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoundLabels {
    /// `resolved`, a failure class, or `internal`.
    result: &'static str,
}

impl ProbeMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            rounds: Family::default(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 13)),
        };
        registry.register(
            "probe_rounds",
            "Rounds of DNS questions, by result: resolved, the worst class of failure, or internal (could not ask)",
            metrics.rounds.clone(),
        );
        registry.register_with_unit(
            "probe_round_duration",
            "Time a round of DNS questions took",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        metrics
    }

    pub(crate) fn observe(&self, observation: Observation, took: Duration) {
        let result = observation.as_str();
        self.rounds.get_or_create(&RoundLabels { result }).inc();
        self.duration.observe(took.as_secs_f64());
    }
}

/// What this node votes.
#[derive(Clone, Debug, Default)]
pub(crate) struct VoteMetrics {
    vote: Family<VoteLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VoteLabels {
    vote: &'static str,
}

impl VoteMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "vote",
            "1 for what this node says of the cluster's DNS now; no 1 while it has no vote",
            metrics.vote.clone(),
        );
        metrics.set(None);
        metrics
    }

    pub(crate) fn set(&self, vote: Option<Vote>) {
        let current = vote.map(|vote| match vote {
            Vote::FirstSuccess => "first_success",
            Vote::Healthy => "healthy",
            Vote::Unhealthy(_) => "unhealthy",
        });
        for vote in ["first_success", "healthy", "unhealthy"] {
            let gauge = self.vote.get_or_create(&VoteLabels { vote });
            gauge.set(i64::from(current == Some(vote)));
        }
    }
}
