//! The metrics about all bindings, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::watch::SharedIndex;

/// `bindings{reason}` and `unsupported_bindings`.
#[derive(Debug)]
pub(crate) struct BindingMetrics(pub(crate) Arc<SharedIndex>);

impl Collector for BindingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = |count| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let (by_reason, unsupported) = self.0.counts();
        let help = "Bindings of this scheduler, by the reason of their condition Scheduled";
        let mut family = encoder.encode_descriptor("bindings", help, None, MetricType::Gauge)?;
        for (reason, count) in by_reason {
            gauge(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        let help = "Bindings that are left as they are, because their placement is not supported";
        let name = "unsupported_bindings";
        gauge(unsupported).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}
