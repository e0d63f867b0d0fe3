//! A Karmada API in this process that holds the `Cluster` object, and what reports ask of it.

use std::io;
use std::sync::{Arc, Mutex};

use apiserver::{ApiServer, ApiService, Fault};
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::Cluster;
use karmada_runtime::client;
use kube::Config;
use kube::api::{DeleteParams, DynamicObject, Patch, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::await_condition;
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;

/// Of the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_hours(2);

/// The API.
pub(super) struct Karmada {
    pub(super) server: ApiServer,
    /// As it is, with fields that our types do not have.
    raw: Api<DynamicObject>,
    clusters: Api<Cluster>,
}

/// The way of one report to the API. Its clones are one.
#[derive(Clone)]
pub(super) struct Line {
    server: ApiService,
    raw: Api<DynamicObject>,
    log: watch::Sender<Vec<Asked>>,
    before_patch: Arc<Mutex<Option<Edit>>>,
    delay: Arc<Mutex<Duration>>,
}

type Edit = Box<dyn FnMut(&mut Value) + Send>;

/// A read of the one object, or a patch, as it came; lists and watches are not kept.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    /// Null of a read.
    pub(super) body: Value,
    pub(super) content_type: String,
    pub(super) answer: StatusCode,
}

impl Karmada {
    /// An API without the object, or with this one.
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

    /// A way to it for a report.
    pub(super) fn line(&self) -> Line {
        Line {
            server: self.server.service(),
            raw: self.raw.clone(),
            log: watch::Sender::new(Vec::new()),
            before_patch: Arc::default(),
            delay: Arc::default(),
        }
    }

    /// Somebody makes the object.
    pub(super) async fn put(&self, cluster: Value) {
        let status = json!({ "status": cluster["status"] });
        let cluster = serde_json::from_value(cluster).unwrap();
        let made = self.raw.create(&PostParams::default(), &cluster).await;
        made.unwrap();
        if !status["status"].is_null() {
            patch(&self.raw, &status).await;
        }
    }

    /// Somebody edits the object's status.
    pub(super) async fn edit(&self, edit: impl FnOnce(&mut Value)) {
        edit_status(&self.raw, edit).await;
    }

    /// Somebody deletes it, and something holds it.
    pub(super) async fn delete(&self) {
        let parameters = DeleteParams::default();
        self.raw.delete("member1", &parameters).await.unwrap();
    }

    pub(super) async fn cluster(&self) -> DynamicObject {
        self.raw.get("member1").await.unwrap()
    }

    /// The element of type `kind`, or null.
    pub(super) async fn condition(&self, kind: &str) -> Value {
        let cluster = self.cluster().await;
        let elements = cluster.data["status"]["conditions"].as_array();
        let mut elements = elements.into_iter().flatten();
        let found = elements.find(|element| element["type"] == kind);
        found.cloned().unwrap_or_default()
    }

    /// Waits until the condition of type `kind` has this status.
    pub(super) async fn until(&self, kind: &str, status: &str) {
        let says = |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|condition| condition.status == status)
        };
        let reached = await_condition(self.clusters.clone(), "member1", says);
        let reached = timeout(LONGEST_WAIT, reached).await;
        reached.expect("it never comes to that").unwrap();
    }

    /// From now on it refuses a condition with a longer message than any that says that all is well.
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

    /// From now on the agents' watches tell nothing.
    pub(super) fn hush(&self) {
        let by = 2 * LONGEST_WAIT;
        let coalesce = false;
        let fault = Fault::DelayEvents { by, coalesce }.client(crate::NAME);
        self.server.faults().inject(fault);
    }
}

impl Line {
    pub(super) fn client(&self) -> Client {
        let line = self.clone();
        let service = tower::service_fn(move |request| line.clone().ask(request));
        let config = Config::new(Uri::from_static("http://karmada"));
        client::with_service(service, config, crate::NAME).unwrap()
    }

    /// From now on, somebody else edits the object's status just before each patch.
    pub(super) fn before_each_patch(&self, edit: impl FnMut(&mut Value) + Send + 'static) {
        *self.before_patch.lock().unwrap() = Some(Box::new(edit));
    }

    /// From now on, what is asked arrives so much later, also when nobody waits for an answer any more.
    pub(super) fn delay(&self, by: Duration) {
        *self.delay.lock().unwrap() = by;
    }

    /// The patches of the object, in the order in which they were answered.
    pub(super) fn patches(&self) -> Vec<Asked> {
        let mut asked = self.log.borrow().clone();
        asked.retain(|asked| !asked.body.is_null());
        asked
    }

    /// What became of the patches.
    pub(super) fn codes(&self) -> Vec<u16> {
        let patches = self.patches().into_iter();
        patches.map(|patch| patch.answer.as_u16()).collect()
    }

    /// How often the one object was read.
    pub(super) fn reads(&self) -> usize {
        let asked = self.log.borrow();
        asked.iter().filter(|asked| asked.body.is_null()).count()
    }

    /// Waits until so many patches have been answered.
    pub(super) async fn answered(&self, patches: usize) {
        let mut log = self.log.subscribe();
        let enough = |log: &Vec<Asked>| log.iter().filter(|a| !a.body.is_null()).count() >= patches;
        let enough = timeout(LONGEST_WAIT, log.wait_for(enough)).await;
        enough.expect("so many never come").unwrap();
    }

    async fn ask(self, request: Request<kube::client::Body>) -> io::Result<Response<Body>> {
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

    async fn arrive(self, request: Request<kube::client::Body>) -> io::Result<Response<Body>> {
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
        let asked = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request::from_parts(parts, Body::from(body));
        let answer = self.server.oneshot(request).await?;
        if about_ours {
            let asked = Asked {
                path,
                body: asked,
                content_type: content_type.unwrap_or_default(),
                answer: answer.status(),
            };
            self.log.send_modify(|log| log.push(asked));
        }
        Ok(answer)
    }
}

fn raw(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<Cluster>(&()))
}

async fn patch(clusters: &Api<DynamicObject>, change: &Value) {
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(change));
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
