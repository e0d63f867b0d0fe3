//! Metrics common to the programs. Label values are closed sets: no object names, no error texts.

mod exposition;
mod memory_limit;
mod process;
mod registry;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

pub(crate) use self::exposition::Format;
pub use self::registry::{Description, LabelSet, Labelled, Registry};

use crate::cache::Undecoded;
use crate::identity::Identity;
use crate::readiness::Readiness;

/// Creates the registry of a program, which holds the build's version and the usage of its process.
pub(crate) fn registry(identity: &Identity) -> Registry {
    let mut registry = Registry::with_prefix(identity.metric_prefix());
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    registry.register_info("build", "The running version", version);
    registry.register_common(process::Process);
    registry.register_collector(memory_limit::MemoryLimit, &[]);
    registry
}

/// Counts one more of a value of a label. `counts` has every value that the label may have, and the empty one is that of all
/// others.
pub fn count_value(counts: &mut BTreeMap<&'static str, usize>, value: &str) {
    let known = counts.get_key_value(value).map_or("", |(known, _)| *known);
    *counts.entry(known).or_default() += 1;
}

/// The values of the label `outcome`.
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

/// Counters of writes by target and outcome.
#[derive(Clone, Debug, Default)]
pub struct WriteMetrics {
    writes: Family<WriteLabels, Counter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    target: &'static str,
    outcome: &'static str,
}

impl WriteMetrics {
    /// Registers `writes_total{target,outcome}`.
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Writes to an API, by target and outcome";
        Self {
            writes: registry.register("writes", help, Family::default()),
        }
    }

    /// Creates the series of `target` with the value 0. Without them `rate` and `increase` miss the
    /// first write, since a series that appears with the value 1 never increased.
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

/// The metric families that all controllers of one program share. Each is registered by the first
/// controller that needs it, because a second registration would emit its description twice, which
/// Prometheus rejects.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedMetrics {
    controllers: Option<ControllerMetrics>,
    unread: Option<ScrapedGauge>,
    stale: Option<ScrapedGauge>,
    failing_watches: Option<ScrapedGauge>,
}

impl SharedMetrics {
    /// Returns the metrics of the controller `name`, whose queue has as many keys as `length` returns.
    pub(crate) fn controller(
        &mut self,
        registry: &mut Registry,
        name: &'static str,
        length: impl Fn() -> usize + Send + Sync + 'static,
    ) -> LoopMetrics {
        let families = self
            .controllers
            .get_or_insert_with(|| ControllerMetrics::register(registry));
        families
            .queue_length
            .add(move || vec![(name.into(), length())]);
        let labels = ControllerLabels { controller: name };
        LoopMetrics {
            name,
            reconciles: families.reconciles.clone(),
            duration: families.duration.get_or_create(&labels).clone(),
        }
    }

    /// Adds the watch `name` to `failing_watches{watch}`.
    pub(crate) fn watch(
        &mut self,
        registry: &mut Registry,
        name: &'static str,
        readiness: &Readiness,
    ) {
        let gauge = self.failing_watches.get_or_insert_with(|| {
            ScrapedGauge::register(
                registry,
                "failing_watches",
                "1 for a watch whose requests have failed for half a minute; meanwhile this replica does not lead",
                "watch",
            )
        });
        let unable = readiness.unable();
        gauge.add(move || vec![(name.into(), usize::from(unable.borrow().contains(name)))]);
    }

    /// Adds the numbers that `count` returns at each scrape to `unread_objects{kind}` and `stale_objects{kind}`.
    pub(crate) fn undecoded<L: Into<Cow<'static, str>>>(
        &mut self,
        registry: &mut Registry,
        count: impl Fn() -> Vec<(L, Undecoded)> + Send + Sync + 'static,
    ) {
        let count = Arc::new(count);
        let counts = Arc::clone(&count);
        let unread = self.unread.get_or_insert_with(|| {
            ScrapedGauge::register(
                registry,
                "unread_objects",
                "Objects that never decoded; while there are any, nothing is removed on their account",
                "kind",
            )
        });
        unread.add(move || {
            let counts = counts().into_iter();
            let unread = counts.map(|(kind, count)| (kind.into(), count.unread));
            unread.collect()
        });
        let stale = self.stale.get_or_insert_with(|| {
            ScrapedGauge::register(
                registry,
                "stale_objects",
                "Objects that no longer decode; their last good version stays in effect",
                "kind",
            )
        });
        stale.add(move || {
            let counts = count().into_iter();
            let stale = counts.map(|(kind, count)| (kind.into(), count.stale));
            stale.collect()
        });
    }
}

/// The families of the reconcile loops.
#[derive(Clone, Debug)]
struct ControllerMetrics {
    reconciles: Family<ReconcileLabels, Counter>,
    duration: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    queue_length: ScrapedGauge,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

impl ControllerMetrics {
    fn register(registry: &mut Registry) -> Self {
        let duration: Family<_, _, fn() -> Histogram> =
            // 1 ms to 8 s: a reconcile takes at most a few bounded writes.
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 14)));
        Self {
            reconciles: registry.register(
                "reconciles",
                "Reconciles, by controller and result",
                Family::default(),
            ),
            duration: registry.register_with_unit(
                "reconcile_duration",
                "Time from taking a key to its last write",
                Unit::Seconds,
                duration,
            ),
            queue_length: ScrapedGauge::register(
                registry,
                "queue_length",
                "Keys that are queued, being reconciled, or waiting for a retry",
                "controller",
            ),
        }
    }
}

/// The metrics of one reconcile loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopMetrics {
    /// The name of the loop.
    pub(crate) name: &'static str,
    reconciles: Family<ReconcileLabels, Counter>,
    duration: Histogram,
}

impl LoopMetrics {
    /// Counts a reconcile, by its `result`.
    pub(crate) fn reconciled(&self, took: Duration, result: &'static str) {
        let labels = ReconcileLabels {
            controller: self.name,
            result,
        };
        self.reconciles.get_or_create(&labels).inc();
        self.duration.observe(took.as_secs_f64());
    }
}

/// A gauge with one label whose values are read at each scrape; values of the same label add up.
#[derive(Clone)]
struct ScrapedGauge {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    readers: Arc<Mutex<Vec<Box<Reader>>>>,
}

type Reader = dyn Fn() -> Vec<(Cow<'static, str>, usize)> + Send + Sync;

impl ScrapedGauge {
    fn register(
        registry: &mut Registry,
        name: &'static str,
        help: &'static str,
        label: &'static str,
    ) -> Self {
        let gauge = Self {
            name,
            help,
            label,
            readers: Arc::default(),
        };
        registry.register_collector(gauge.clone(), &[(name, label)]);
        gauge
    }

    fn add(&self, reader: impl Fn() -> Vec<(Cow<'static, str>, usize)> + Send + Sync + 'static) {
        self.readers.lock().push(Box::new(reader));
    }
}

impl fmt::Debug for ScrapedGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScrapedGauge")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Collector for ScrapedGauge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut totals = BTreeMap::new();
        for reader in &*self.readers.lock() {
            for (value, count) in reader() {
                *totals.entry(value).or_insert(0_usize) += count;
            }
        }
        let mut metric =
            encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (value, total) in totals {
            let total = ConstGauge::new(i64::try_from(total).unwrap_or(i64::MAX));
            total.encode(metric.encode_family(&[(self.label, &*value)])?)?;
        }
        Ok(())
    }
}
