//! The metrics of the fleet, read at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::program::Program;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use propagation_rules::execution::Progress;

use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
use crate::imports::BlockedSlices;
use crate::index::{MemberProgress, Works};

/// The state of the members and the Works.
pub(crate) struct FleetMetrics {
    pub(crate) works: Arc<Works>,
    pub(crate) fleet: Arc<Fleet>,
    /// Absent if no endpoints are collected.
    pub(crate) endpoints: Option<Arc<SharedEndpoints>>,
    pub(crate) clock: fn() -> Timestamp,
}

impl FleetMetrics {
    /// Adds them to the metrics of `program`.
    pub(crate) fn register(self, program: &mut Program) {
        let of_members = OF_MEMBERS.map(|name| (name, "member"));
        let by_state = ["works", BLOCKED_SLICES];
        let by_state = by_state.map(|name| [(name, "member"), (name, "state")]);
        let labels = [&of_members[..], by_state.as_flattened()].concat();
        program.registry.register_collector(self, &labels);
    }
}

/// The gauge of the slices that blocked clusters have in other members.
const BLOCKED_SLICES: &str = "blocked_endpoint_slices";

/// The gauges with a series for each member.
const OF_MEMBERS: [&str; 5] = [
    "member_reachable",
    "collected_endpoint_slices",
    "oldest_unapplied_work_seconds",
    "member_credentials_expiry_timestamp_seconds",
    "expiring_member_credentials",
];

impl fmt::Debug for FleetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetMetrics").finish_non_exhaustive()
    }
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = (self.clock)();
        let suspended = count(self.works.index.lock().suspended());
        let metric = encoder.encode_descriptor(
            "suspended_works",
            "Works of which nothing is created or changed in the member, because their dispatching is suspended",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(suspended).encode(metric)?;
        let index = self.works.index.lock();
        let progress = index.progress(&self.works.arrivals, now);
        let blocked = index.blocked_slices();
        drop(index);
        encode_works(&mut encoder, &progress)?;
        encode_blocked(&mut encoder, &blocked)?;
        let oldest = progress.iter().map(|(member, progress)| {
            let age = progress.oldest_unapplied.as_secs();
            (member.as_str(), i64::try_from(age).unwrap_or(i64::MAX))
        });
        let tokens = self.fleet.tokens();
        let ends = tokens.iter();
        let ends = ends.map(|(member, token)| (member.as_str(), token.until.as_second()));
        let expiring = tokens.iter();
        let expiring =
            expiring.map(|(member, token)| (member.as_str(), i64::from(token.ends_soon(now))));
        let reached = self.fleet.reached();
        let reached = reached.iter();
        let reached = reached.map(|(member, reached)| (member.as_str(), i64::from(*reached)));
        let collected = self.endpoints.as_ref().map(|all| all.collected());
        let collected = collected.iter().flatten();
        let collected = collected.map(|(member, slices)| (member.as_str(), count(*slices)));
        let gauges: [(_, Vec<(&str, i64)>); 5] = [
            (
                "1 for a member that was reached when it was tried last, 0 for one that was not; of the replica that leads",
                reached.collect(),
            ),
            (
                "EndpointSlices in the fleet that were collected from a member, with --collect-endpoints",
                collected.collect(),
            ),
            (
                "Time for which the oldest Work for a member that is not applied has waited; 0 if there is none",
                oldest.collect(),
            ),
            (
                "Time at which the token for a member ends; no series if it has no known end; of the replica that leads",
                ends.collect(),
            ),
            (
                "1 for a member whose token ends within a day, or in the last tenth of a shorter life; 0 for one whose token ends later; of the replica that leads",
                expiring.collect(),
            ),
        ];
        for (name, (help, values)) in OF_MEMBERS.into_iter().zip(gauges) {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (member, value) in values {
                ConstGauge::new(value).encode(metric.encode_family(&[("member", member)])?)?;
            }
        }
        Ok(())
    }
}

/// Encodes `works{member,state}`.
fn encode_works(
    encoder: &mut DescriptorEncoder<'_>,
    progress: &BTreeMap<String, MemberProgress>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(
        "works",
        "Works for a member: applied as they are, unapplied, suspended, or deleting",
        None,
        MetricType::Gauge,
    )?;
    for (member, of_member) in progress {
        for state in Progress::ALL {
            let works = of_member.works.get(&state).copied().unwrap_or_default();
            let labels = [("member", member.as_str()), ("state", label(state))];
            ConstGauge::new(count(works)).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Encodes `blocked_endpoint_slices{member,state}`.
fn encode_blocked(
    encoder: &mut DescriptorEncoder<'_>,
    blocked: &BTreeMap<String, BlockedSlices>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(
        BLOCKED_SLICES,
        "EndpointSlices of blocked clusters for a member, with --block-multicluster-services: withheld, or readmitted since no other cluster serves their Service",
        None,
        MetricType::Gauge,
    )?;
    for (member, slices) in blocked {
        for (state, number) in [
            ("withheld", slices.withheld),
            ("readmitted", slices.readmitted),
        ] {
            let labels = [("member", member.as_str()), ("state", state)];
            ConstGauge::new(count(number)).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn label(state: Progress) -> &'static str {
    match state {
        Progress::Applied => "applied",
        Progress::Unapplied => "unapplied",
        Progress::Suspended => "suspended",
        Progress::Deleting => "deleting",
    }
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
