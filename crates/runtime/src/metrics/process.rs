//! The resources that the process uses, under the names that every client library of Prometheus has
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>).

use std::fmt;

use procfs::process::{LimitValue, Process as Procfs};
use procfs::{ProcResult, boot_time_secs, page_size, ticks_per_second};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The metrics of this process, read at each scrape.
#[derive(Debug)]
pub(crate) struct Process;

/// The resources that a process uses, as procfs has them.
struct Usage {
    /// User and system time, in seconds.
    cpu: f64,
    /// The start, in seconds since 1970.
    start: f64,
    /// The resident memory, in bytes.
    resident: u64,
    open_fds: u64,
    /// The most file descriptors that may be open; absent without a limit.
    max_fds: Option<u64>,
}

impl Usage {
    /// Reads the usage of this process.
    ///
    /// # Errors
    /// Fails where there is no procfs.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds are below 2^52 ticks for millions of years"
    )]
    fn read() -> ProcResult<Self> {
        let process = Procfs::myself()?;
        let stat = process.stat()?;
        let ticks = ticks_per_second() as f64;
        Ok(Self {
            cpu: (stat.utime + stat.stime) as f64 / ticks,
            start: boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
            resident: stat.rss * page_size(),
            open_fds: process.fd_count()? as u64,
            max_fds: match process.limits()?.max_open_files.soft_limit {
                LimitValue::Value(limit) => Some(limit),
                LimitValue::Unlimited => None,
            },
        })
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // Where there is no procfs, the metrics are described and have no series.
        let usage = Usage::read().ok();
        let metric = encoder.encode_descriptor(
            "process_cpu_seconds",
            "CPU time of the process, of user and system, in seconds",
            None,
            MetricType::Counter,
        )?;
        if let Some(usage) = &usage {
            ConstCounter::new(usage.cpu).encode(metric)?;
        }
        let usage = usage.as_ref();
        for (name, help, value) in [
            (
                "process_start_time_seconds",
                "Time at which the process started",
                usage.map(|usage| Value::Fraction(usage.start)),
            ),
            (
                "process_resident_memory_bytes",
                "Memory of the process that is resident",
                usage.map(|usage| Value::Whole(usage.resident)),
            ),
            (
                "process_open_fds",
                "File descriptors that are open",
                usage.map(|usage| Value::Whole(usage.open_fds)),
            ),
            (
                "process_max_fds",
                "File descriptors that may be open; no series without a limit",
                usage.and_then(|usage| usage.max_fds).map(Value::Whole),
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            match value {
                Some(Value::Whole(value)) => {
                    let value = i64::try_from(value).unwrap_or(i64::MAX);
                    ConstGauge::new(value).encode(metric)?;
                }
                Some(Value::Fraction(value)) => ConstGauge::new(value).encode(metric)?,
                None => {}
            }
        }
        Ok(())
    }
}

/// The value of a gauge.
enum Value {
    Whole(u64),
    Fraction(f64),
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    /// A test has memory, files and a start, as every process does.
    #[test]
    fn own_process_is_measured() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let mut encoded = String::new();
        text::encode(&mut encoded, &registry).unwrap();
        let value = |name: &str| -> f64 {
            let mut lines = encoded.lines().filter_map(|line| line.strip_prefix(name));
            lines.find_map(|rest| rest.trim().parse().ok()).unwrap()
        };
        assert!(value("process_resident_memory_bytes ") > 100_000.0);
        assert!(value("process_open_fds ") >= 3.0);
        assert!(value("process_max_fds ") >= value("process_open_fds "));
        assert!(value("process_cpu_seconds_total ") >= 0.0);
        let now = jiff::Timestamp::now().as_duration().as_secs_f64();
        let age = now - value("process_start_time_seconds ");
        // The kernel counts the start from a boot time of whole seconds.
        assert!((-2.0..86_400.0).contains(&age), "{age}");
    }
}
