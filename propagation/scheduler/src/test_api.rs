//! The embedded API for tests, with a log of the writes, one of which may be rejected.

use std::sync::Arc;

use axum::body::Body;
use embedded_apiserver::ApiServer;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) struct TestApi {
    server: ApiServer,
    state: Arc<Mutex<State>>,
}

/// The code, the reason and the message of an answer.
type Refusal = (u16, &'static str, &'static str);

#[derive(Default)]
struct State {
    writes: Vec<String>,
    /// The end of the path of the write to reject, and the answer.
    rejection: Option<(&'static str, Refusal)>,
}

impl TestApi {
    /// Creates an API with the kinds of a fleet and the namespace `shop`.
    pub(crate) async fn new() -> Self {
        let server = ApiServer::new();
        for definition in karmada_api::crd::fleet().unwrap() {
            server.install(&definition).unwrap();
        }
        let api = Self {
            server,
            state: Arc::default(),
        };
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
        api.create("/api/v1/namespaces", &namespace).await;
        api
    }

    /// Creates `object` at `path` as another program does, and returns what is stored.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        self.send(Method::POST, path, object).await
    }

    /// Merges `change` into the object at `path` as another program does.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Value {
        self.send(Method::PATCH, path, change).await
    }

    /// Reads the object at `path`.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, &Value::Null).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content);
        let body = Body::from(if body.is_null() {
            String::new()
        } else {
            body.to_string()
        });
        let response = self
            .server
            .service()
            .oneshot(request.body(body).unwrap())
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        assert!(
            head.status.is_success(),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Returns a client whose writes are logged and may be rejected.
    pub(crate) fn client(&self) -> Client {
        let (server, state) = (self.server.service(), Arc::clone(&self.state));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (server, state) = (server.clone(), Arc::clone(&state));
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let path = head.uri.path().to_owned();
                let rejection = {
                    let mut state = state.lock();
                    if head.method != Method::GET {
                        state.writes.push(path.clone());
                    }
                    state.rejection.take_if(|(end, ..)| path.ends_with(*end))
                };
                if let Some((_, refusal)) = rejection {
                    return Ok(refused(refusal));
                }
                let request = Request::from_parts(head, Body::from(bytes));
                let response = server.oneshot(request).await;
                response.map(|response| response.map(Body::new))
            }
        });
        Client::new(service, "default")
    }

    /// Rejects the next write to a path that ends so.
    pub(crate) fn reject(&self, end: &'static str, refusal: Refusal) {
        self.state.lock().rejection = Some((end, refusal));
    }

    /// Returns the paths of the writes since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        let mut state = self.state.lock();
        assert!(state.rejection.is_none(), "a rejection was not needed");
        std::mem::take(&mut state.writes)
    }
}

fn refused((code, reason, message): Refusal) -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "reason": reason, "message": message, "code": code,
    });
    let body = Body::from(status.to_string());
    Response::builder().status(code).body(body).unwrap()
}
