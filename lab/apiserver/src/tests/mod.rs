//! Tests of the server through its HTTP interface.

mod clients;
mod deletion;
mod faults;
mod fork;
mod garbage;
mod objects;
mod replay;
mod texts;
mod watches;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{ApiServer, Body};

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const REMEDIES: &str = "/apis/remedy.example.com/v1/remedies";
pub(super) const TASKS: &str = "/apis/remedy.example.com/v1/namespaces/default/tasks";

#[derive(Debug)]
pub(super) struct Response {
    pub(super) code: StatusCode,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Bytes,
}

impl Response {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    #[track_caller]
    pub(super) fn ok(self) -> Value {
        assert!(self.code.is_success(), "{self:?}");
        self.json()
    }

    /// Returns the code and reason of a failure.
    #[track_caller]
    pub(super) fn failure(&self) -> (u16, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.code.as_u16(), "{status}");
        (
            self.code.as_u16(),
            status["reason"].as_str().unwrap_or_default().to_owned(),
        )
    }

    #[track_caller]
    pub(super) fn fails(&self, code: u16, reason: &str) {
        assert_eq!(self.failure(), (code, reason.to_owned()), "{self:?}");
    }
}

impl ApiServer {
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> std::io::Result<Response> {
        let response = self.service().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map_err(std::io::Error::other)?
            .to_bytes();
        Ok(Response {
            code: parts.status,
            headers: parts.headers,
            body,
        })
    }

    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Full<Bytes>>,
    ) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "tests/1");
        self.send(request.body(body.into()).unwrap()).await.unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path, "", Full::default()).await
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Response {
        self.request(Method::POST, path, "application/json", object.to_string())
            .await
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Response {
        self.request(Method::PUT, path, "application/json", object.to_string())
            .await
    }

    pub(super) async fn merge(&self, path: &str, change: &Value) -> Response {
        let type_ = "application/merge-patch+json";
        self.request(Method::PATCH, path, type_, change.to_string())
            .await
    }

    pub(super) async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path, "", Full::default())
            .await
    }
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Creates a server with two custom resources: cluster-scoped `remedies` with a status, and
/// namespaced `tasks` without one.
pub(super) fn server() -> ApiServer {
    let server = ApiServer::new();
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "color": {"type": "string", "default": "red"},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    for (kind, plural, scope, subresources) in [
        ("Remedy", "remedies", "Cluster", json!({"status": {}})),
        ("Task", "tasks", "Namespaced", json!({})),
    ] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.remedy.example.com")},
            "spec": {
                "group": "remedy.example.com", "scope": scope,
                "names": {"kind": kind, "plural": plural},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": {"openAPIV3Schema": schema},
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                }],
            },
        });
        server.install(&definition).unwrap();
    }
    server
}

pub(super) fn remedy(name: &str) -> Value {
    json!({
        "apiVersion": "remedy.example.com/v1", "kind": "Remedy",
        "metadata": {"name": name}, "spec": {"size": 1},
    })
}

pub(super) fn task(name: &str) -> Value {
    json!({
        "apiVersion": "remedy.example.com/v1", "kind": "Task",
        "metadata": {"name": name}, "spec": {},
    })
}

/// A watch, read line by line.
pub(super) struct Lines {
    body: Body,
    buffer: Vec<u8>,
}

impl Lines {
    /// Returns the type and object of the next line, `None` at the end, or an error if the
    /// connection is lost.
    pub(super) async fn next(&mut self) -> Result<Option<(String, Value)>, std::io::Error> {
        while !self.buffer.contains(&b'\n') {
            match self.body.frame().await {
                None => {
                    assert!(self.buffer.is_empty(), "the end is within a line");
                    return Ok(None);
                }
                Some(Ok(frame)) => self.buffer.extend(frame.into_data().unwrap()),
                Some(Err(error)) => return Err(error),
            }
        }
        let end = self.buffer.iter().position(|byte| *byte == b'\n').unwrap();
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        assert!(line.starts_with(b"{\"type\":"));
        let line: Value = serde_json::from_slice(&line).unwrap();
        Ok(Some((
            line["type"].as_str().unwrap().to_owned(),
            line["object"].clone(),
        )))
    }

    /// Returns the type of the next line and the name of its object.
    pub(super) async fn seen(&mut self) -> String {
        let (type_, object) = self.next().await.unwrap().unwrap();
        format!(
            "{type_} {}",
            object["metadata"]["name"].as_str().unwrap_or_default()
        )
    }

    /// Returns `true` if no line follows within 50 seconds, which is less than the bookmark period.
    pub(super) async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(std::time::Duration::from_secs(50), self.next())
            .await
            .is_err()
    }
}

impl ApiServer {
    /// Starts a watch; `path` has the query without `watch`.
    pub(super) async fn watch(&self, path: &str) -> Lines {
        let uri = if path.contains('?') {
            format!("{path}&watch=1")
        } else {
            format!("{path}?watch=1")
        };
        let request = Request::builder().uri(uri).header("user-agent", "tests/1");
        let response = self
            .service()
            .oneshot(request.body(Full::default()).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        Lines {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }
}
