//! The registry of a program's metrics, which can describe them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::Deref;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{self, Metric, Unit};

/// The metrics of a program. The reference is generated from it, so nothing gets in without a description.
#[derive(Debug, Default)]
pub struct Registry {
    /// Has no prefix itself: the program's own metrics are below it.
    metrics: registry::Registry,
    prefix: Option<String>,
    /// The descriptions of single metrics. Those of collectors are in their own text.
    described: Vec<Description>,
    /// The labels of the metrics of collectors.
    collected: BTreeMap<String, Vec<String>>,
}

/// The description of a metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Description {
    /// The name, as queries have it; the series of a histogram have an ending besides.
    pub name: String,
    /// The type: `counter`, `gauge`, `histogram` or `info`.
    pub kind: String,
    /// The names of the labels.
    pub labels: Vec<String>,
    /// The meaning.
    pub help: String,
}

impl Description {
    /// Returns the description under the name of its series, which for a counter is not that of its type.
    fn queried(mut self) -> Self {
        if self.kind == MetricType::Counter.as_str() {
            self.name += TOTAL;
        }
        self
    }
}

/// A metric whose labels are known before it has a series.
pub trait Labelled: Metric {
    /// Returns the names of its labels.
    fn labels(&self) -> Vec<String>;
}

impl Registry {
    /// Creates a registry whose metrics have names with this prefix.
    pub fn with_prefix(prefix: impl Into<String>) -> Self {
        Self {
            prefix: Some(prefix.into()),
            ..Self::default()
        }
    }

    /// Registers a metric, and returns it.
    pub fn register<M: Labelled + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.describe(name, help, metric.metric_type(), metric.labels());
        self.own().register(name, help, metric.clone());
        metric
    }

    /// Registers a metric that is always 1 and has its information in its labels.
    pub fn register_info(&mut self, name: &str, help: &str, labels: impl LabelSet) {
        self.describe(name, help, MetricType::Info, names(labels.clone()));
        self.own().register(name, help, Info::new(labels));
    }

    /// Registers a metric whose name ends with its unit, and returns it.
    pub fn register_with_unit<M: Labelled + Clone>(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        metric: M,
    ) -> M {
        let full_name = format!("{name}_{}", unit.as_str());
        self.describe(&full_name, help, metric.metric_type(), metric.labels());
        self.own()
            .register_with_unit(name, help, unit, metric.clone());
        metric
    }

    /// Registers the metrics of `collector`, and each label with the metric that has it. Their descriptions must be
    /// encoded even while they have no series.
    pub fn register_collector(
        &mut self,
        collector: impl Collector,
        labels: &[(&'static str, &'static str)],
    ) {
        for (name, label) in labels {
            let of_metric = self.collected.entry(self.prefixed(name)).or_default();
            of_metric.push((*label).to_owned());
        }
        self.own().register_collector(Box::new(collector));
    }

    /// Registers metrics whose names all programs of the world share: they get no prefix, and have no labels.
    pub(crate) fn register_common(&mut self, collector: impl Collector) {
        self.metrics.register_collector(Box::new(collector));
    }

    /// Returns the metrics in the format of `OpenMetrics`.
    ///
    /// # Errors
    /// Fails if a metric cannot be encoded.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.metrics)?;
        Ok(encoded)
    }

    /// Returns the descriptions of all metrics, by name.
    ///
    /// # Errors
    /// Fails if a metric cannot be encoded.
    pub fn descriptions(&self) -> Result<BTreeSet<Description>, fmt::Error> {
        let encoded = self.encode()?;
        let known: BTreeSet<&str> = self
            .described
            .iter()
            .map(|known| without_ending(&known.name))
            .collect();
        let collected = encoded_descriptions(&encoded)
            .filter(|found| !known.contains(&*found.name))
            .map(|found| Description {
                labels: self.collected.get(&found.name).cloned().unwrap_or_default(),
                ..found
            })
            .map(Description::queried);
        Ok(collected.chain(self.described.iter().cloned()).collect())
    }

    fn describe(&mut self, name: &str, help: &str, kind: MetricType, labels: Vec<String>) {
        let ending = match kind {
            MetricType::Counter => TOTAL,
            MetricType::Info => INFO,
            _ => "",
        };
        self.described.push(Description {
            name: self.prefixed(name) + ending,
            kind: kind.as_str().to_owned(),
            labels,
            help: help.to_owned(),
        });
    }

    /// Returns the part whose metrics get the program's prefix.
    fn own(&mut self) -> &mut registry::Registry {
        match &self.prefix {
            Some(prefix) => self.metrics.sub_registry_with_prefix(prefix),
            None => &mut self.metrics,
        }
    }

    fn prefixed(&self, name: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}_{name}"),
            None => name.to_owned(),
        }
    }
}

/// Read only: a metric that is registered past this type would have no description.
impl Deref for Registry {
    type Target = registry::Registry;

    fn deref(&self) -> &Self::Target {
        &self.metrics
    }
}

/// The ending of a counter.
const TOTAL: &str = "_total";
/// The ending of a metric that is always 1 and has its information in its labels.
const INFO: &str = "_info";

fn without_ending(name: &str) -> &str {
    let ending = [TOTAL, INFO].into_iter();
    let mut without = ending.filter_map(|ending| name.strip_suffix(ending));
    without.next().unwrap_or(name)
}

/// Returns the descriptions in the text of an exposition, without labels.
fn encoded_descriptions(text: &str) -> impl Iterator<Item = Description> {
    let mut helps: BTreeMap<&str, &str> = BTreeMap::new();
    text.lines().filter_map(move |line| {
        let (word, rest) = line.strip_prefix("# ")?.split_once(' ')?;
        let (name, rest) = rest.split_once(' ')?;
        match word {
            "HELP" => {
                // The encoder makes a sentence of it.
                helps.insert(name, rest.strip_suffix('.').unwrap_or(rest));
                None
            }
            "TYPE" => Some(Description {
                name: name.to_owned(),
                kind: rest.to_owned(),
                labels: Vec::new(),
                help: helps.get(name).copied().unwrap_or_default().to_owned(),
            }),
            _ => None,
        }
    })
}

impl<N, A> Labelled for Counter<N, A>
where
    Self: Metric,
{
    fn labels(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<N, A> Labelled for Gauge<N, A>
where
    Self: Metric,
{
    fn labels(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Labelled for Histogram {
    fn labels(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<S, M, C> Labelled for Family<S, M, C>
where
    S: LabelSet + Default,
    Self: Metric,
{
    fn labels(&self) -> Vec<String> {
        names(S::default())
    }
}

/// The labels of a series.
pub trait LabelSet: Clone + Debug + Eq + Hash + EncodeLabelSet + Send + Sync + 'static {}

impl<S> LabelSet for S where S: Clone + Debug + Eq + Hash + EncodeLabelSet + Send + Sync + 'static {}

/// Returns the names of the labels in `set`.
fn names(set: impl LabelSet) -> Vec<String> {
    let mut registry = registry::Registry::default();
    registry.register("names", "", Info::new(set));
    let mut encoded = String::new();
    if text::encode(&mut encoded, &registry).is_err() {
        return Vec::new();
    }
    let series = encoded
        .split_once('{')
        .and_then(|(_, labels)| labels.split_once('}'));
    let labels = series.map_or("", |(labels, _)| labels).split(',');
    let names = labels.filter_map(|label| label.split_once('='));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;

    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct Labels {
        target: &'static str,
        node: String,
    }

    /// A metric that has a series only if there is something to show.
    #[derive(Debug)]
    struct Reachable(Option<i64>);

    impl Collector for Reachable {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            let help = "Members. Of all kinds";
            let mut metric = encoder.encode_descriptor("members", help, None, MetricType::Gauge)?;
            match self.0 {
                Some(value) => {
                    let labels = [("member", "m1"), ("state", "up")];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)
                }
                None => Ok(()),
            }
        }
    }

    /// A counter of every process.
    #[derive(Debug)]
    struct Seconds;

    impl Collector for Seconds {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            let kind = MetricType::Counter;
            let metric = encoder.encode_descriptor("process_seconds", "Time", None, kind)?;
            ConstCounter::new(1.5).encode(metric)
        }
    }

    fn described(name: &str, kind: &str, labels: &[&str], help: &str) -> Description {
        Description {
            name: name.to_owned(),
            kind: kind.to_owned(),
            labels: labels.iter().map(ToString::to_string).collect(),
            help: help.to_owned(),
        }
    }

    /// Every metric is described whether or not it has a series.
    #[test]
    fn every_metric_is_described() {
        for reachable in [None, Some(1)] {
            let mut registry = Registry::with_prefix("test");
            let writes = Family::<Labels, Counter>::default();
            registry.register("writes", "Writes", writes.clone());
            let delay = Histogram::new([1.0]);
            registry.register_with_unit("delay", "Delay", Unit::Seconds, delay);
            registry.register("agents", "Agents", Gauge::<i64>::default());
            registry.register_info("build", "The version", [("version", "1")]);
            let labels = [("members", "member"), ("members", "state")];
            registry.register_collector(Reachable(reachable), &labels);
            registry.register_common(Seconds);
            if reachable.is_some() {
                writes.get_or_create(&Labels::default()).inc();
            }
            let expected = [
                described("process_seconds_total", "counter", &[], "Time"),
                described("test_agents", "gauge", &[], "Agents"),
                described("test_build_info", "info", &["version"], "The version"),
                described("test_delay_seconds", "histogram", &[], "Delay"),
                described(
                    "test_members",
                    "gauge",
                    &["member", "state"],
                    "Members. Of all kinds",
                ),
                described(
                    "test_writes_total",
                    "counter",
                    &["target", "node"],
                    "Writes",
                ),
            ];
            assert_eq!(registry.descriptions().unwrap(), expected.into());
        }
    }
}
