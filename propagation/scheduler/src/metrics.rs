//! The metrics about all bindings, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::watch::SharedIndex;

/// `bindings{reason}`, `unsupported_bindings` and `assumed_bindings`.
#[derive(Debug)]
pub(crate) struct BindingMetrics(pub(crate) Arc<SharedIndex>);

impl Collector for BindingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = |count| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let counts = self.0.counts();
        let help = "Bindings of this scheduler, by the reason of their condition Scheduled";
        let mut family = encoder.encode_descriptor("bindings", help, None, MetricType::Gauge)?;
        for (reason, count) in counts.by_reason {
            gauge(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        let help = "Bindings that are left as they are, because their placement is not supported";
        let name = "unsupported_bindings";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        gauge(counts.left_alone).encode(metric)?;
        let help = "Bindings with pods that take room before their clusters report them";
        let name = "assumed_bindings";
        gauge(counts.assumed).encode(encoder.encode_descriptor(
            name,
            help,
            None,
            MetricType::Gauge,
        )?)
    }
}
