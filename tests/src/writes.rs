//! Writes to an API server and reads of it, in its own count.

use std::{collections::BTreeMap, fmt};

/// A kind of write, as the API server's metric names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteKind {
    /// `POST`, `PUT`, `PATCH`, `APPLY` or `DELETE`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// The subresource, for example `status`; empty for the object itself.
    pub subresource: String,
}

/// The number of successful writes of each kind, including those that changed nothing.
///
/// Dry runs and leases (leadership and heartbeats) are left out, and so are the API server's own
/// writes while it runs: the state of CRDs, aggregated APIs, address ranges and flow control.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts(pub BTreeMap<WriteKind, u64>);

/// Verbs of `apiserver_request_total` that write.
const VERBS: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];

/// Groups and resources that the API server writes by itself, or that are heartbeats.
const OWN: [(&str, &str); 7] = [
    ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
    ),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
];

impl fmt::Display for WriteKind {
    /// Writes it like `PATCH clusters.cluster.karmada.io/status`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            group,
            resource,
            subresource,
        } = self;
        write!(formatter, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(formatter, ".{group}")?;
        }
        if !subresource.is_empty() {
            write!(formatter, "/{subresource}")?;
        }
        Ok(())
    }
}

impl WriteCounts {
    /// Reads `apiserver_request_total` out of the API server's metrics
    /// ([exposition format](https://prometheus.io/docs/instrumenting/exposition_formats/)).
    pub fn from_metrics(text: &str) -> Self {
        let mut writes = Self::default();
        for (labels, value) in text.lines().filter_map(sample) {
            let label = |name| labels.get(name).copied().unwrap_or_default();
            let written = VERBS.contains(&label("verb"))
                && label("code").starts_with('2')
                && label("dry_run").is_empty()
                && !OWN.contains(&(label("group"), label("resource")));
            if written {
                let write = WriteKind {
                    verb: label("verb").to_owned(),
                    group: label("group").to_owned(),
                    resource: label("resource").to_owned(),
                    subresource: label("subresource").to_owned(),
                };
                *writes.0.entry(write).or_default() += value;
            }
        }
        writes
    }

    /// Returns the writes since `earlier`, a reading of the same run of the API server.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.0.retain(|write, count| {
            *count = count.saturating_sub(earlier.0.get(write).copied().unwrap_or_default());
            *count > 0
        });
        self
    }

    /// Returns `true` if one of these resources was written, other than its status.
    pub fn changes(&self, resources: &[&str]) -> bool {
        let mut writes = self.0.keys();
        writes.any(|write| write.subresource.is_empty() && resources.contains(&&*write.resource))
    }

    /// Returns the number of all writes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns `true` without any write.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }
}

impl fmt::Display for WriteCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.write_str("no writes");
        }
        for (position, (write, count)) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(formatter, "{comma}{count} {write}")?;
        }
        Ok(())
    }
}

/// Counts the reads of single objects in the API server's metrics, those included that found nothing.
pub(crate) fn reads(text: &str) -> u64 {
    let samples = text.lines().filter_map(sample);
    let of_one = samples.filter(|(labels, _)| {
        has(labels, "verb", "GET")
            && has(labels, "scope", "resource")
            && !has(labels, "resource", "leases")
    });
    of_one.map(|(_, count)| count).sum()
}

/// Counts the requests about single objects of a resource in the API server's metrics, whatever came of them.
pub(crate) fn requests_about(text: &str, resource: &str) -> u64 {
    let samples = text.lines().filter_map(sample);
    let about = samples.filter(|(labels, _)| {
        has(labels, "scope", "resource") && has(labels, "resource", resource)
    });
    about.map(|(_, count)| count).sum()
}

fn has(labels: &BTreeMap<&str, &str>, name: &str, value: &str) -> bool {
    labels.get(name) == Some(&value)
}

/// Parses labels and value of a line of that metric, whose label values have neither quotes nor commas.
fn sample(line: &str) -> Option<(BTreeMap<&str, &str>, u64)> {
    let rest = line.strip_prefix("apiserver_request_total{")?;
    let (labels, value) = rest.rsplit_once("} ")?;
    let labels = labels
        .split(',')
        .filter_map(|label| label.split_once('='))
        .map(|(name, value)| (name, value.trim_matches('"')))
        .collect();
    // Go prints counters above 2^20 as 1.048577e+06.
    let value = value.trim().parse::<f64>().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a counter of whole requests"
    )]
    Some((labels, value as u64))
}

#[cfg(test)]
mod tests {
    use super::{WriteCounts, reads, requests_about};

    const EARLIER: &str = r#"
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cluster.karmada.io",resource="clusters",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cluster.karmada.io",resource="clusters",scope="resource",subresource="",verb="GET",version="v1alpha1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 4
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="services",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="services",scope="resource",subresource="",verb="POST",version="v1"} 1.048577e+06
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="services",scope="resource",subresource="",verb="PUT",version="v1"} 3
"#;

    /// Only successful writes of others are counted.
    #[test]
    fn only_others_successes_count() {
        assert_eq!(
            WriteCounts::from_metrics(EARLIER).to_string(),
            "2 PATCH clusters.cluster.karmada.io/status, 1048577 POST services"
        );
    }

    /// Of reads only those of single objects are counted, leases aside.
    #[test]
    fn reads_of_one_are_counted() {
        let lease = EARLIER.replace("PUT", "GET").replace("\"} 3", "\"} 5");
        assert_eq!((reads(EARLIER), reads(&lease)), (9, 9 + 5));
    }

    /// Every request about an object of the resource is counted, one that fails included.
    #[test]
    fn requests_about_one_are_counted() {
        assert_eq!(requests_about(EARLIER, "clusters"), 2 + 9);
        assert_eq!(requests_about(EARLIER, "services"), 1 + 1_048_577 + 3);
        assert_eq!(requests_about(EARLIER, "ingresses"), 0);
    }

    /// Writes since an earlier reading are the difference.
    #[test]
    fn since_holds_what_was_added() {
        let earlier = WriteCounts::from_metrics(EARLIER);
        assert_eq!(earlier.clone().since(&earlier).to_string(), "no writes");
        let later = EARLIER.replace("\"v1alpha1\"} 2", "\"v1alpha1\"} 5");
        let added = WriteCounts::from_metrics(&later).since(&earlier);
        assert_eq!(added.total(), 3);
        assert_eq!(
            added.to_string(),
            "3 PATCH clusters.cluster.karmada.io/status"
        );
    }
}
