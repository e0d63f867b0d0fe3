//! The metrics of the rounds of declared signals, and of the file that declares them.

use std::time::Duration;

use health::observation::Observation;
use health::signal::Signal;
use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

const SUCCEEDED: &str = "succeeded";
const INTERNAL: &str = "internal";

/// Counts rounds of each signal.
#[derive(Clone, Debug)]
pub(super) struct RoundMetrics {
    rounds: Family<RoundLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoundLabels {
    signal: &'static str,
    /// `succeeded`, a failure class, or `internal`.
    result: &'static str,
}

impl RoundMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            rounds: registry.register(
                "signal_probe_rounds",
                "Rounds of the probe of a declared signal, by result: succeeded, the class of failure, or internal (nothing could be observed)",
                Family::default(),
            ),
            duration: registry.register_with_unit(
                "signal_probe_round_duration",
                "Duration of a round of the probe of a declared signal",
                Unit::Seconds,
                Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            ),
        }
    }

    /// Begins the series of a signal: from 0, `rate()` sees their first increase.
    pub(super) fn begin(&self, signal: &'static Signal) {
        for labels in every(signal) {
            self.rounds.get_or_create(&labels).inc_by(0);
        }
    }

    /// Removes the series of a signal that is declared no more.
    pub(super) fn remove(&self, signal: &'static Signal) {
        for labels in every(signal) {
            self.rounds.remove(&labels);
        }
    }

    pub(super) fn record_round(
        &self,
        signal: &'static Signal,
        observation: Observation,
        took: Duration,
    ) {
        let labels = RoundLabels {
            signal: signal.name,
            result: result(observation),
        };
        self.rounds.get_or_create(&labels).inc();
        self.duration.observe(took.as_secs_f64());
    }
}

/// Returns the labels of every result of a signal's rounds.
fn every(signal: &'static Signal) -> impl Iterator<Item = RoundLabels> {
    let classes = signal.classes.iter().map(|class| class.as_str());
    let results = classes.chain([SUCCEEDED, INTERNAL]);
    results.map(|result| RoundLabels {
        signal: signal.name,
        result,
    })
}

/// Returns the result of a round in one word.
pub(super) fn result(observation: Observation) -> &'static str {
    match observation {
        Observation::Success | Observation::Partial(_) => SUCCEEDED,
        Observation::Failed(failure) => failure.class.as_str(),
        Observation::Internal => INTERNAL,
    }
}

/// Registers the metric of whether the file of signals is good.
pub(super) fn file_is_invalid(registry: &mut Registry) -> Gauge {
    registry.register(
        "signals_file_invalid",
        "1 while the file of signals cannot be used and the last good one counts; 0 otherwise",
        Gauge::default(),
    )
}
