//! The metrics of the probe of a gateway.

use std::sync::Arc;
use std::time::Duration;

use health::observation::Observation;
use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

use crate::vote::ByCluster;

const REACHED: &str = "reached";
const INTERNAL: &str = "internal";

/// Counts rounds.
#[derive(Clone, Debug)]
pub(super) struct ReachabilityMetrics {
    rounds: Family<RoundLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoundLabels {
    member: Arc<str>,
    /// `reached`, a failure class, or `internal`.
    result: &'static str,
}

impl ReachabilityMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            rounds: registry.register(
                "reachability_probe_rounds",
                "Rounds of connections to each member cluster, by result: reached, the worst class of failure, or internal (no connection could be tried)",
                Family::default(),
            ),
            duration: registry.register_with_unit(
                "reachability_probe_round_duration",
                "Duration of a round of connections to all member clusters",
                Unit::Seconds,
                Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            ),
        }
    }

    pub(super) fn record_round(&self, observed: &ByCluster, took: Duration) {
        for (cluster, observation) in observed {
            let labels = RoundLabels {
                member: Arc::clone(cluster),
                result: result(*observation),
            };
            self.rounds.get_or_create(&labels).inc();
        }
        self.duration.observe(took.as_secs_f64());
    }
}

/// Returns the result of a round for one cluster in one word.
pub(super) fn result(observation: Observation) -> &'static str {
    match observation {
        Observation::Success | Observation::Partial(_) => REACHED,
        Observation::Failed(failure) => failure.class.as_str(),
        Observation::Internal => INTERNAL,
    }
}
