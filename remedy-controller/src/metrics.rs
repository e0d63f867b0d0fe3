//! The metrics about the fleet as a whole, read at each scrape, and how fast actions follow.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::remedy::DRAIN;
use karmada_runtime::metrics::Registry;
use kube::ResourceExt;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;
use traffic::remedy::{Expiry, State};

use crate::index::Index;
use crate::silence::SharedReporters;

/// The time before its expiry in which a remedy counts as expiring.
const EXPIRING_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// Registers `action_delay_seconds`.
pub(crate) fn action_delay(registry: &mut Registry) -> Histogram {
    registry.register_with_unit(
        "action_delay",
        "Time from receiving a change of a cluster's conditions to the end of the write that sets its actions",
        Unit::Seconds,
        // 1 ms to 65 s: a write that fails is tried again.
        Histogram::new(exponential_buckets(0.001, 2.0, 17)),
    )
}

/// The gauges of the fleet.
#[derive(Debug)]
pub(crate) struct FleetMetrics {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) reporters: Arc<SharedReporters>,
}

/// The name of a gauge, its description, and its value.
type Gauge = (&'static str, &'static str, Shown);

/// The value of a gauge.
enum Shown {
    /// One value.
    Value(usize),
    /// A value for each value of a label.
    ByLabel(&'static str, Vec<(String, usize)>),
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauges = gauges(&self.index.lock());
        gauges.push((
            "silent_reporters",
            "1 for a cluster whose agents' lease nobody renews any more, and for `(gateway)`, the agents on the nodes of gateways",
            Shown::ByLabel(
                "member",
                self.reporters
                    .silent()
                    .into_iter()
                    .map(|reporter| (reporter.to_string(), 1))
                    .collect(),
            ),
        ));
        for (name, help, shown) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            match shown {
                Shown::Value(value) => gauge(value).encode(metric)?,
                Shown::ByLabel(label, values) => {
                    for (of, value) in values {
                        gauge(value).encode(metric.encode_family(&[(label, of.as_str())])?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn gauge(value: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

fn gauges(index: &Index) -> Vec<Gauge> {
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    let (mut expiring, mut overdue) = (0, BTreeMap::new());
    for view in index.views() {
        let state = State::of(&view.remedy, &view.problems, &view.reach, view.now);
        *states.entry(state).or_default() += 1;
        if state == State::Expired
            && let Some(member) = view.remedy.annotations().get(DRAIN)
        {
            overdue.insert(member.clone(), 1);
        }
        if let Expiry::At(end) = Expiry::of(&view.remedy)
            && end > view.now
            && end.duration_since(view.now) <= EXPIRING_WITHIN
        {
            expiring += 1;
        }
    }
    let states = State::ALL.map(|state| {
        let count = states.get(&state).copied();
        (label(state).to_owned(), count.unwrap_or(0))
    });
    vec![
        (
            "max_blocked_clusters",
            "Clusters that conditions may block, by --max-blocked-clusters",
            Shown::Value(index.bound.limit()),
        ),
        (
            "clusters_over_bound",
            "Clusters that --max-blocked-clusters keeps unblocked although a condition requires a block",
            Shown::Value(index.bound.waiting()),
        ),
        (
            "clusters_with_action",
            "Clusters that have an action; all but TrafficControl are counted as other",
            Shown::ByLabel("action", clusters_with_action(index)),
        ),
        (
            "traffic_blocked",
            "1 for a cluster that has the action TrafficControl, 0 for one that has not",
            Shown::ByLabel("member", traffic_blocked(index)),
        ),
        (
            "remedies",
            "Remedies, by the first state that holds",
            Shown::ByLabel("state", Vec::from(states)),
        ),
        (
            "remedies_expiring",
            "Remedies that expire within an hour",
            Shown::Value(expiring),
        ),
        (
            "overdue_drains",
            "1 for a cluster that `kubectl remedy drain` has drained until a time that is over, and that nobody has uncordoned",
            Shown::ByLabel("member", overdue.into_iter().collect()),
        ),
    ]
}

fn traffic_blocked(index: &Index) -> Vec<(String, usize)> {
    let clusters = index.clusters.iter();
    let blocked = clusters.map(|(key, cluster)| {
        let actions = cluster.remedy_actions();
        let blocked = actions.iter().any(|action| action == TRAFFIC_CONTROL);
        (key.name.clone(), usize::from(blocked))
    });
    blocked.collect()
}

fn clusters_with_action(index: &Index) -> Vec<(String, usize)> {
    let (mut blocked, mut other) = (0, 0);
    for (_, cluster) in index.clusters.iter() {
        let actions = cluster.remedy_actions();
        blocked += usize::from(actions.iter().any(|action| action == TRAFFIC_CONTROL));
        other += usize::from(actions.iter().any(|action| action != TRAFFIC_CONTROL));
    }
    vec![
        (TRAFFIC_CONTROL.to_owned(), blocked),
        ("other".to_owned(), other),
    ]
}

fn label(state: State) -> &'static str {
    match state {
        State::Expired => "expired",
        State::NotAccepted => "not_accepted",
        State::ObserveOnly => "observe_only",
        State::Active => "active",
        State::Idle => "idle",
    }
}
