//! The metrics of the probe of the Service network.

use std::time::Duration;

use health::observation::Observation;
use health::service_network::SERVICE_NETWORK;
use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

const ANSWERED: &str = "answered";
const INTERNAL: &str = "internal";

/// Counts rounds.
#[derive(Clone, Debug)]
pub(super) struct ServiceNetworkMetrics {
    rounds: Family<RoundLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoundLabels {
    /// `answered`, a failure class, or `internal`.
    result: &'static str,
}

impl ServiceNetworkMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            rounds: registry.register(
                "service_network_probe_rounds",
                "Rounds of connections to the Service's cluster IP, by result: answered, the worst class of failure, or internal (no connection could be tried)",
                Family::default(),
            ),
            duration: registry.register_with_unit(
                "service_network_probe_round_duration",
                "Duration of a round of connections to the Service's cluster IP",
                Unit::Seconds,
                Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            ),
        };
        let classes = SERVICE_NETWORK.classes.iter().map(|class| class.as_str());
        // Series that start at 0 let `rate()` see their first increase.
        for result in classes.chain([ANSWERED, INTERNAL]) {
            let labels = RoundLabels { result };
            metrics.rounds.get_or_create(&labels).inc_by(0);
        }
        metrics
    }

    pub(super) fn record_round(&self, observation: Observation, took: Duration) {
        let result = result(observation);
        self.rounds.get_or_create(&RoundLabels { result }).inc();
        self.duration.observe(took.as_secs_f64());
    }
}

/// Returns the result of a round in one word.
pub(super) fn result(observation: Observation) -> &'static str {
    match observation {
        Observation::Success | Observation::Partial(_) => ANSWERED,
        Observation::Failed(failure) => failure.class.as_str(),
        Observation::Internal => INTERNAL,
    }
}
