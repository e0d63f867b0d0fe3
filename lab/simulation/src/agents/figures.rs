//! Counts of requests, and the format of figures.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Sub;
use std::time::Duration;

use http::Method;
use http::request::Parts;

/// Counts of requests by verb and resource; the key begins with `true` for a write.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<(bool, String), u64>);

impl Figures {
    /// Counts one request.
    pub(super) fn count(&mut self, request: &Parts) {
        let reads = request.method == Method::GET;
        let watches = request
            .uri
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let verb = if watches {
            "WATCH"
        } else {
            request.method.as_str()
        };
        let what = format!("{verb} {}", resource(request.uri.path()));
        *self.0.entry((!reads, what)).or_default() += 1;
    }

    /// Returns the number of all requests.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the number of writes.
    pub fn writes(&self) -> u64 {
        self.writes_of("")
    }

    /// Returns the number of writes of a resource.
    pub fn writes_of(&self, resource: &str) -> u64 {
        let writes = self
            .0
            .iter()
            .filter(|((writes, what), _)| *writes && what.ends_with(resource));
        writes.map(|(_, count)| count).sum()
    }
}

/// Returns the plural name of the resource in a path, or the path itself if it has none.
fn resource(path: &str) -> &str {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    match segments.next() {
        Some("api") => segments.next(),
        Some("apis") => segments.nth(1),
        _ => return path,
    };
    match segments.next() {
        Some("namespaces") => segments.nth(1).unwrap_or("namespaces"),
        other => other.unwrap_or(path),
    }
}

impl Sub for Figures {
    type Output = Self;

    fn sub(mut self, before: Self) -> Self {
        self.0.retain(|kind, count| {
            *count = count.saturating_sub(before.0.get(kind).copied().unwrap_or_default());
            *count > 0
        });
        self
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests, {} of them writes",
            self.total(),
            self.writes()
        )?;
        for (number, ((_, what), count)) in self.0.iter().enumerate() {
            write!(f, "{}{count} {what}", if number == 0 { " (" } else { ", " })?;
        }
        if self.0.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}

/// Formats a duration in seconds.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

pub(super) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let mut figures = Figures::default();
        let mut count = |method: Method, uri: &str| {
            let (parts, ()) = Request::builder()
                .method(method)
                .uri(uri)
                .body(())
                .unwrap()
                .into_parts();
            figures.count(&parts);
        };
        let cluster = "/apis/cluster.karmada.io/v1alpha1/clusters";
        count(Method::GET, cluster);
        count(
            Method::GET,
            &format!("{cluster}?watch=true&resourceVersion=1"),
        );
        count(Method::PATCH, &format!("{cluster}/member1/status"));
        count(
            Method::PATCH,
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
        );
        let before = figures.clone();
        assert_eq!(
            figures.to_string(),
            "4 requests, 2 of them writes (1 GET clusters, 1 WATCH clusters, 1 PATCH clusters, 1 PATCH leases)"
        );
        assert_eq!(
            (figures - before).to_string(),
            "0 requests, 0 of them writes"
        );
    }
}
