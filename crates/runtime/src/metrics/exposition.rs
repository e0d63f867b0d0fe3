//! The formats in which metrics are served: `OpenMetrics`, and the older text format of Prometheus, for tools
//! that know no other.

use std::fmt::{self, Write};

use super::registry::Registry;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    OpenMetrics,
    /// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
    Text,
}

impl Format {
    /// Returns the format that a header `Accept` prefers. Where it leaves that open, it is the one that everybody reads.
    pub(crate) fn asked_for(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let (mut version, mut weight) = (None, 1.0);
            for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
                match name {
                    "version" => version = Some(value.trim_matches('"')),
                    "q" => weight = value.parse().unwrap_or(0.0),
                    _ => {}
                }
            }
            let format = match (media, version) {
                ("application/openmetrics-text", None | Some("0.0.1" | "1.0.0")) => {
                    Self::OpenMetrics
                }
                ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => Self::Text,
                _ => continue,
            };
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }

    /// Returns the header `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Encodes the metrics of a registry.
    pub(crate) fn encode(self, registry: &Registry) -> Result<String, fmt::Error> {
        let encoded = registry.encode()?;
        match self {
            Self::OpenMetrics => Ok(encoded),
            Self::Text => as_text(&encoded),
        }
    }
}

/// Returns metrics in the text format. There a counter and an info have the name of their series, and units and an end of the
/// text do not exist.
fn as_text(open_metrics: &str) -> Result<String, fmt::Error> {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            writeln!(text, "{line}")?;
            continue;
        };
        if let Some(described) = comment.strip_prefix("HELP ") {
            help = described.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = comment
            .strip_prefix("TYPE ")
            .and_then(|typed| typed.split_once(' '))
        {
            let (ending, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            writeln!(text, "# HELP {name}{ending} {help}")?;
            writeln!(text, "# TYPE {name}{ending} {kind}")?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::Unit;

    use super::*;

    /// Prometheus asks for `OpenMetrics` first, and gets it. `promtool`, `curl` and older agents get the format that they read.
    #[test]
    fn accepted_format_is_served() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let text_first =
            "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            (
                "application/openmetrics-text; version=\"1.0.0\"",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;version=2.0.0", Format::Text),
            ("text/plain;version=0.0.4", Format::Text),
            (text_first, Format::Text),
            ("*/*", Format::Text),
            ("", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("text/html,;=,q", Format::Text),
        ] {
            assert_eq!(Format::asked_for(accept), format, "{accept}");
        }
    }

    /// A counter has its help under the name that queries have.
    #[test]
    fn text_describes_every_series() {
        let mut registry = Registry::with_prefix("test");
        registry.register("writes", "Writes", Counter::<u64>::default());
        registry.register("agents", "Agents", Gauge::<i64>::default());
        registry.register_info("build", "The version", [("version", "1")]);
        let delay = Histogram::new([1.0]);
        registry.register_with_unit("delay", "Delay", Unit::Seconds, delay);
        let text = Format::Text.encode(&registry).unwrap();
        assert_eq!(
            text,
            r#"# HELP test_writes_total Writes.
# TYPE test_writes_total counter
test_writes_total 0
# HELP test_agents Agents.
# TYPE test_agents gauge
test_agents 0
# HELP test_build_info The version.
# TYPE test_build_info gauge
test_build_info{version="1"} 1
# HELP test_delay_seconds Delay.
# TYPE test_delay_seconds histogram
test_delay_seconds_sum 0.0
test_delay_seconds_count 0
test_delay_seconds_bucket{le="1.0"} 0
test_delay_seconds_bucket{le="+Inf"} 0
"#
        );
    }
}
