//! The embedded API for tests, with a log of requests.
//!
//! It can reject a request as validation, admission or authorization of a real API server does, which
//! the embedded API does not have.

use std::sync::Arc;

use axum::body::Body;
use embedded_apiserver::ApiServer;
use http::header::ACCEPT;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::api::PostParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::fixtures::object;

pub(crate) struct TestApi {
    pub(crate) server: ApiServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    requests: Vec<Logged>,
    rejection: Option<Rejection>,
}

/// A request.
struct Logged {
    /// Its method and path.
    call: String,
    body: Value,
    /// The form of the answer that it asks for.
    accept: String,
}

struct Rejection {
    call: String,
    code: u16,
    reason: &'static str,
}

impl TestApi {
    /// Creates an API without namespaces of its own.
    pub(crate) fn new() -> Self {
        Self {
            server: ApiServer::new(),
            state: Arc::default(),
        }
    }

    /// Creates an API with the kinds of Karmada and the namespace `ns`.
    pub(crate) async fn karmada() -> Self {
        let api = Self::new();
        for definition in karmada_api::crd::installed().unwrap() {
            api.server.install(&definition).unwrap();
        }
        api.create_namespace().await;
        api
    }

    /// Serves the kinds of exports, as a whole Karmada does.
    pub(crate) fn install_exports(&self) {
        for (kind, group, plural) in [
            ("ServiceExport", "multicluster.x-k8s.io", "serviceexports"),
            (
                "PropagationPolicy",
                "policy.karmada.io",
                "propagationpolicies",
            ),
        ] {
            let schema = json!({
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            });
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.{group}") },
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                    "versions": [{
                        "name": "v1alpha1", "served": true, "storage": true,
                        "schema": { "openAPIV3Schema": schema },
                    }],
                },
            });
            self.server.install(&definition).unwrap();
        }
    }

    pub(crate) async fn create_namespace(&self) {
        let namespace = json!({ "metadata": { "name": "ns" } });
        let namespaces = Api::all(self.outsider());
        let parameters = PostParams::default();
        let namespace: k8s_openapi::api::core::v1::Namespace = object(namespace);
        namespaces.create(&parameters, &namespace).await.unwrap();
    }

    /// Returns a client whose requests are logged and may be rejected.
    pub(crate) fn client(&self) -> Client {
        let (server, state) = (self.server.service(), Arc::clone(&self.state));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (server, state) = (server.clone(), Arc::clone(&state));
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let call = format!("{} {}", head.method, head.uri.path());
                let accept = head.headers.get(ACCEPT);
                let logged = Logged {
                    call: call.clone(),
                    body: serde_json::from_slice(&bytes).unwrap_or_default(),
                    accept: accept.map_or_else(String::new, |a| a.to_str().unwrap().to_owned()),
                };
                let rejection = {
                    let mut state = state.lock();
                    state.requests.push(logged);
                    state.rejection.take_if(|rejection| rejection.call == call)
                };
                if let Some(rejection) = rejection {
                    return Ok(rejection.response());
                }
                let request = Request::from_parts(head, Body::from(bytes));
                let response = server.oneshot(request).await;
                response.map(|response| response.map(Body::new))
            }
        });
        Client::new(service, "default")
    }

    /// Returns a client whose requests are not logged: that of another program.
    pub(crate) fn outsider(&self) -> Client {
        Client::new(self.server.service(), "default")
    }

    /// Creates `object` as another program does and returns what is stored.
    pub(crate) async fn create<K>(&self, object: &K) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Serialize + DeserializeOwned + Clone + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.outsider(), "ns");
        api.create(&PostParams::default(), object).await.unwrap()
    }

    /// Rejects the next request that is `call`: method and path.
    pub(crate) fn reject(&self, call: String, code: u16, reason: &'static str) {
        self.state.lock().rejection = Some(Rejection { call, code, reason });
    }

    /// Returns the requests since the last call: `METHOD path` and body.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        let requests = self.take().into_iter();
        requests.map(|logged| (logged.call, logged.body)).collect()
    }

    /// Returns the requests since the last call without their bodies.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.take().into_iter().map(|logged| logged.call).collect()
    }

    /// Returns the requests since the last call with the forms of the answers that they ask for.
    pub(crate) fn accepted(&self) -> Vec<(String, String)> {
        let requests = self.take().into_iter();
        requests
            .map(|logged| (logged.call, logged.accept))
            .collect()
    }

    fn take(&self) -> Vec<Logged> {
        let mut state = self.state.lock();
        assert!(state.rejection.is_none(), "a rejection was not needed");
        std::mem::take(&mut state.requests)
    }
}

impl Rejection {
    fn response(&self) -> Response<Body> {
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": self.reason,
            "message": format!("{} it is", self.reason),
            "code": self.code,
        });
        let body = Body::from(status.to_string());
        Response::builder().status(self.code).body(body).unwrap()
    }
}
