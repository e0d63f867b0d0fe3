//! Metrics that every controller has. Labels are closed sets: no names, no error texts.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::queue::{Queue, QueueKey};

/// A registry whose metrics begin with `karmada_<name>_`, with the build's version in it.
pub(crate) fn registry(name: &str) -> Registry {
    let mut registry = Registry::with_prefix(format!("karmada_{}", name.replace('-', "_")));
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The version that runs", version);
    registry
}

/// What comes of a write, as the metrics have it.
pub(crate) const OUTCOMES: [&str; 7] = [
    APPLIED,
    "not_leading",
    "timed_out",
    "conflict",
    "missing",
    "invalid",
    "failed",
];
pub(crate) const APPLIED: &str = "applied";

/// Counts writes by what they wrote and what came of it.
#[derive(Clone, Debug, Default)]
pub struct WriteMetrics {
    writes: Family<WriteLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    target: &'static str,
    outcome: &'static str,
}

impl WriteMetrics {
    /// Registers `writes_total{target,outcome}`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "writes",
            "Writes to an API, by target and outcome",
            metrics.writes.clone(),
        );
        metrics
    }

    /// Shows the writes to `target` before the first of them, so that an alert has something to start from.
    pub fn announce(&self, target: &'static str) {
        for outcome in OUTCOMES {
            let labels = WriteLabels { target, outcome };
            self.writes.get_or_create(&labels).inc_by(0);
        }
    }

    pub(crate) fn count(&self, target: &'static str, outcome: &'static str) {
        let labels = WriteLabels { target, outcome };
        self.writes.get_or_create(&labels).inc();
    }
}

/// Counts and times the reconciles of a controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    reconciles: Family<ReconcileLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    result: &'static str,
}

impl ControllerMetrics {
    /// Registers `reconciles_total{result}`, `reconcile_duration_seconds` and `queue_length`.
    pub(crate) fn register<K: QueueKey>(registry: &mut Registry, queue: Queue<K>) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
        };
        registry.register(
            "reconciles",
            "Reconciles, by result",
            metrics.reconciles.clone(),
        );
        registry.register_with_unit(
            "reconcile_duration",
            "Time from taking a key to its last write",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register_collector(Box::new(QueueLength(queue)));
        metrics
    }

    pub(crate) fn reconciled(&self, took: Duration, succeeded: bool) {
        let result = if succeeded { "success" } else { "error" };
        self.reconciles
            .get_or_create(&ReconcileLabels { result })
            .inc();
        self.duration.observe(took.as_secs_f64());
    }
}

/// Reads the queue when it is asked for.
#[derive(Debug)]
struct QueueLength<K>(Queue<K>);

impl<K: QueueKey> Collector for QueueLength<K> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Keys that wait, are worked on, or come back later after a failure";
        let length = ConstGauge::new(i64::try_from(self.0.len()).unwrap_or(i64::MAX));
        let metric = encoder.encode_descriptor("queue_length", help, None, MetricType::Gauge)?;
        length.encode(metric)
    }
}

/// Registers `unread_objects{kind}`: `count` says, when it is asked, how many objects of each kind
/// could never be read.
pub fn register_unread<C>(registry: &mut Registry, count: C)
where
    C: Fn() -> Vec<(&'static str, usize)> + Send + Sync + 'static,
{
    registry.register_collector(Box::new(Unread(count)));
}

struct Unread<C>(C);

impl<C> fmt::Debug for Unread<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unread")
    }
}

impl<C> Collector for Unread<C>
where
    C: Fn() -> Vec<(&'static str, usize)> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Objects that could never be read; nothing is taken away on their account";
        let mut metric =
            encoder.encode_descriptor("unread_objects", help, None, MetricType::Gauge)?;
        for (kind, count) in (self.0)() {
            let count = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            count.encode(metric.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}
