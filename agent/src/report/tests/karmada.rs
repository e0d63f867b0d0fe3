//! A Karmada API in this process with the `Cluster` object, and a log of the requests of reports.

use std::io;
use std::sync::{Arc, Mutex};

use axum::http::{self, Method, Response, StatusCode, Uri, header};
use embedded_apiserver::{ApiServer, ApiService, Body, Fault};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use karmada_api::Cluster;
use karmada_runtime::client;
use kube::Config;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::await_condition;
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;

/// The name by which another client writes.
pub(super) const OTHER: &str = "karmada-controller-manager";
/// In the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_hours(2);

pub(super) struct Karmada {
    pub(super) server: ApiServer,
    /// With all fields, also those that our types lack.
    raw: Api<DynamicObject>,
    clusters: Api<Cluster>,
}

/// One report's connection to the API: logs, delays and precedes its requests. Its clones share
/// their state.
#[derive(Clone)]
pub(super) struct Connection {
    server: ApiService,
    raw: Api<DynamicObject>,
    log: watch::Sender<Vec<Request>>,
    before_patch: Arc<Mutex<Option<Edit>>>,
    delay: Arc<Mutex<Duration>>,
}

type Edit = Box<dyn FnMut(&mut Value) + Send>;

/// A read or a patch of the one object. Lists and watches are not logged.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    /// Null for a read.
    pub(super) body: Value,
    pub(super) content_type: String,
    pub(super) status: StatusCode,
}

impl Karmada {
    /// Starts an API with `cluster`, if any.
    pub(super) async fn new(cluster: Option<Value>) -> Self {
        let server = ApiServer::new();
        for definition in karmada_api::crd::stand_ins().unwrap() {
            server.install(&definition).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let namespace =
            json!({ "metadata": { "name": karmada_api::execution_namespace("member1") } });
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        let namespaces = Api::all(client.clone());
        let parameters = PostParams::default();
        namespaces.create(&parameters, &namespace).await.unwrap();
        let karmada = Self {
            server,
            raw: raw(client.clone()),
            clusters: Api::all(client),
        };
        if let Some(cluster) = cluster {
            karmada.put(cluster).await;
        }
        karmada
    }

    /// Opens a connection for a report.
    pub(super) fn connect(&self) -> Connection {
        Connection {
            server: self.server.service(),
            raw: self.raw.clone(),
            log: watch::Sender::new(Vec::new()),
            before_patch: Arc::default(),
            delay: Arc::default(),
        }
    }

    /// Creates the object, as another client.
    pub(super) async fn put(&self, cluster: Value) {
        let status = json!({ "status": cluster["status"] });
        let cluster = serde_json::from_value(cluster).unwrap();
        let made = self.raw.create(&PostParams::default(), &cluster).await;
        made.unwrap();
        if !status["status"].is_null() {
            patch(&self.raw, &status).await;
        }
    }

    /// Edits the object's status, as another client.
    pub(super) async fn edit(&self, edit: impl FnOnce(&mut Value)) {
        edit_status(&self.raw, edit).await;
    }

    /// Deletes it, as another client; a finalizer may hold it.
    pub(super) async fn delete(&self) {
        let parameters = DeleteParams::default();
        self.raw.delete("member1", &parameters).await.unwrap();
    }

    pub(super) async fn cluster(&self) -> DynamicObject {
        self.raw.get("member1").await.unwrap()
    }

    pub(super) async fn events(&self) -> Vec<Event> {
        let events: Api<Event> = Api::all(Client::new(self.server.service(), "default"));
        let events = events.list(&ListParams::default()).await.unwrap();
        events.items
    }

    /// Returns the element of type `kind`, or null.
    pub(super) async fn condition(&self, kind: &str) -> Value {
        let cluster = self.cluster().await;
        let elements = cluster.data["status"]["conditions"].as_array();
        let mut elements = elements.into_iter().flatten();
        let found = elements.find(|element| element["type"] == kind);
        found.cloned().unwrap_or_default()
    }

    /// Waits until the condition of type `kind` has this status.
    pub(super) async fn until(&self, kind: &str, status: &str) {
        let clusters = self.clusters.clone();
        let reached = await_condition(clusters, "member1", |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|condition| condition.status == status)
        });
        let reached = timeout(LONGEST_WAIT, reached).await;
        reached
            .expect("the condition never gets that status")
            .unwrap();
    }

    /// Rejects from now on a condition whose message is longer than that of a healthy verdict.
    pub(super) fn accept_only_short_messages(&self) {
        for mut definition in karmada_api::crd::stand_ins().unwrap() {
            let version = &mut definition["spec"]["versions"][0];
            let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
            let condition = &mut status["properties"]["conditions"]["items"];
            if !condition.is_null() {
                condition["properties"]["message"]["maxLength"] = json!(20);
                self.server.install(&definition).unwrap();
            }
        }
    }

    /// Delays all events of the agents' watches from now on beyond the end of the test.
    pub(super) fn delay_watches(&self) {
        let by = 2 * LONGEST_WAIT;
        let coalesce = false;
        let fault = Fault::DelayEvents { by, coalesce }.client(crate::identity::NAME);
        self.server.faults().inject(fault);
    }
}

impl Connection {
    pub(super) fn client(&self) -> Client {
        let connection = self.clone();
        let service = tower::service_fn(move |request| connection.clone().send(request));
        let config = Config::new(Uri::from_static("http://karmada"));
        client::with_service(service, config, crate::identity::NAME).unwrap()
    }

    /// Edits the object's status, as another client, just before each patch from now on.
    pub(super) fn before_each_patch(&self, edit: impl FnMut(&mut Value) + Send + 'static) {
        *self.before_patch.lock().unwrap() = Some(Box::new(edit));
    }

    /// Delays requests from now on. They arrive even if nobody waits for their response any more.
    pub(super) fn delay(&self, by: Duration) {
        *self.delay.lock().unwrap() = by;
    }

    /// Returns the patches of the object, in the order of their responses.
    pub(super) fn patches(&self) -> Vec<Request> {
        let mut requests = self.log.borrow().clone();
        requests.retain(|request| !request.body.is_null());
        requests
    }

    /// Returns the status codes of the patches.
    pub(super) fn codes(&self) -> Vec<u16> {
        let patches = self.patches().into_iter();
        patches.map(|patch| patch.status.as_u16()).collect()
    }

    /// Returns the number of reads of the one object.
    pub(super) fn reads(&self) -> usize {
        let log = self.log.borrow();
        log.iter().filter(|request| request.body.is_null()).count()
    }

    /// Waits until so many patches have a response.
    pub(super) async fn patched(&self, patches: usize) {
        let mut log = self.log.subscribe();
        let enough =
            |log: &Vec<Request>| log.iter().filter(|a| !a.body.is_null()).count() >= patches;
        let enough = timeout(LONGEST_WAIT, log.wait_for(enough)).await;
        enough.expect("too few patches").unwrap();
    }

    async fn send(self, request: http::Request<kube::client::Body>) -> io::Result<Response<Body>> {
        let delay = *self.delay.lock().unwrap();
        if delay.is_zero() {
            return self.arrive(request).await;
        }
        let late = async move {
            sleep(delay).await;
            self.arrive(request).await
        };
        tokio::spawn(late).await.unwrap()
    }

    async fn arrive(
        self,
        request: http::Request<kube::client::Body>,
    ) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = parts.uri.path().to_owned();
        let about_ours = path.contains("/clusters/member1");
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.map(|value| value.to_str().unwrap().to_owned());
        if about_ours && parts.method == Method::PATCH {
            let edit = self.before_patch.lock().unwrap().take();
            if let Some(mut edit) = edit {
                edit_status(&self.raw, &mut edit).await;
                *self.before_patch.lock().unwrap() = Some(edit);
            }
        }
        let json = serde_json::from_slice(&body).unwrap_or_default();
        let request = http::Request::from_parts(parts, Full::new(body));
        let response = self.server.oneshot(request).await?;
        if about_ours {
            let request = Request {
                path,
                body: json,
                content_type: content_type.unwrap_or_default(),
                status: response.status(),
            };
            self.log.send_modify(|log| log.push(request));
        }
        Ok(response)
    }
}

fn raw(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<Cluster>(&()))
}

async fn patch(clusters: &Api<DynamicObject>, change: &Value) {
    let parameters = PatchParams {
        field_manager: Some(OTHER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(change);
    let patched = clusters.patch_status("member1", &parameters, &patch).await;
    patched.unwrap();
}

async fn edit_status(clusters: &Api<DynamicObject>, edit: impl FnOnce(&mut Value)) {
    let mut cluster = clusters.get("member1").await.unwrap();
    let before = cluster.data["status"].clone();
    edit(&mut cluster.data["status"]);
    if cluster.data["status"] != before {
        patch(clusters, &json!({ "status": cluster.data["status"] })).await;
    }
}
