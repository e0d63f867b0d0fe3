//! Watches of an API whose resource versions went back, because its store was restored. Such a watch waits
//! for versions that have been: it shows no change that came with the restore, and for long nothing after it.
//! So whenever a watch is opened anew, a list of one object tells the API's version; where that is older than the
//! one the watch begins at, the watch ends as one that has expired, and its client lists everything again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

/// The times that the watches of this process met an API that went back.
pub(crate) static REWINDS: LazyLock<Counter> = LazyLock::new(Counter::default);

/// A watch that begins so soon after a list of the same objects begins where that ended.
const LISTED_NOW: Duration = Duration::from_secs(5);
/// All watches of an API meet the same restore.
const WARN_AGAIN: Duration = Duration::from_mins(5);
/// The objects are not read, so their metadata are enough.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json",
);
/// The longest answer that is read. An API that has no other form sends the whole object.
const LARGEST: usize = 4 << 20;

/// A service that ends the watches of an API that went back.
#[derive(Clone, Debug)]
pub(super) struct EndRewoundWatches<S> {
    inner: S,
    memory: Arc<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The time of the last list of each collection.
    listed: Mutex<HashMap<String, Instant>>,
    warned: Mutex<Option<Instant>>,
}

/// A watch that is opened anew.
#[derive(Debug, PartialEq, Eq)]
struct Reopened {
    collection: String,
    /// The version that it begins at.
    version: u64,
    /// The path and query of the list that tells the API's version.
    list: String,
}

impl Reopened {
    /// Returns the watch that a request opens; none for any other request.
    fn of(path: &str, query: &str) -> Option<Self> {
        parameter(query, "watch").filter(|watch| watch == "true")?;
        let version = parameter(query, "resourceVersion")?
            .parse()
            .ok()
            .filter(|version| *version > 0)?;
        let mut list = form_urlencoded::Serializer::new(String::new());
        list.append_pair("limit", "1");
        // Rights may be for one name only. Labels are left out: a list of one would look for the first match.
        if let Some(fields) = parameter(query, "fieldSelector") {
            list.append_pair("fieldSelector", &fields);
        }
        Some(Self {
            collection: path.to_owned(),
            version,
            list: format!("{path}?{}", list.finish()),
        })
    }
}

/// Returns the value of a parameter of a query.
fn parameter<'a>(query: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    parameters.find_map(|(name, value)| (name == wanted).then_some(value))
}

impl Memory {
    /// Notes a list, and returns the watch that a request opens anew.
    fn note<T>(&self, request: &Request<T>) -> Option<Reopened> {
        let (path, query) = (
            request.uri().path(),
            request.uri().query().unwrap_or_default(),
        );
        if request.method() != Method::GET {
            return None;
        }
        let reopened = Reopened::of(path, query);
        let mut listed = self.listed.lock();
        if let Some(reopened) = reopened {
            // Only the first watch after a list begins where that ended.
            let list = listed.remove(&reopened.collection);
            return list
                .is_none_or(|at| at.elapsed() > LISTED_NOW)
                .then_some(reopened);
        }
        if query
            .split('&')
            .any(|parameter| parameter.starts_with("limit="))
        {
            listed.insert(path.to_owned(), Instant::now());
        }
        None
    }

    /// Counts a watch whose API went back, and warns once of all of them. Returns the event that ends the watch.
    fn rewound(&self, watch: &Reopened, now: u64) -> Bytes {
        REWINDS.inc();
        let mut warned = self.warned.lock();
        if warned.is_none_or(|warned| warned.elapsed() > WARN_AGAIN) {
            *warned = Some(Instant::now());
            let (collection, seen) = (&watch.collection, watch.version);
            tracing::warn!(
                collection,
                seen,
                now,
                "The API's resource versions went back, as after a restore: all is listed again"
            );
        }
        let message = format!(
            "the resource version went back from {} to {now}, as after a restore",
            watch.version
        );
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "Expired", "code": 410, "message": message,
        });
        // On a line of its own, whatever came before.
        format!("\n{}\n", json!({ "type": "ERROR", "object": status })).into()
    }
}

impl<S> EndRewoundWatches<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            memory: Arc::default(),
        }
    }
}

/// The end of a watch of an API that went back; `None` if it did not, or could not be asked.
type Check = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

impl<S, B> Service<Request<Body>> for EndRewoundWatches<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<CheckedBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let check = self.memory.note(&request).map(|reopened| {
            let (inner, memory) = (self.inner.clone(), Arc::clone(&self.memory));
            let check: Check = Box::pin(async move {
                let now = newest(inner, &reopened.list).await?;
                (now < reopened.version).then(|| memory.rewound(&reopened, now))
            });
            check
        });
        let response = self.inner.call(request);
        Box::pin(async move {
            let Some(mut check) = check else {
                return Ok(response
                    .await?
                    .map(|body| CheckedBody::new(Some(body), None)));
            };
            let mut response = std::pin::pin!(response);
            // An API may wait for the version before it answers at all.
            let response = tokio::select! {
                biased;
                response = response.as_mut() => {
                    return Ok(response?.map(|body| CheckedBody::new(Some(body), Some(check))));
                }
                end = check.as_mut() => match end {
                    Some(end) => {
                        let check: Check = Box::pin(std::future::ready(Some(end)));
                        return Ok(Response::new(CheckedBody::new(None, Some(check))));
                    }
                    None => response.await?,
                },
            };
            Ok(response.map(|body| CheckedBody::new(Some(body), None)))
        })
    }
}

/// Returns the version of the API as a list of one object tells it.
async fn newest<S, B>(service: S, list: &str) -> Option<u64>
where
    S: Service<Request<Body>, Response = Response<B>>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    #[derive(Deserialize)]
    struct List {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let mut request = Request::get(list).body(Body::empty()).ok()?;
    request.headers_mut().insert(header::ACCEPT, METADATA);
    let response = service.oneshot(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = Limited::new(response.into_body(), LARGEST);
    let text = body.collect().await.ok()?.to_bytes();
    let list: List = serde_json::from_slice(&text).ok()?;
    list.metadata.resource_version.parse().ok()
}

/// The body of a response, which ends with an error event if the API went back.
pub(super) struct CheckedBody<B> {
    /// `None` once the watch has ended.
    body: Option<Pin<Box<B>>>,
    check: Option<Check>,
}

impl<B> CheckedBody<B> {
    fn new(body: Option<B>, check: Option<Check>) -> Self {
        Self {
            body: body.map(Box::pin),
            check,
        }
    }
}

impl<B> http_body::Body for CheckedBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(check) = &mut self.check
            && let Poll::Ready(end) = check.as_mut().poll(context)
        {
            self.check = None;
            if let Some(end) = end {
                self.body = None;
                return Poll::Ready(Some(Ok(Frame::data(end))));
            }
        }
        match &mut self.body {
            Some(body) => body.as_mut().poll_frame(context).map_err(Into::into),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let body = self.body.as_ref();
        self.check.is_none() && body.is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.body, &self.check) {
            (Some(body), None) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
