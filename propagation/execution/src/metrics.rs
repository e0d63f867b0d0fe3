//! The metrics of the fleet, read at each scrape.

use std::fmt;
use std::sync::Arc;

use karmada_runtime::program::Program;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
use crate::index::SharedIndex;

/// The state of the members and the Works.
pub(crate) struct FleetMetrics {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) fleet: Arc<Fleet>,
    /// Absent if no endpoints are collected.
    pub(crate) endpoints: Option<Arc<SharedEndpoints>>,
}

impl FleetMetrics {
    /// Adds them to the metrics of `program`.
    pub(crate) fn register(self, program: &mut Program) {
        let labels = [
            ("member_reachable", "member"),
            ("collected_endpoint_slices", "member"),
        ];
        program.registry.register_collector(self, &labels);
    }
}

impl fmt::Debug for FleetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetMetrics").finish_non_exhaustive()
    }
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let suspended = i64::try_from(self.index.suspended()).unwrap_or(i64::MAX);
        let metric = encoder.encode_descriptor(
            "suspended_works",
            "Works of which nothing is created or changed in the member, because their dispatching is suspended",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(suspended).encode(metric)?;
        let mut metric = encoder.encode_descriptor(
            "member_reachable",
            "1 for a member that was reached when it was tried last, 0 for one that was not",
            None,
            MetricType::Gauge,
        )?;
        for (member, reached) in self.fleet.reached() {
            let labels = [("member", member.as_str())];
            let gauge = ConstGauge::new(i64::from(reached));
            gauge.encode(metric.encode_family(&labels)?)?;
        }
        let mut metric = encoder.encode_descriptor(
            "collected_endpoint_slices",
            "EndpointSlices in the fleet that were collected from a member, with --collect-endpoints",
            None,
            MetricType::Gauge,
        )?;
        let endpoints = self.endpoints.as_ref();
        for (member, count) in endpoints.map(|all| all.collected()).unwrap_or_default() {
            let labels = [("member", member.as_str())];
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
