//! An API server for tests that holds one `Cluster` object, in memory, and keeps what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::channel::mpsc;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

/// Of the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_hours(2);
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// The server. Its clones are one.
#[derive(Clone)]
pub(super) struct FakeApi {
    inner: Arc<Mutex<Inner>>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    cluster: Option<Value>,
    version: u64,
    patches: Vec<Patched>,
    reads: usize,
    watchers: Vec<mpsc::UnboundedSender<Result<Bytes, std::io::Error>>>,
    before_patch: Option<Edit>,
    refusal: Option<StatusCode>,
}

type Edit = Box<dyn FnMut(&mut Value) + Send>;

/// A patch as it came.
#[derive(Clone, Debug)]
pub(super) struct Patched {
    pub(super) path: String,
    pub(super) content_type: String,
    pub(super) body: Value,
    pub(super) answer: StatusCode,
}

impl FakeApi {
    /// A server without the object, or with `cluster`.
    pub(super) fn new(cluster: Option<Value>) -> Self {
        let api = Self {
            inner: Arc::default(),
            changes: watch::Sender::new(()),
        };
        if let Some(cluster) = cluster {
            api.put(cluster);
        }
        api
    }

    pub(super) fn client(&self) -> Client {
        let router = Router::new().fallback(serve).with_state(self.clone());
        Client::new(router, "default")
    }

    /// Somebody else makes the object, or makes it something else.
    pub(super) fn put(&self, cluster: Value) {
        self.inner.lock().unwrap().store(cluster);
        self.changes.send_replace(());
    }

    /// Somebody else edits the object.
    pub(super) fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut cluster = self.cluster();
        edit(&mut cluster);
        self.put(cluster);
    }

    /// From now on, somebody else edits the object just before each patch; the watch tells nothing
    /// of it.
    pub(super) fn before_each_patch(&self, edit: impl FnMut(&mut Value) + Send + 'static) {
        self.inner.lock().unwrap().before_patch = Some(Box::new(edit));
    }

    /// From now on, every patch is refused with this code.
    pub(super) fn refuse(&self, code: StatusCode) {
        self.inner.lock().unwrap().refusal = Some(code);
    }

    /// No longer.
    pub(super) fn accept(&self) {
        self.inner.lock().unwrap().refusal = None;
    }

    pub(super) fn cluster(&self) -> Value {
        self.inner.lock().unwrap().cluster.clone().unwrap()
    }

    /// The element of type `kind`, or null.
    pub(super) fn condition(&self, kind: &str) -> Value {
        let cluster = self.cluster();
        let mut elements = cluster["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        elements
            .find(|element| element["type"] == kind)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn patches(&self) -> Vec<Patched> {
        self.inner.lock().unwrap().patches.clone()
    }

    /// How often the one object was read.
    pub(super) fn reads(&self) -> usize {
        self.inner.lock().unwrap().reads
    }

    /// Waits until `reached` is true of the server.
    pub(super) async fn until(&self, reached: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        let all = async {
            while !reached(self) {
                changes.changed().await.unwrap();
            }
        };
        timeout(LONGEST_WAIT, all)
            .await
            .expect("it never comes to that");
    }
}

impl Inner {
    fn store(&mut self, mut cluster: Value) {
        self.version += 1;
        cluster["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.cluster = Some(cluster);
        let event = self.event();
        self.watchers
            .retain(|watcher| watcher.unbounded_send(Ok(event.clone())).is_ok());
    }

    /// The event that tells a watch of the object as it is.
    fn event(&self) -> Bytes {
        // In the order in which a real server writes the two.
        let object = json!(self.cluster);
        format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n").into()
    }

    /// The events since the version that `query` names.
    fn watch(&mut self, query: &str) -> mpsc::UnboundedReceiver<Result<Bytes, std::io::Error>> {
        let (watcher, events) = mpsc::unbounded();
        if !query.contains(&format!("resourceVersion={}", self.version)) {
            watcher.unbounded_send(Ok(self.event())).unwrap();
        }
        self.watchers.push(watcher);
        events
    }

    fn patch(&mut self, path: String, content_type: String, body: Value) -> Response {
        if let (Some(edit), Some(mut cluster)) = (&mut self.before_patch, self.cluster.clone()) {
            edit(&mut cluster);
            if self.cluster.as_ref() != Some(&cluster) {
                self.version += 1;
                cluster["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.cluster = Some(cluster);
            }
        }
        let result = match self.refusal {
            Some(code) => Err(code),
            None => self.patched(&content_type, &body),
        };
        let answer = *result.as_ref().err().unwrap_or(&StatusCode::OK);
        self.patches.push(Patched {
            path,
            content_type,
            body,
            answer,
        });
        match result {
            Ok(cluster) => {
                self.store(cluster);
                json_response(StatusCode::OK, self.cluster.as_ref().unwrap())
            }
            Err(code) => status(code),
        }
    }

    fn patched(&self, content_type: &str, body: &Value) -> Result<Value, StatusCode> {
        let mut cluster = self.cluster.clone().ok_or(StatusCode::NOT_FOUND)?;
        if content_type == "application/json-patch+json" {
            let operations: json_patch::Patch =
                serde_json::from_value(body.clone()).map_err(|_| StatusCode::BAD_REQUEST)?;
            json_patch::patch(&mut cluster, &operations)
                .map_err(|_| StatusCode::UNPROCESSABLE_ENTITY)?;
        } else {
            assert_eq!(content_type, "application/merge-patch+json");
            if body["metadata"]["resourceVersion"] != cluster["metadata"]["resourceVersion"] {
                return Err(StatusCode::CONFLICT);
            }
            json_patch::merge(&mut cluster, body);
        }
        Ok(cluster)
    }

    fn list(&self) -> Value {
        let items: Vec<_> = self.cluster.iter().collect();
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "ClusterList",
            "metadata": { "resourceVersion": self.version.to_string() },
            "items": items,
        })
    }
}

async fn serve(State(api): State<FakeApi>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default();
    let mut inner = api.inner.lock().unwrap();
    let response = if parts.method == Method::PATCH {
        let content_type = parts.headers[header::CONTENT_TYPE].to_str().unwrap();
        let body = serde_json::from_slice(&body).unwrap();
        inner.patch(path, content_type.to_owned(), body)
    } else if path == CLUSTERS {
        assert!(
            query.contains("fieldSelector=metadata.name%3Dmember1"),
            "{query}"
        );
        if query.contains("watch=true") {
            Body::from_stream(inner.watch(query).boxed()).into_response()
        } else {
            json_response(StatusCode::OK, &inner.list())
        }
    } else {
        assert_eq!(path, format!("{CLUSTERS}/member1"));
        inner.reads += 1;
        match &inner.cluster {
            Some(cluster) => json_response(StatusCode::OK, cluster),
            None => status(StatusCode::NOT_FOUND),
        }
    };
    drop(inner);
    api.changes.send_replace(());
    response
}

fn status(code: StatusCode) -> Response {
    let status = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": "refused",
        "code": code.as_u16(),
    });
    json_response(code, &status)
}

fn json_response(code: StatusCode, value: &Value) -> Response {
    let content_type = (header::CONTENT_TYPE, "application/json");
    (code, [content_type], value.to_string()).into_response()
}
