//! The metrics about all bindings, read at each scrape.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use propagation_rules::schedule::{halted_clusters, is_held};

use crate::binding::AnyBinding;
use crate::index::{Index, all};

/// `bindings{reason}`, `unsupported_bindings`, `assumed_bindings` and `halted_evictions`.
#[derive(Debug)]
pub(crate) struct BindingMetrics {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Collector for BindingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.index.lock().counts();
        let help = "Bindings of this scheduler, by the reason of their condition Scheduled";
        let mut family = encoder.encode_descriptor("bindings", help, None, MetricType::Gauge)?;
        for (reason, count) in counts.by_reason {
            gauge(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        for (name, count, help) in [
            (
                "unsupported_bindings",
                counts.left_alone,
                "Bindings that are left as they are, because their placement is not supported",
            ),
            (
                "assumed_bindings",
                counts.assumed,
                "Bindings with pods that take room before their clusters report them",
            ),
            (
                "halted_evictions",
                halted_evictions(&self.index, (self.clock)()),
                "Bindings that stay in clusters that are not ready, because too many clusters are not",
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            gauge(count).encode(metric)?;
        }
        Ok(())
    }
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Counts the bindings that stay in clusters that are not ready, because too much of the fleet is not.
fn halted_evictions(index: &Mutex<Index>, now: Timestamp) -> usize {
    let (bindings, clusters) = {
        let index = index.lock();
        let halted = halted_clusters(&index.scheduler, all(&index.clusters).collect());
        if halted.is_empty() {
            return 0;
        }
        let halted: Vec<_> = halted.into_iter().cloned().collect();
        (index.ours().collect::<Vec<_>>(), halted)
    };
    // Without the lock: no decision waits for a scrape.
    let clusters: Vec<_> = clusters.iter().collect();
    let views = bindings.iter().map(AnyBinding::view);
    views.filter(|view| is_held(*view, &clusters, now)).count()
}
