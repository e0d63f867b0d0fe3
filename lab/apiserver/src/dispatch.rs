//! Routing: from a request to its handler, through the faults that concern it.

use std::io;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, header};
use serde_json::Value;
use tokio::time::sleep;

use crate::ApiServer;
use crate::body;
use crate::call::Call;
use crate::error::{ApiError, Qualified};
use crate::faults::{Fault, RequestInfo};
use crate::request::{Accepted, ObjectPath, Path, Query, Verb};
use crate::response::{Body, disconnected, document, failure, json, plain};
use crate::verbs;
use crate::{discovery, metrics, openapi};

/// The reason for a request not being handled.
#[derive(Debug)]
enum Failure {
    /// The connection is lost instead of a response.
    Lost,
    Refused(ApiError),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// Faults that take effect while a request is handled.
#[derive(Debug, Default)]
struct FaultEffects {
    /// Number of versions by which a list is out of date.
    stale: Option<u64>,
    loses_response: bool,
}

impl ApiServer {
    /// Handles a request.
    ///
    /// # Errors
    /// Only a lost connection is an error; every failure of the API is a response.
    pub(crate) async fn respond(&self, parts: Parts, body: Body) -> io::Result<Response<Body>> {
        match self.dispatch(parts, body).await {
            Ok(response) => Ok(response),
            Err(Failure::Lost) => Err(disconnected()),
            Err(Failure::Refused(error)) => Ok(failure(&error)),
        }
    }

    async fn dispatch(&self, parts: Parts, body: Body) -> Result<Response<Body>, Failure> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        match Path::parse(parts.uri.path())? {
            Path::Objects(path) => {
                let verb = path.verb(&parts.method, &query);
                let verb = verb.ok_or_else(ApiError::method_not_allowed)?;
                self.handle(path, verb, query, &parts.headers, body).await
            }
            Path::Other(segments) => {
                let info = RequestInfo {
                    verb: Verb::Get,
                    plural: String::new(),
                    name: match &segments[..] {
                        [apis, group, ..] if apis == "apis" => group.clone(),
                        _ => String::new(),
                    },
                    subresource: String::new(),
                    client: user_agent(&parts.headers),
                };
                self.apply_faults(&info, "").await?;
                let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
                Ok(self.describe(&parts.method, &segments, &parts.headers)?)
            }
        }
    }

    async fn handle(
        &self,
        path: ObjectPath,
        verb: Verb,
        query: Query,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response<Body>, Failure> {
        let info = RequestInfo {
            verb,
            plural: path.plural.clone(),
            name: path.name.clone().unwrap_or_default(),
            subresource: path.subresource.clone().unwrap_or_default(),
            client: user_agent(headers),
        };
        let effects = self.apply_faults(&info, &path.group).await?;
        let body = body::read(body).await?;
        let call = Call::new(self, path, query, headers, body, info)?;
        let result = verbs::run(&call, effects.stale);
        let code = match &result {
            Ok(response) => response.status(),
            Err(error) => error.code(),
        };
        // Counted even if the response is lost below, since the server did handle the request.
        self.requests().count(call.labels(code));
        // Only after the write is stored, so that the client cannot know whether it was.
        if effects.loses_response {
            return Err(Failure::Lost);
        }
        Ok(result?)
    }

    /// Applies the faults that concern a request, in the order of their injection. `group` is that
    /// of the objects, for messages.
    async fn apply_faults(&self, info: &RequestInfo, group: &str) -> Result<FaultEffects, Failure> {
        let mut effects = FaultEffects::default();
        for fault in self.faults().of_request(info) {
            match fault {
                Fault::Slow(by) => sleep(by).await,
                Fault::Disconnect => return Err(Failure::Lost),
                Fault::Silence => {
                    self.faults().silence_over(info).await;
                    return Err(Failure::Lost);
                }
                Fault::TooManyRequests { retry_after } => {
                    Err(ApiError::too_many_requests(whole_seconds(retry_after)))?;
                }
                Fault::Unauthorized => Err(ApiError::unauthorized())?,
                Fault::Forbidden => {
                    let resource = Qualified {
                        group,
                        name: &info.plural,
                    };
                    Err(ApiError::forbidden(
                        resource,
                        &info.name,
                        "a fault was injected",
                    ))?;
                }
                Fault::InternalError => Err(ApiError::internal("a fault was injected"))?,
                Fault::Unavailable => Err(ApiError::unavailable())?,
                Fault::Conflict => {
                    let resource = Qualified {
                        group,
                        name: &info.plural,
                    };
                    Err(ApiError::modified(resource, &info.name))?;
                }
                Fault::StaleList { versions } => effects.stale = Some(versions),
                Fault::LoseResponse => effects.loses_response = true,
                Fault::CutWatch { .. }
                | Fault::ExpireWatch
                | Fault::FailWatch
                | Fault::WithholdBookmarks
                | Fault::DelayEvents { .. } => {}
            }
        }
        Ok(effects)
    }

    /// Serves every path that does not name objects: health, metrics, version, discovery and
    /// OpenAPI.
    fn describe(
        &self,
        method: &Method,
        path: &[&str],
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(ApiError::method_not_allowed());
        }
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok());
        let accepted = Accepted::parse(accept.unwrap_or_default());
        let registered: Vec<_> = self.state().registry.iter().cloned().collect();
        let kinds: Vec<_> = registered.iter().map(|kind| &**kind).collect();
        let found = match *path {
            ["healthz" | "livez" | "readyz", ..] => return Ok(plain("ok")),
            ["metrics"] => return Ok(document(metrics::TYPE, self.requests().to_string())),
            ["version"] => Some(discovery::version()),
            ["api" | "apis"] if accepted.names(discovery::AGGREGATED) => {
                let text = discovery::aggregated(&kinds, path == ["api"]).to_string();
                // Clients recognize the aggregated document by the parameters of its content type.
                return Ok(document(discovery::AGGREGATED, text));
            }
            ["api"] => Some(discovery::core_versions(&kinds)),
            ["apis"] => Some(discovery::groups(&kinds)),
            ["apis", group] => discovery::group(&kinds, group),
            ["api", version] => discovery::resources(&kinds, "", version),
            ["apis", group, version] => discovery::resources(&kinds, group, version),
            ["openapi", "v3"] => Some(openapi::index(&kinds)),
            ["openapi", "v3", "api", version] => openapi::document(&kinds, "", version),
            ["openapi", "v3", "apis", group, version] => openapi::document(&kinds, group, version),
            _ => None,
        };
        let found: Value = found.ok_or_else(ApiError::no_such_path)?;
        Ok(json(StatusCode::OK, found.to_string(), &[]))
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn user_agent(headers: &HeaderMap) -> String {
    let value = headers.get(header::USER_AGENT);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}
