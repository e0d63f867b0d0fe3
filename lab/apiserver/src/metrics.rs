//! The request counter that kube-apiserver exposes at `/metrics`.

use std::collections::BTreeMap;
use std::fmt;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;

use crate::body;
use crate::call::Call;
use crate::request::Verb;

const HEAD: &str = "\
# HELP apiserver_request_total Counter of requests for objects, by attributes of the request and the HTTP status of the response.
# TYPE apiserver_request_total counter
";

/// The content type of Prometheus' text format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Requests for objects by their attributes. Excludes requests that a fault rejected; a watch
/// counts when it starts.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<Labels, u64>>,
}

/// The labels of the metric, in its order. All values come from served kinds, so that their number
/// is bounded and none needs escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    code: u16,
    dry_run: &'static str,
    group: String,
    resource: String,
    scope: &'static str,
    subresource: &'static str,
    verb: &'static str,
    version: String,
}

impl Requests {
    /// Counts a response.
    pub(crate) fn count(&self, call: &Call, code: StatusCode) {
        let labels = Labels {
            code: code.as_u16(),
            dry_run: if call.query.text("dryRun") == Some("All") {
                "All"
            } else {
                ""
            },
            group: call.kind.group.clone(),
            resource: call.kind.plural.clone(),
            scope: scope(call),
            subresource: if call.path.subresource.is_some() {
                "status"
            } else {
                ""
            },
            verb: verb(call),
            version: call.kind.version.clone(),
        };
        *self.counts.lock().entry(labels).or_default() += 1;
    }

    /// Returns the response at `/metrics`.
    pub(crate) fn to_response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.to_string()));
        let type_ = HeaderValue::from_static(TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, type_);
        response
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

fn scope(call: &Call) -> &'static str {
    if call.path.name.is_some() || call.info.verb == Verb::Create {
        "resource"
    } else if call.path.namespace.is_some() {
        "namespace"
    } else {
        "cluster"
    }
}

fn verb(call: &Call) -> &'static str {
    match call.info.verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if body::media_type(&call.content_type) == body::APPLY => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
    }
}
