//! The metrics about the fleet as a whole, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::silence::SharedReporters;
use crate::watch::SharedIndex;

/// `max_blocked_clusters`, `clusters_over_bound` and `silent_reporters`.
#[derive(Debug)]
pub(crate) struct FleetMetrics {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) reporters: Arc<SharedReporters>,
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (limit, over) = self.index.bound();
        let gauges = [
            (
                "max_blocked_clusters",
                "Clusters that conditions may block, by --max-blocked-clusters",
                limit,
            ),
            (
                "clusters_over_bound",
                "Clusters that --max-blocked-clusters keeps unblocked although a condition requires a block",
                over,
            ),
            (
                "silent_reporters",
                "Clusters whose agents' lease nobody renews any more",
                self.reporters.silent(),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}
