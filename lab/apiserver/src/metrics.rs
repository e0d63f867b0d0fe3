//! The request counter that kube-apiserver exposes at `/metrics`.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::Mutex;

const HEAD: &str = "\
# HELP apiserver_request_total Counter of requests for objects, by attributes of the request and the HTTP status of the response.
# TYPE apiserver_request_total counter
";

/// The content type of Prometheus' text format.
pub(crate) const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Requests for objects by their attributes. Excludes requests that a fault rejected; a watch
/// counts when it starts.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<Labels, u64>>,
}

/// The labels of the metric, in its order. All values come from served kinds, so that their number
/// is bounded and none needs escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) code: u16,
    pub(crate) dry_run: &'static str,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) scope: &'static str,
    pub(crate) subresource: &'static str,
    pub(crate) verb: &'static str,
    pub(crate) version: String,
}

impl Requests {
    /// Counts a response.
    pub(crate) fn count(&self, labels: Labels) {
        *self.counts.lock().entry(labels).or_default() += 1;
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (labels, count) in &*self.counts.lock() {
            let Labels {
                code,
                dry_run,
                group,
                resource,
                scope,
                subresource,
                verb,
                version,
            } = labels;
            writeln!(
                f,
                "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",\
                 group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",subresource=\"{subresource}\",\
                 verb=\"{verb}\",version=\"{version}\"}} {count}"
            )?;
        }
        Ok(())
    }
}
