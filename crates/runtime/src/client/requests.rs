//! Counts the requests to APIs. The members of a fleet count as one: sixty would be as many series of each.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Method, Request, Response, StatusCode, Uri};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;
use tower::Service;

use crate::metrics::Registry;

/// The label `code` of a request that got no response.
const NONE: &str = "none";

/// The requests of this process.
pub(crate) static REQUESTS: LazyLock<RequestMetrics> = LazyLock::new(RequestMetrics::new);

/// The requests by API, verb and code, and how long their responses took.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    api: &'static str,
    verb: &'static str,
    code: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    api: &'static str,
    verb: &'static str,
}

impl RequestMetrics {
    fn new() -> Self {
        Self {
            requests: Family::default(),
            // 4 ms to 16 s: a response takes at most 30 s.
            duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.004, 2.0, 13))
            }),
        }
    }

    /// Registers `api_requests_total{api,verb,code}` and `api_request_duration_seconds{api,verb}`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_requests",
            "Requests to an API, by verb and by the code of the response, or none without one; all members are one API",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "api_request_duration",
            "Time to the response of an API, of a watch to its start",
            Unit::Seconds,
            self.duration.clone(),
        );
    }
}

/// A service that counts its requests as those to `api`.
#[derive(Clone, Debug)]
pub(super) struct CountRequests<S> {
    inner: S,
    api: &'static str,
}

impl<S> CountRequests<S> {
    pub(super) fn new(inner: S, api: &'static str) -> Self {
        Self { inner, api }
    }
}

impl<S, A, B> Service<Request<A>> for CountRequests<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let counted = Counted {
            api: self.api,
            verb: verb(request.method(), request.uri()),
            code: None,
            begun: Instant::now(),
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            // Whole: its fields alone would be counted before the response.
            let mut counted = counted;
            let response = response.await;
            counted.code = response.as_ref().ok().map(Response::status);
            response
        })
    }
}

/// A request, which is counted when it is over or given up.
struct Counted {
    api: &'static str,
    verb: &'static str,
    code: Option<StatusCode>,
    begun: Instant,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Self { api, verb, .. } = *self;
        let code = self.code.as_ref().map_or(NONE, StatusCode::as_str);
        let labels = RequestLabels {
            api,
            verb,
            code: code.to_owned(),
        };
        REQUESTS.requests.get_or_create(&labels).inc();
        if self.code.is_some() {
            let labels = DurationLabels { api, verb };
            let took = self.begun.elapsed().as_secs_f64();
            REQUESTS.duration.get_or_create(&labels).observe(took);
        }
    }
}

/// Returns the verb of a request, as audit and RBAC name it (Kubernetes, "Authorization", "Determine the request verb").
pub(super) fn verb(method: &Method, uri: &Uri) -> &'static str {
    let names_one = names_one(uri.path());
    let mut parameters = uri.query().unwrap_or_default().split('&');
    let watches = parameters.any(|parameter| parameter == "watch=true");
    match *method {
        Method::GET if watches => "watch",
        Method::GET if names_one => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if names_one => "delete",
        Method::DELETE => "deletecollection",
        _ => "other",
    }
}

/// Returns `true` if a path names one object, or nothing that could be listed.
fn names_one(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    // A prefix may stand before it, as of a proxy.
    let root = parts.find(|part| matches!(*part, "api" | "apis"));
    let groups = match root {
        Some("apis") => 2,
        Some(_) => 1,
        None => return true,
    };
    let parts: Vec<&str> = parts.skip(groups).collect();
    // A Namespace itself is one object, and a collection in it is not.
    !matches!(parts[..], [_] | ["namespaces", _, _])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list, a watch and a get have the same method, and a Namespace is an object as well.
    #[test]
    fn verbs_are_those_of_rbac() {
        for (method, path, expected) in [
            ("GET", "/api/v1/pods", "list"),
            ("GET", "/api/v1/pods?watch=true&resourceVersion=1", "watch"),
            ("GET", "/api/v1/namespaces", "list"),
            ("GET", "/api/v1/namespaces/a", "get"),
            ("GET", "/api/v1/namespaces/a/pods?limit=1", "list"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get"),
            ("GET", "/apis/apps/v1", "get"),
            ("GET", "/version", "get"),
            ("POST", "/api/v1/namespaces/a/events", "create"),
            ("PATCH", "/apis/g/v1/clusters/a/status", "patch"),
            ("PUT", "/apis/g/v1/namespaces/a/leases/b", "update"),
            ("DELETE", "/apis/g/v1/namespaces/a/works/b", "delete"),
            (
                "DELETE",
                "/apis/g/v1/namespaces/a/works",
                "deletecollection",
            ),
            ("GET", "/karmada/apis/g/v1/clusters", "list"),
        ] {
            let (method, uri) = (method.parse().unwrap(), path.parse().unwrap());
            assert_eq!(verb(&method, &uri), expected, "{method} {path}");
        }
    }

    /// A response counts by its code; a request that fails, or that its caller gives up, has none.
    #[tokio::test]
    async fn every_request_is_counted() {
        let answers = tower::service_fn(|request: Request<()>| async move {
            match request.uri().query() {
                Some("fail") => Err("no connection"),
                Some("hang") => std::future::pending().await,
                _ => {
                    let throttled = Response::builder().status(StatusCode::TOO_MANY_REQUESTS);
                    Ok(throttled.body(()).unwrap())
                }
            }
        });
        let mut service = CountRequests::new(answers, "counted");
        let mut call = |query: &str| {
            let request = Request::get(format!("http://api/api/v1/pods{query}"));
            service.call(request.body(()).unwrap())
        };
        call("").await.unwrap();
        call("?fail").await.unwrap_err();
        drop(call("?hang"));
        let counts = ["429", NONE].map(|code| {
            let labels = RequestLabels {
                api: "counted",
                verb: "list",
                code: code.to_owned(),
            };
            REQUESTS.requests.get_or_create(&labels).get()
        });
        assert_eq!(counts, [1, 2]);
    }
}
