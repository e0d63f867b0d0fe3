//! The embedded API on which a test runs one program, with a log of the program's requests.
//!
//! ```text
//! program ──client()──▶ log ──▶ refusal, limit of writes ──▶ ApiServer ◀──user(), create(), send() …── test
//! ```
//!
//! The requests of the test, as another client, are neither logged nor refused. A real API server also refuses by
//! validation, admission and authorization, which the embedded one does not have: [`TestApi::refuse`] stands for
//! them. A program that may write only so often, and then hangs, is one that dies between two writes:
//! [`TestApi::limit_writes`]. Everything else that may go wrong is a [`Fault`](embedded_apiserver::Fault) of the server.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that calls it fails by panicking"
)]

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceExt};

/// The longest that a test waits for an object.
const LIMIT: Duration = Duration::from_secs(30);

/// An embedded API with a log of the requests of the program under test.
#[derive(Clone, Debug)]
pub struct TestApi {
    /// The server, for its faults.
    pub server: ApiServer,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Set once a write hangs.
    hangs: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    log: Vec<Logged>,
    refusal: Option<Refusal>,
    /// The writes that the program may still make.
    writes_left: usize,
}

/// A request of the program.
#[derive(Debug)]
struct Logged {
    method: Method,
    /// Its method and path, such as `PATCH /api/v1/namespaces/shop/configmaps/a`.
    call: String,
    /// Null without one.
    body: Value,
    /// The media types in which it takes the response.
    accept: String,
    /// True if nothing is stored.
    is_dry_run: bool,
}

impl Logged {
    /// Returns `true` for a write of anything but an Event.
    fn is_write(&self) -> bool {
        self.method != Method::GET && !self.is_dry_run && !self.call.contains("/events")
    }
}

#[derive(Debug)]
struct Refusal {
    call: String,
    code: u16,
    reason: String,
    message: String,
}

impl Refusal {
    fn response(&self) -> Response<LoggedBody> {
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": self.reason,
            "message": self.message,
            "code": self.code,
        });
        let body = Full::from(status.to_string()).map_err(Into::into);
        let response = Response::builder().status(self.code);
        response.body(body.boxed_unsync()).unwrap()
    }
}

impl TestApi {
    /// Uses a server.
    pub fn of(server: ApiServer) -> Self {
        let state = State {
            log: Vec::new(),
            refusal: None,
            writes_left: usize::MAX,
        };
        let shared = Shared {
            state: Mutex::new(state),
            hangs: watch::Sender::new(false),
        };
        Self {
            server,
            shared: Arc::new(shared),
        }
    }

    /// Creates an API with the kinds of these definitions beside the built-in ones. A process installs the same
    /// definitions once, and forks the server that has them.
    pub fn with_kinds(definitions: impl IntoIterator<Item = Value>) -> Self {
        static SERVERS: LazyLock<Mutex<HashMap<Vec<Value>, ApiServer>>> =
            LazyLock::new(Mutex::default);
        let definitions = definitions.into_iter().collect();
        let mut servers = SERVERS.lock();
        let server = servers
            .entry(definitions)
            .or_insert_with_key(|definitions| {
                let api = Self::of(ApiServer::new());
                api.install(definitions.iter().cloned());
                api.server
            });
        Self::of(server.fork())
    }

    /// Serves further kinds.
    pub fn install(&self, definitions: impl IntoIterator<Item = Value>) {
        for definition in definitions {
            self.server.install(&definition).unwrap();
        }
    }

    /// Returns the connection of the program, with a log of its requests.
    pub fn service(&self) -> LoggedService {
        LoggedService {
            server: self.server.service(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns a client of the program, with a log of its requests.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// Returns a client of a user, without a log.
    pub fn user(&self) -> Client {
        Client::new(self.server.service(), "default")
    }

    /// Creates an object, with the status that it has, and returns it as stored.
    pub async fn create<K: Serialize + DeserializeOwned>(&self, object: &K) -> K {
        let object: DynamicObject = converted(object);
        let types = object.types.clone().unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.user(), namespace, &resource),
            None => Api::all_with(self.user(), &resource),
        };
        let mut stored = api.create(&PostParams::default(), &object).await.unwrap();
        // The API server drops the status of a new object.
        if let Some(status) = object.data.get("status").filter(|status| !status.is_null()) {
            let name = stored.metadata.name.unwrap();
            let (parameters, patch) = (PatchParams::default(), json!({ "status": status }));
            let patched = api
                .patch_status(&name, &parameters, &Patch::Merge(patch))
                .await;
            stored = patched.unwrap();
        }
        converted(&stored)
    }

    /// Creates a namespace.
    pub async fn create_namespace(&self, name: &str) {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name } });
        self.create(&namespace).await;
    }

    /// Sends a request, a PATCH as a merge patch, and returns the response.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_send(method, path, body).await.unwrap()
    }

    /// Sends a request that may fail. `APPLY` is a server-side apply.
    ///
    /// # Errors
    /// The API refuses it.
    pub async fn try_send(&self, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
        let (method, content) = match method {
            "PATCH" => (method, "application/merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            _ => (method, "application/json"),
        };
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, content).body(body).unwrap();
        self.user().request(request).await
    }

    /// Reads an object, if it is there.
    pub async fn find(&self, path: &str) -> Option<Value> {
        match self.try_send("GET", path, &Value::Null).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            response => Some(response.unwrap()),
        }
    }

    /// Reads an object.
    pub async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await
    }

    /// Returns the Events.
    pub async fn events(&self) -> Vec<Event> {
        let events: Api<Event> = Api::all(self.user());
        let events = events.list(&ListParams::default()).await.unwrap();
        events.items
    }

    /// Refuses the next request of the program that is `call`, its method and path, with this status.
    pub fn refuse(&self, call: &str, code: u16, reason: &str, message: &str) {
        let [call, reason, message] = [call, reason, message].map(str::to_owned);
        self.shared.state.lock().refusal = Some(Refusal {
            call,
            code,
            reason,
            message,
        });
    }

    /// Lets the program hang at any write after this number, those of Events aside. Writes that hang already stay so.
    pub fn limit_writes(&self, allowed: usize) {
        self.shared.state.lock().writes_left = allowed;
        self.shared.hangs.send_replace(false);
    }

    /// Returns `true` if the program has made all the writes that it may make.
    pub fn is_limit_reached(&self) -> bool {
        self.shared.state.lock().writes_left == 0
    }

    /// Waits until a write hangs.
    pub async fn hung(&self) {
        let mut hangs = self.shared.hangs.subscribe();
        hangs.wait_for(|hangs| *hangs).await.unwrap();
    }

    /// Returns the method and path of each request of the program since the last call.
    pub fn calls(&self) -> Vec<String> {
        calls(self.take(|_| true))
    }

    /// Returns the same with the body of each.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let requests = self.take(|_| true).into_iter();
        requests.map(|logged| (logged.call, logged.body)).collect()
    }

    /// Returns the same with the media types in which each takes the response.
    pub fn accepted(&self) -> Vec<(String, String)> {
        let requests = self.take(|_| true).into_iter();
        requests
            .map(|logged| (logged.call, logged.accept))
            .collect()
    }

    /// Returns the method and path of each write of the program since the last call, those of Events aside.
    pub fn writes(&self) -> Vec<String> {
        calls(self.take(Logged::is_write))
    }

    /// Returns the paths that the program has read since the last call.
    pub fn reads(&self) -> Vec<String> {
        let reads = calls(self.take(|logged| logged.method == Method::GET)).into_iter();
        reads.map(|call| call.replacen("GET ", "", 1)).collect()
    }

    fn take(&self, mut is_taken: impl FnMut(&Logged) -> bool) -> Vec<Logged> {
        let mut state = self.shared.state.lock();
        assert!(state.refusal.is_none(), "a refusal was not needed");
        state
            .log
            .extract_if(.., |logged| is_taken(logged))
            .collect()
    }
}

/// Returns an object as another type.
fn converted<K: DeserializeOwned>(object: &impl Serialize) -> K {
    serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap()
}

fn calls(requests: Vec<Logged>) -> Vec<String> {
    requests.into_iter().map(|logged| logged.call).collect()
}

/// Waits until an object, or its absence, is as `wanted`, and returns it.
///
/// # Panics
/// It does not become so within 30 s.
pub async fn until<K>(api: Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + 'static,
{
    let Ok(found) = timeout(LIMIT, await_condition(api.clone(), name, wanted)).await else {
        panic!("{name} is still {:?}", api.get_opt(name).await);
    };
    found.unwrap()
}

/// The body of a response.
type LoggedBody = UnsyncBoxBody<Bytes, BoxError>;

/// The connection of the program to its API.
#[derive(Clone, Debug)]
pub struct LoggedService {
    server: ApiService,
    shared: Arc<Shared>,
}

impl LoggedService {
    async fn exchange(self, request: Request<Body>) -> io::Result<Response<LoggedBody>> {
        let (head, body) = request.into_parts();
        let bytes = body.collect_bytes().await.map_err(io::Error::other)?;
        let accept = head.headers.get(ACCEPT);
        let logged = Logged {
            method: head.method.clone(),
            call: format!("{} {}", head.method, head.uri.path()),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            accept: accept.map_or_else(String::new, |accept| accept.to_str().unwrap().to_owned()),
            is_dry_run: head
                .uri
                .query()
                .is_some_and(|query| query.contains("dryRun=All")),
        };
        let Some(refusal) = self.log(logged) else {
            self.shared.hangs.send_replace(true);
            return pending().await;
        };
        if let Some(refusal) = refusal {
            return Ok(refusal.response());
        }
        let request = Request::from_parts(head, Body::from(bytes));
        let response = self.server.oneshot(request).await?;
        Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
    }

    /// Logs a request, and returns the refusal that it meets. A write beyond the limit is not logged: it returns
    /// `None`.
    #[expect(clippy::option_option, reason = "hung, passed on, or refused")]
    fn log(&self, logged: Logged) -> Option<Option<Refusal>> {
        let mut state = self.shared.state.lock();
        if logged.is_write() {
            state.writes_left = state.writes_left.checked_sub(1)?;
        }
        let refusal = state.refusal.take_if(|refusal| refusal.call == logged.call);
        state.log.push(logged);
        Some(refusal)
    }
}

impl Service<Request<Body>> for LoggedService {
    type Response = Response<LoggedBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn map(name: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "default" } })
    }

    async fn post(api: &TestApi, name: &str) -> kube::Result<Value> {
        let request = Request::post(MAPS).header(CONTENT_TYPE, "application/json");
        let body = map(name).to_string().into_bytes();
        api.client().request(request.body(body).unwrap()).await
    }

    /// The log has the requests of the program, and none of the test.
    #[tokio::test]
    async fn only_the_program_is_logged() {
        let api = TestApi::of(ApiServer::new());
        api.create(&map("a")).await;
        post(&api, "b").await.unwrap();
        let get = Request::get(format!("{MAPS}/a")).body(Vec::new()).unwrap();
        api.client().request::<Value>(get).await.unwrap();
        assert_eq!(api.reads(), [format!("{MAPS}/a")]);
        assert_eq!(api.writes(), [format!("POST {MAPS}")]);
        assert_eq!(api.calls(), [""; 0]);
        assert!(api.find(&format!("{MAPS}/c")).await.is_none());
    }

    #[tokio::test]
    async fn one_call_is_refused() {
        let api = TestApi::of(ApiServer::new());
        api.refuse(&format!("POST {MAPS}"), 403, "Forbidden", "a quota");
        let refused = post(&api, "a").await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.message == "a quota"));
        post(&api, "a").await.unwrap();
    }

    #[tokio::test]
    async fn writes_beyond_the_limit_hang() {
        let api = TestApi::of(ApiServer::new());
        api.limit_writes(1);
        post(&api, "a").await.unwrap();
        assert!(api.is_limit_reached());
        let second = tokio::spawn({
            let api = api.clone();
            async move { post(&api, "b").await }
        });
        api.hung().await;
        assert_eq!(api.writes().len(), 1);
        second.abort();
    }
}
