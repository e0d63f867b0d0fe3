//! Writes to an API, which begin only while leading and end before leadership may be lost.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use crate::metrics::Registry;
use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{Request, request};
use kube::{Api, Resource};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::error::Chain;
use crate::lease::Leadership;
use crate::metrics::{APPLIED, WriteMetrics};
use crate::program::Program;

/// The longest duration of a write.
const LIMIT: Duration = Duration::from_secs(10);
/// The form of an answer of which only the version is read: the metadata alone, if the server has that
/// form.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json",
);

/// Performs and counts the writes of a program.
#[derive(Clone, Debug)]
pub struct Writer {
    leadership: Leadership,
    metrics: WriteMetrics,
}

/// Errors of a write. The write may have been stored in the cases `TimedOut` and `Api`.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another replica leads now.
    #[error("not leading")]
    NotLeading,
    /// No response in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The API server rejected the write or was not reached.
    #[error("{}", Chain(.0))]
    Api(#[from] kube::Error),
}

/// Classes of write errors by the reaction they require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// The object differs from the version that was assumed: read it again (409).
    Conflict,
    /// The object or its namespace does not exist (404).
    Missing,
    /// The API server rejects the content: a retry fails as well. A JSON patch whose `test` fails is
    /// in this class too, because the API server reports it as 422.
    Invalid,
    /// A retry may succeed: 429, 5xx, timeouts, lost connections.
    Transient,
}

impl WriteError {
    /// Returns the class of the error.
    pub fn kind(&self) -> WriteErrorKind {
        match self {
            Self::Api(kube::Error::Api(status)) => match status.code {
                404 => WriteErrorKind::Missing,
                409 => WriteErrorKind::Conflict,
                400 | 403 | 405 | 413 | 415 | 422 => WriteErrorKind::Invalid,
                _ => WriteErrorKind::Transient,
            },
            _ => WriteErrorKind::Transient,
        }
    }

    fn label(&self) -> &'static str {
        match (self, self.kind()) {
            (Self::NotLeading, _) => "not_leading",
            (Self::TimedOut(_), _) => "timed_out",
            (_, WriteErrorKind::Conflict) => "conflict",
            (_, WriteErrorKind::Missing) => "missing",
            (_, WriteErrorKind::Invalid) => "invalid",
            (_, WriteErrorKind::Transient) => "failed",
        }
    }
}

impl Writer {
    /// Creates a writer that writes while `leadership` holds.
    pub fn new(leadership: Leadership, metrics: WriteMetrics) -> Self {
        Self {
            leadership,
            metrics,
        }
    }

    /// Performs the request `call` within 10 s and before leadership may be lost. `target` names the
    /// written kind or field in the metrics.
    pub async fn write<T>(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let result = self.bounded(call).await;
        let outcome = result.as_ref().map_or_else(WriteError::label, |_| APPLIED);
        self.metrics.count(target, outcome);
        result
    }

    async fn bounded<T>(
        &self,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let now = Instant::now();
        let until = self.leadership.held_until().ok_or(WriteError::NotLeading)?;
        let limit = until.saturating_duration_since(now).min(LIMIT);
        // The clock comes first: a process that was suspended past its lease must not continue a
        // request, even one that is ready to be sent.
        tokio::select! {
            biased;
            () = tokio::time::sleep(limit) => Err(if limit < LIMIT {
                WriteError::NotLeading
            } else {
                WriteError::TimedOut(LIMIT)
            }),
            result = call => result.map_err(WriteError::Api),
        }
    }
}

/// An object as a write has left it, of which the answer shows only the version.
#[derive(Debug, Deserialize)]
pub struct Stored {
    metadata: Version,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    resource_version: Option<String>,
}

impl Stored {
    /// Returns its resource version.
    pub fn version(self) -> Option<String> {
        self.metadata.resource_version
    }
}

/// Creates an object, given as JSON. Like all writes here it is large, so it is neither asked for nor
/// decoded.
pub async fn create<K: Resource + Clone>(
    objects: &Api<K>,
    parameters: &PostParams,
    object: &Value,
) -> kube::Result<Stored> {
    let body = object.to_string().into_bytes();
    send(objects, |request| request.create(parameters, body)).await
}

/// Patches the object `name`.
pub async fn patch<K: Resource + Clone>(
    objects: &Api<K>,
    name: &str,
    parameters: &PatchParams,
    patch: &Patch<impl Serialize + Debug>,
) -> kube::Result<Stored> {
    send(objects, |request| request.patch(name, parameters, patch)).await
}

/// Patches the status of the object `name`.
pub async fn patch_status<K: Resource + Clone>(
    objects: &Api<K>,
    name: &str,
    parameters: &PatchParams,
    patch: &Patch<impl Serialize + Debug>,
) -> kube::Result<Stored> {
    send(objects, |request| {
        request.patch_subresource("status", name, parameters, patch)
    })
    .await
}

async fn send<K: Resource + Clone>(
    objects: &Api<K>,
    build: impl FnOnce(Request) -> Result<http::Request<Vec<u8>>, request::Error>,
) -> kube::Result<Stored> {
    let request = build(Request::new(objects.resource_url()));
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.headers_mut().insert(ACCEPT, METADATA);
    objects.clone().into_client().request(request).await
}

/// The way of a program to write.
#[derive(Clone, Debug)]
pub enum Writes {
    /// Each write is performed.
    Perform(Writer),
    /// Nothing is written; what would be is counted.
    Count(WouldWrite),
}

/// Counters of the writes that did not take place, by target.
#[derive(Clone, Debug, Default)]
pub struct WouldWrite {
    writes: Family<WouldWriteLabels, Counter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WouldWriteLabels {
    target: &'static str,
}

impl WouldWrite {
    /// Registers `would_write_total{target}`.
    fn register(registry: &mut Registry) -> Self {
        let counters = Self::default();
        registry.register(
            "would_write",
            "Writes that were decided and, as only observation was asked for, not performed",
            counters.writes.clone(),
        );
        counters
    }

    /// Returns the number of writes to `target`.
    pub fn of(&self, target: &'static str) -> u64 {
        self.writes
            .get_or_create(&WouldWriteLabels { target })
            .get()
    }
}

impl Writes {
    /// Returns the leadership of `program`, which `campaign` seeks, and its way to write. With
    /// `observe_only` it writes nothing, the lease included.
    pub fn start(
        program: &mut Program,
        observe_only: bool,
        campaign: impl FnOnce(&mut Program) -> Leadership,
    ) -> (Leadership, Self) {
        if observe_only {
            let counters = WouldWrite::register(&mut program.registry);
            return (Leadership::always(), Self::Count(counters));
        }
        let leadership = campaign(program);
        let metrics = WriteMetrics::register(&mut program.registry);
        let writer = Writer::new(leadership.clone(), metrics);
        (leadership, Self::Perform(writer))
    }

    /// Performs the request `call` and returns its response; `None` if it is counted only.
    ///
    /// # Errors
    /// Fails as [`Writer::write`] does.
    pub async fn write<T>(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<Option<T>, WriteError> {
        match self {
            Self::Perform(writer) => writer.write(target, call).await.map(Some),
            Self::Count(counters) => {
                let labels = WouldWriteLabels { target };
                counters.writes.get_or_create(&labels).inc();
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::Node;
    use kube::core::Status;

    use super::*;
    use crate::metrics::OUTCOMES;

    fn writer(leadership: Leadership) -> Writer {
        Writer::new(leadership, WriteMetrics::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_not_begun_without_leadership() {
        let (leadership, _sender) = Leadership::for_tests();
        let begun = async { panic!("begun") };
        let result: Result<(), _> = writer(leadership).write("test", begun).await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_ends_before_leadership_does() {
        let (leadership, held_until) = Leadership::for_tests();
        let started = Instant::now();
        held_until.send_replace(Some(started + Duration::from_secs(3)));
        let result: Result<(), _> = writer(leadership)
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
        assert_eq!(started.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_a_response_ends_after_ten_seconds() {
        let started = Instant::now();
        let result: Result<(), _> = writer(Leadership::always())
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::TimedOut(_))));
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test]
    async fn a_patched_status_asks_for_the_metadata_alone() {
        let service = tower::service_fn(async |request: http::Request<kube::client::Body>| {
            let asked = request.headers()[ACCEPT].to_str().unwrap().to_owned();
            assert!(
                asked.starts_with("application/json;as=PartialObjectMetadata;"),
                "{asked}"
            );
            let answer = r#"{ "metadata": { "resourceVersion": "7" } }"#;
            Ok::<_, Infallible>(http::Response::new(kube::client::Body::from(
                answer.as_bytes().to_vec(),
            )))
        });
        let nodes: Api<Node> = Api::all(kube::Client::new(service, "default"));
        let patch = Patch::Merge(serde_json::json!({}));
        let stored = patch_status(&nodes, "n", &PatchParams::default(), &patch).await;
        assert_eq!(stored.unwrap().version().as_deref(), Some("7"));
    }

    #[test]
    fn every_outcome_is_known() {
        let api = |code| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            WriteError::Api(kube::Error::Api(status))
        };
        let errors = [400, 403, 404, 409, 422, 500].map(api);
        let others = [WriteError::NotLeading, WriteError::TimedOut(LIMIT)];
        for error in errors.into_iter().chain(others) {
            assert!(OUTCOMES.contains(&error.label()), "{error}");
        }
    }

    #[test]
    fn a_status_code_determines_the_class() {
        let kind = |code| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            WriteError::Api(kube::Error::Api(status)).kind()
        };
        assert_eq!(kind(409), WriteErrorKind::Conflict);
        assert_eq!(kind(404), WriteErrorKind::Missing);
        assert_eq!(kind(422), WriteErrorKind::Invalid);
        assert_eq!(kind(503), WriteErrorKind::Transient);
    }
}
