//! Metrics beside those every controller has.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::watch::World;

/// Registers `unread_objects{kind}`, counted when it is asked for.
pub(crate) fn register(registry: &mut Registry, world: Arc<World>) {
    registry.register_collector(Box::new(Unread(world)));
}

#[derive(Debug)]
struct Unread(Arc<World>);

impl Collector for Unread {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Objects that could never be read; nothing is taken away on their account";
        let mut metric =
            encoder.encode_descriptor("unread_objects", help, None, MetricType::Gauge)?;
        for (kind, count) in self.0.unread() {
            let count = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            count.encode(metric.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}
