//! An API server for tests that holds one lease, in memory, and counts what it is asked.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::channel::mpsc;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The server. Its clones are one.
#[derive(Clone, Default)]
pub(super) struct FakeApi {
    inner: Arc<Mutex<Inner>>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    lease: Option<Value>,
    version: u64,
    asked: Vec<&'static str>,
    watchers: Vec<mpsc::UnboundedSender<Result<Bytes, std::io::Error>>>,
    health: Health,
}

/// How the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Health {
    #[default]
    Good,
    /// It answers every request with 503.
    Failing,
    /// It never answers.
    Hanging,
    /// The namespace of the lease is not there.
    NoNamespace,
    /// It answers every write with 409.
    Conflicting,
}

impl FakeApi {
    pub(super) fn client(&self) -> Client {
        Client::new(
            Router::new().fallback(serve).with_state(self.clone()),
            "default",
        )
    }

    /// From now on; watches that are open end unless the health is good.
    pub(super) fn set(&self, health: Health) {
        let mut inner = self.inner.lock();
        inner.health = health;
        if health != Health::Good {
            inner.watchers.clear();
        }
    }

    /// What was asked since the last call: `read`, `create`, `patch`, `list`, `watch`.
    pub(super) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.inner.lock().asked)
    }

    /// Somebody else holds the lease, or, without a name, has given it back.
    pub(super) fn held_by(&self, holder: Option<&str>) {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15 });
        self.inner.lock().store(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": "test" },
            "spec": spec,
        }));
        self.changes.send_replace(());
    }

    /// The lease is gone, and no watch tells of it.
    pub(super) fn delete_unseen(&self) {
        self.inner.lock().lease = None;
    }

    /// The lease's holder, up to the `_` before what makes it unique.
    pub(super) fn holder(&self) -> Option<String> {
        let inner = self.inner.lock();
        let holder = inner.lease.as_ref()?["spec"]["holderIdentity"].as_str()?;
        Some(holder.split('_').next()?.to_owned())
    }

    /// How many watches are open.
    pub(super) fn watchers(&self) -> usize {
        let mut inner = self.inner.lock();
        inner.watchers.retain(|watcher| !watcher.is_closed());
        inner.watchers.len()
    }

    /// Waits until `reached` is true of the server.
    pub(super) async fn until(&self, reached: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !reached(self) {
            changes.changed().await.unwrap();
        }
    }
}

impl Inner {
    fn store(&mut self, mut lease: Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let event = format!("{{\"type\":\"MODIFIED\",\"object\":{lease}}}\n");
        self.lease = Some(lease);
        self.watchers
            .retain(|watcher| watcher.unbounded_send(Ok(event.clone().into())).is_ok());
    }

    fn create(&mut self, lease: Value) -> Response {
        if self.lease.is_some() {
            return status(StatusCode::CONFLICT);
        }
        self.store(lease);
        answer(StatusCode::CREATED, self.lease.as_ref().unwrap())
    }

    fn patch(&mut self, patch: &Value) -> Response {
        let Some(mut lease) = self.lease.clone() else {
            return status(StatusCode::NOT_FOUND);
        };
        if patch["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
            return status(StatusCode::CONFLICT);
        }
        for (field, value) in patch["spec"].as_object().unwrap() {
            lease["spec"][field] = value.clone();
        }
        self.store(lease);
        answer(StatusCode::OK, self.lease.as_ref().unwrap())
    }

    fn list(&self) -> Response {
        let items: Vec<_> = self.lease.iter().collect();
        let list = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "LeaseList",
            "metadata": { "resourceVersion": self.version.to_string() },
            "items": items,
        });
        answer(StatusCode::OK, &list)
    }
}

async fn serve(State(api): State<FakeApi>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let listing = parts.uri.path().ends_with("/leases");
    let query = parts.uri.query().unwrap_or_default();
    let asked = match parts.method {
        Method::POST => "create",
        Method::PATCH => "patch",
        _ if listing && query.contains("watch=true") => "watch",
        _ if listing => "list",
        _ => "read",
    };
    let health = {
        let mut inner = api.inner.lock();
        inner.asked.push(asked);
        inner.health
    };
    match health {
        Health::NoNamespace => return status(StatusCode::NOT_FOUND),
        Health::Conflicting if ["create", "patch"].contains(&asked) => {
            return status(StatusCode::CONFLICT);
        }
        Health::Good | Health::Conflicting => {}
        Health::Failing => return status(StatusCode::SERVICE_UNAVAILABLE),
        Health::Hanging => std::future::pending().await,
    }
    let json = || serde_json::from_slice(&body).unwrap();
    let response = {
        let mut inner = api.inner.lock();
        match asked {
            "create" => inner.create(json()),
            "patch" => inner.patch(&json()),
            "list" => inner.list(),
            "watch" => {
                let (watcher, events) = mpsc::unbounded();
                inner.watchers.push(watcher);
                Body::from_stream(events).into_response()
            }
            _ => match &inner.lease {
                Some(lease) => answer(StatusCode::OK, lease),
                None => status(StatusCode::NOT_FOUND),
            },
        }
    };
    api.changes.send_replace(());
    response
}

fn status(code: StatusCode) -> Response {
    let reason = match code {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        _ => "Other",
    };
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "message": "refused", "reason": reason, "code": code.as_u16() });
    answer(code, &status)
}

fn answer(code: StatusCode, value: &Value) -> Response {
    let content_type = (header::CONTENT_TYPE, "application/json");
    (code, [content_type], value.to_string()).into_response()
}
