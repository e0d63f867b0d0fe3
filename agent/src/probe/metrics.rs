//! The metrics that every probe has of its rounds.

use std::time::Duration;

use health::observation::Observation;
use health::signal::Signal;
use karmada_runtime::metrics::{LabelSet, Registry};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

/// The result of a round that observes nothing.
pub(super) const INTERNAL: &str = "internal";

/// The result of a round in one word, as metrics have it. A probe logs a round when it is another than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RoundLabels {
    /// The probe's word for a success, a failure class, or `internal`.
    result: &'static str,
}

impl RoundLabels {
    /// Returns the result of a round, of which `success` is that of one that succeeds.
    pub(super) fn of(observation: Observation, success: &'static str) -> Self {
        let result = match observation {
            Observation::Success | Observation::Partial(_) => success,
            Observation::Failed(failure) => failure.class.as_str(),
            Observation::Internal => INTERNAL,
        };
        Self { result }
    }

    /// Returns the results that rounds of a signal can have.
    pub(super) fn all(signal: &Signal, success: &'static str) -> impl Iterator<Item = Self> {
        let classes = signal.classes.iter().map(|class| class.as_str());
        let results = classes.chain([success, INTERNAL]);
        results.map(|result| Self { result })
    }
}

/// Counts rounds, and measures how long they take.
#[derive(Clone, Debug)]
pub(super) struct RoundMetrics<L = RoundLabels> {
    rounds: Family<L, Counter>,
    duration: Histogram,
}

impl<L: LabelSet + Default> RoundMetrics<L> {
    /// Registers the metrics, with a prefix and the meaning of either.
    pub(super) fn register(registry: &mut Registry, prefix: &str, help: [&str; 2]) -> Self {
        let [rounds, duration] = help;
        Self {
            rounds: registry.register(&format!("{prefix}probe_rounds"), rounds, Family::default()),
            duration: registry.register_with_unit(
                &format!("{prefix}probe_round_duration"),
                duration,
                Unit::Seconds,
                Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            ),
        }
    }

    /// Begins series: from 0, `rate()` sees their first increase.
    pub(super) fn begin(&self, series: impl Iterator<Item = L>) {
        for labels in series {
            self.rounds.get_or_create(&labels).inc_by(0);
        }
    }

    /// Removes series.
    pub(super) fn remove(&self, series: impl Iterator<Item = L>) {
        for labels in series {
            self.rounds.remove(&labels);
        }
    }

    /// Counts a round by each of its results.
    pub(super) fn record(&self, results: impl IntoIterator<Item = L>, took: Duration) {
        for labels in results {
            self.rounds.get_or_create(&labels).inc();
        }
        self.duration.observe(took.as_secs_f64());
    }
}
