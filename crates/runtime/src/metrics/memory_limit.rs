//! The memory beyond which the kernel ends the process.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// The limit of the control group, which in a container is the container's (cgroups v2, `memory.max`). A process outside
/// of a container sees the root there, which has no such file.
const LIMIT: &str = "/sys/fs/cgroup/memory.max";

/// `memory_limit_bytes`, read at each scrape: a pod may be resized in place.
#[derive(Debug)]
pub(crate) struct MemoryLimit;

impl Collector for MemoryLimit {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let metric = encoder.encode_descriptor(
            "memory_limit_bytes",
            "Memory that the container may have; no series without a limit",
            None,
            MetricType::Gauge,
        )?;
        let limit = fs::read_to_string(LIMIT).ok();
        match limit.as_deref().and_then(parsed) {
            Some(limit) => ConstGauge::new(limit).encode(metric),
            None => Ok(()),
        }
    }
}

/// Reads a limit in bytes; one that is `max` is none.
fn parsed(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is a limit, and a word is none.
    #[test]
    fn word_is_no_limit() {
        assert_eq!(parsed("134217728\n"), Some(134_217_728));
        assert_eq!(parsed("max\n"), None);
    }
}
