//! The metrics about placements, their bindings and the clusters, read at each scrape.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::index::Index;
use crate::shared::SharedIndex;

/// `placements{reason}`, `bindings{state}`, `clusters{eligible}` and `update_runs{reason}`.
pub(crate) struct FleetMetrics {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) clock: fn() -> Timestamp,
}

impl fmt::Debug for FleetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetMetrics").finish_non_exhaustive()
    }
}

/// The label of each family.
pub(crate) const LABELS: [(&str, &str); 4] = [
    ("placements", "reason"),
    ("bindings", "state"),
    ("clusters", "eligible"),
    ("update_runs", "reason"),
];

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let placements = self.index.read(Index::placements_by_reason);
        let bindings = self.index.read(Index::bindings_by_state);
        let now = (self.clock)();
        let clusters = self.index.read(|index| index.clusters_by_eligibility(now));
        let counts = [
            placements.into_iter().collect(),
            bindings.into_iter().collect(),
            Vec::from(clusters),
            self.index.read(|index| index.runs.by_reason()),
        ];
        let helps = [
            "Placements, by the reason of their condition whether clusters were found",
            "Bindings of placements to clusters, by state",
            "Clusters of the fleet, by whether they may be given anything",
            "Staged update runs, by the reason of what they say last",
        ];
        for (((name, label), help), counts) in LABELS.into_iter().zip(helps).zip(counts) {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (value, count) in counts {
                let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&[(label, value)])?)?;
            }
        }
        Ok(())
    }
}
