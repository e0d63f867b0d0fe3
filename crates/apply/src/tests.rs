use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use http::Request;
use karmada_api::Work;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::write::{WouldWrite, WriteMode, Writer};
use kube::Client;
use kube::client::Body;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::{Value, from_value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;

const NAMESPACE: &str = "karmada-es-m1";

/// A member with its API, a log of the requests to it that write, and of those that read one object.
struct Stage {
    server: ApiServer,
    member: MemberCluster,
    writes: WriteMode,
    log: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<Vec<String>>>,
    woken: mpsc::UnboundedReceiver<Wake>,
    watches: JoinHandle<()>,
}

impl Stage {
    async fn new() -> Self {
        let server = ApiServer::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let reads = Arc::new(Mutex::new(Vec::new()));
        let (requests, behind) = ([&log, &reads].map(Arc::clone), server.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (path, [writes, reads]) = (request.uri().path(), &requests);
            if request.method() != "GET" {
                writes.lock().push(format!("{} {path}", request.method()));
            } else if [WEB, SETTINGS].contains(&path) {
                reads.lock().push(path.to_owned());
            }
            behind.service().oneshot(request)
        });
        let client = Client::new(service, "default");
        let (sender, woken) = mpsc::unbounded_channel();
        let wake = move |wake| sender.send(wake).unwrap();
        let (member, running) = MemberCluster::new(client, NAMESPACE.to_owned(), wake);
        let watches = tokio::spawn(running);
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let stage = Self {
            server,
            member,
            writes: WriteMode::Perform(writer),
            log,
            reads,
            woken,
            watches,
        };
        stage
            .send(
                "POST",
                "/api/v1/namespaces",
                &json!({ "metadata": { "name": "shop" } }),
            )
            .await;
        stage
    }

    /// Watches what the tests apply, and waits until all of it is listed.
    async fn watching() -> Self {
        let mut stage = Self::new().await;
        let kinds = [("apps/v1", "Deployment"), ("v1", "ConfigMap")];
        let kinds = kinds.map(|(version, kind)| GroupVersionKind::new(version, kind));
        stage.member.want(BTreeSet::from(kinds));
        let settings = work(&json!([settings()]));
        let deployment = work(&json!([deployment()]));
        for work in [settings, deployment] {
            while let SyncResult::Later(_) = {
                let observing = WriteMode::DryRun(WouldWrite::default());
                stage.member.sync(&observing, &work).await
            } {
                stage.woken().await;
            }
            stage.member.forget(&Key::of(&work));
        }
        stage
    }

    /// Sends a request as another client.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind);
        let request = request.body(body.to_string().into_bytes()).unwrap();
        let client = Client::new(self.server.service(), "default");
        client.request(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).unwrap();
        Client::new(self.server.service(), "default")
            .request(request)
            .await
            .ok()
    }

    async fn woken(&mut self) -> Wake {
        timeout(Duration::from_mins(1), self.woken.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn sync(&self, work: &Work) -> Vec<Synced> {
        match self.member.sync(&self.writes, work).await {
            SyncResult::Done { manifests, .. } => manifests,
            SyncResult::Later(_) => panic!("not listed"),
        }
    }

    /// Syncs and returns the error of the only manifest.
    async fn error(&self, work: &Work) -> Option<MemberError> {
        let mut synced = self.sync(work).await;
        assert_eq!(synced.len(), 1);
        synced.remove(0).error
    }

    fn written(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock())
    }

    /// Returns the objects that were read one by one since the last call.
    fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.reads.lock())
    }
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const SETTINGS: &str = "/api/v1/namespaces/shop/configmaps/settings";

fn work(manifests: &Value) -> Work {
    from_value(json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "generation": 1 },
        "spec": { "workload": { "manifests": manifests } },
    }))
    .unwrap()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "namespace": "shop",
        "labels": { "karmada.io/managed": "true" },
        "annotations": { "work.karmada.io/namespace": NAMESPACE, "work.karmada.io/name": "web" },
    })
}

fn settings() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"),
        "data": { "greeting": "hello", "more": "x" } })
}

fn deployment() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"), "spec": {
        "replicas": 2,
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
        },
    } })
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_once_and_made_again_when_it_is_deleted() {
    let mut stage = Stage::watching().await;
    let work = work(&json!([deployment()]));
    assert!(stage.error(&work).await.is_none());
    assert_eq!(stage.written(), [format!("PATCH {WEB}")]);
    let key = Key::new(NAMESPACE, "web");
    assert_eq!(stage.woken().await, Wake::Now(key.clone()));
    assert!(stage.error(&work).await.is_none());
    assert_eq!(stage.written(), [""; 0]);
    stage
        .send(
            "PATCH",
            &format!("{WEB}/status"),
            &json!({ "status": { "replicas": 2 } }),
        )
        .await;
    assert_eq!(stage.woken().await, Wake::Paced(key.clone()));
    let synced = stage.sync(&work).await;
    let ObservedObject::Present(object) = &synced[0].object else {
        panic!("{synced:?}")
    };
    assert_eq!(object["status"]["replicas"], 2);
    assert_eq!(stage.written(), [""; 0]);
    stage.send("DELETE", WEB, &json!({})).await;
    assert_eq!(stage.woken().await, Wake::Now(key));
    assert!(stage.error(&work).await.is_none());
    assert_eq!(stage.written(), [format!("PATCH {WEB}")]);
}

#[tokio::test(start_paused = true)]
async fn what_we_have_applied_is_edited_and_deleted_without_a_look() {
    let mut stage = Stage::watching().await;
    stage.read();
    let mut work = work(&json!([deployment()]));
    assert!(stage.error(&work).await.is_none());
    assert_eq!(stage.read(), [WEB]);
    stage.woken().await;
    let containers = "/spec/template/spec/containers/0";
    for field in ["args", "command"] {
        let manifest = &mut work.spec.workload.manifests[0];
        let mut container = json!({ "name": "web", "image": "web:1" });
        container[field] = json!(["a"]);
        *manifest.pointer_mut(containers).unwrap() = container.clone();
        assert!(stage.error(&work).await.is_none());
        stage.woken().await;
        let web = stage.get(WEB).await.unwrap();
        let web = web.pointer(containers).unwrap();
        // What the former edit set is gone.
        for field in ["args", "command"] {
            assert_eq!(web.get(field), container.get(field));
        }
    }
    assert_eq!(stage.read(), [""; 0]);
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    assert_eq!(stage.get(WEB).await, None);
    assert_eq!(stage.read(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_the_watch_does_not_show_yet_is_looked_at() {
    for is_ours in [true, false] {
        let mut stage = Stage::watching().await;
        let mut work = work(&json!([settings()]));
        assert!(stage.error(&work).await.is_none());
        stage.woken().await;
        stage.watches.abort();
        stage.send("DELETE", SETTINGS, &json!({})).await;
        let mut other = settings();
        if !is_ours {
            other["metadata"] = json!({ "name": "settings" });
        }
        stage.send("POST", MAPS, &other).await;
        stage.read();
        work.spec.workload.manifests[0]["data"]["more"] = json!("y");
        let error = stage.error(&work).await;
        assert_eq!(stage.read(), [SETTINGS], "{error:?} {:?}", stage.written());
        assert_eq!(error.is_none(), is_ours, "{error:?}");
        stage.member.give_up(&stage.writes, &work).await.unwrap();
        assert_eq!(stage.get(SETTINGS).await.is_none(), is_ours);
    }
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_and_what_others_own_stays() {
    let mut stage = Stage::watching().await;
    let mut work = work(&json!([deployment(), settings()]));
    assert!(
        stage
            .sync(&work)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    stage.woken().await;
    stage.woken().await;
    stage.written();
    let theirs = json!({ "metadata": { "annotations": { "theirs": "kept" } },
        "spec": { "replicas": 9 } });
    stage.send("PATCH", WEB, &theirs).await;
    stage
        .send(
            "PATCH",
            SETTINGS,
            &json!({ "data": { "greeting": "hallo", "own": "y" } }),
        )
        .await;
    stage.woken().await;
    stage.woken().await;
    assert!(
        stage
            .sync(&work)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    assert_eq!(
        stage.written(),
        [format!("PATCH {WEB}"), format!("PATCH {SETTINGS}")]
    );
    let web = stage.get(WEB).await.unwrap();
    assert_eq!(web["spec"]["replicas"], 2);
    assert_eq!(web["metadata"]["annotations"]["theirs"], "kept");
    let data = stage.get(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(
        data,
        json!({ "greeting": "hello", "more": "x", "own": "y" })
    );
    // An edit that only takes something out.
    work.spec.workload.manifests[1]["data"] = json!({ "greeting": "hello" });
    work.metadata.generation = Some(2);
    assert!(
        stage
            .sync(&work)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    assert_eq!(stage.written(), [format!("PATCH {SETTINGS}")]);
    let data = stage.get(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data, json!({ "greeting": "hello", "own": "y" }));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_our_watch_without_its_label_is_taken_back() {
    let mut stage = Stage::watching().await;
    let work = work(&json!([settings()]));
    assert!(stage.error(&work).await.is_none());
    stage.woken().await;
    let bare = json!({ "metadata": { "labels": { "karmada.io/managed": null } } });
    stage.send("PATCH", SETTINGS, &bare).await;
    assert_eq!(stage.woken().await, Wake::Now(Key::new(NAMESPACE, "web")));
    assert!(stage.error(&work).await.is_none());
    let labels = &stage.get(SETTINGS).await.unwrap()["metadata"]["labels"];
    assert_eq!(labels["karmada.io/managed"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_work_writes_nothing_and_reads_on() {
    let mut stage = Stage::watching().await;
    let mut work = work(&json!([deployment()]));
    assert!(stage.error(&work).await.is_none());
    stage.woken().await;
    stage.written();
    work.spec.suspend_dispatching = Some(true);
    work.spec.workload.manifests[0]["spec"]["replicas"] = json!(5);
    stage
        .send("PATCH", WEB, &json!({ "spec": { "replicas": 9 } }))
        .await;
    stage.woken().await;
    let synced = stage.sync(&work).await;
    let ObservedObject::Present(object) = &synced[0].object else {
        panic!("{synced:?}")
    };
    assert_eq!(object["spec"]["replicas"], 9);
    stage.send("DELETE", WEB, &json!({})).await;
    stage.woken().await;
    assert_eq!(stage.sync(&work).await[0].object, ObservedObject::Absent);
    assert_eq!(stage.written(), [""; 0]);
    work.spec.suspend_dispatching = Some(false);
    assert!(stage.error(&work).await.is_none());
    assert_eq!(stage.get(WEB).await.unwrap()["spec"]["replicas"], 5);
}

/// Creates an object as Karmada's own program does.
async fn by_karmada(stage: &Stage, path: &str, object: &Value) {
    let path = format!("{path}?fieldManager=karmada-controller-manager");
    stage.send("POST", &path, object).await;
}

#[tokio::test(start_paused = true)]
async fn what_karmada_applied_is_left_alone_until_its_first_edit_and_is_then_ours() {
    for is_watched in [false, true] {
        let stage = if is_watched {
            Stage::watching().await
        } else {
            Stage::new().await
        };
        by_karmada(&stage, MAPS, &settings()).await;
        by_karmada(&stage, DEPLOYMENTS, &deployment()).await;
        let mut work = work(&json!([settings(), deployment()]));
        assert!(
            stage
                .sync(&work)
                .await
                .iter()
                .all(|one| one.error.is_none())
        );
        assert_eq!(stage.written(), [""; 0]);
        work.metadata.generation = Some(2);
        work.spec.workload.manifests[0]["data"] = json!({ "greeting": "hallo" });
        let container =
            &mut work.spec.workload.manifests[1]["spec"]["template"]["spec"]["containers"][0];
        *container = json!({ "name": "app", "image": "web:2" });
        assert!(
            stage
                .sync(&work)
                .await
                .iter()
                .all(|one| one.error.is_none())
        );
        let writes = [SETTINGS, SETTINGS, WEB, WEB].map(|path| format!("PATCH {path}"));
        assert_eq!(stage.written(), writes);
        let data = stage.get(SETTINGS).await.unwrap()["data"].clone();
        assert_eq!(data, json!({ "greeting": "hallo" }));
        let web = stage.get(WEB).await.unwrap();
        let containers = web["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        assert_eq!(containers.len(), 1, "the former container is gone");
        assert_eq!(containers[0]["image"], "web:2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_object_is_left_alone_unless_it_shall_be_overwritten() {
    let stage = Stage::new().await;
    let mut foreign = settings();
    foreign["metadata"] = json!({ "name": "settings" });
    foreign["data"] = json!({ "theirs": "x" });
    stage.send("POST", MAPS, &foreign).await;
    let mut work = work(&json!([settings()]));
    let error = stage.error(&work).await.unwrap();
    assert!(matches!(error, MemberError::Refused(_)), "{error}");
    assert_eq!(stage.written(), [""; 0]);
    let annotations = &mut work.spec.workload.manifests[0]["metadata"]["annotations"];
    annotations["work.karmada.io/conflict-resolution"] = json!("overwrite");
    assert!(stage.error(&work).await.is_none());
    let data = stage.get(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data, json!({ "greeting": "hello", "more": "x" }));
}

#[tokio::test(start_paused = true)]
async fn one_manifest_that_fails_holds_up_no_other_and_has_a_clear_message() {
    let stage = Stage::new().await;
    let mut lost = settings();
    lost["metadata"]["namespace"] = json!("nowhere");
    let mut unscoped = settings();
    unscoped["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    let unknown =
        json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata("w") });
    let work = work(&json!([lost, unscoped, unknown, {}, 7, settings()]));
    let errors = stage.sync(&work).await.into_iter();
    let errors: Vec<_> = errors
        .map(|one| one.error.map(|error| error.to_string()))
        .collect();
    let text = |index: usize| errors[index].as_deref().unwrap_or_default();
    assert!(
        text(0).contains("namespaces \"nowhere\" not found"),
        "{}",
        text(0)
    );
    assert_eq!(text(1), "the manifest has no namespace");
    assert_eq!(
        text(2),
        "the member does not serve Widget of example.com/v1"
    );
    assert_eq!(text(3), "the manifest has no apiVersion and kind");
    assert_eq!(text(4), "the manifest has no apiVersion and kind");
    assert_eq!(errors[5], None);
}

#[tokio::test(start_paused = true)]
async fn a_work_is_woken_once_its_kind_is_served() {
    let mut stage = Stage::new().await;
    let widget = json!({ "apiVersion": "test.io/v1", "kind": "Widget", "metadata": metadata("w") });
    let work = work(&json!([widget]));
    stage.member.want(BTreeSet::from([GroupVersionKind::new(
        "test.io/v1",
        "Widget",
    )]));
    let error = stage.error(&work).await.unwrap();
    assert!(matches!(error, MemberError::NotServed(_)), "{error}");
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.test.io" },
        "spec": { "group": "test.io", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }] },
    });
    stage.server.install(&definition).unwrap();
    assert_eq!(stage.woken().await, Wake::Now(Key::new(NAMESPACE, "web")));
    assert!(stage.error(&work).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_key_twice_is_applied_too() {
    let stage = Stage::new().await;
    let mut manifest = deployment();
    let env = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
    let mut work = work(&json!([manifest]));
    assert!(stage.error(&work).await.is_none());
    let web = stage.get(WEB).await.unwrap();
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["env"], env);
    stage.written();
    assert!(stage.error(&work).await.is_none());
    work.spec.workload.manifests[0]["spec"]["replicas"] = json!(3);
    assert!(stage.error(&work).await.is_none());
    let web = stage.get(WEB).await.unwrap();
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["env"], env);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_work_takes_its_own_objects_and_no_others() {
    let stage = Stage::new().await;
    let work = work(&json!([deployment(), settings()]));
    stage.sync(&work).await;
    let other = json!({ "metadata": { "annotations": { "work.karmada.io/name": "other" } } });
    stage.send("PATCH", SETTINGS, &other).await;
    stage.written();
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    assert_eq!(stage.written(), [format!("DELETE {WEB}")]);
    assert_eq!(stage.get(WEB).await, None);
    assert!(stage.get(SETTINGS).await.is_some());
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    assert_eq!(stage.written(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_work_waits_for_an_object_whose_deletion_is_refused() {
    let stage = Stage::watching().await;
    let work = work(&json!([settings()]));
    stage.sync(&work).await;
    let refused = Fault::Conflict.verbs([Verb::Delete]);
    let fault = stage.server.faults().inject(refused);
    assert!(stage.member.give_up(&stage.writes, &work).await.is_err());
    stage.server.faults().remove(fault);
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    assert_eq!(stage.get(SETTINGS).await, None);
}

#[tokio::test(start_paused = true)]
async fn preserved_objects_lose_our_marks_only() {
    let stage = Stage::new().await;
    let mut work = work(&json!([deployment(), settings()]));
    stage.sync(&work).await;
    stage.send("DELETE", SETTINGS, &json!({})).await;
    work.spec.preserve_resources_on_deletion = Some(true);
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    let web = stage.get(WEB).await.unwrap();
    assert!(!web["metadata"]["labels"].to_string().contains("karmada.io"));
    assert!(
        !web["metadata"]["annotations"]
            .to_string()
            .contains("karmada.io")
    );
    assert_eq!(web["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn only_what_does_not_answer_is_unreachable() {
    let stage = Stage::new().await;
    let work = work(&json!([settings()]));
    for (fault, unreachable, unauthorized) in [
        (Fault::Disconnect, true, false),
        (Fault::Silence, true, false),
        (Fault::Unauthorized, false, true),
        (Fault::Forbidden, false, false),
        (Fault::InternalError, false, false),
    ] {
        let id = stage
            .server
            .faults()
            .inject(fault.clone().verbs([Verb::Patch, Verb::Get]));
        let error = stage.error(&work).await.unwrap();
        assert_eq!(error.is_unreachable(), unreachable, "{fault:?}: {error}");
        assert_eq!(error.is_unauthorized(), unauthorized, "{fault:?}: {error}");
        stage.server.faults().remove(id);
    }
    assert!(stage.error(&work).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn observation_decides_everything_and_writes_nothing() {
    let mut stage = Stage::new().await;
    by_karmada(&stage, DEPLOYMENTS, &deployment()).await;
    let counters = WouldWrite::default();
    stage.writes = WriteMode::DryRun(counters.clone());
    let mut edited = deployment();
    edited["spec"]["replicas"] = json!(5);
    let work = work(&json!([edited, settings()]));
    assert!(
        stage
            .sync(&work)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    stage.member.give_up(&stage.writes, &work).await.unwrap();
    assert_eq!(stage.written(), [""; 0]);
    let targets = [
        "member_apply",
        "member_create",
        "member_managed_fields",
        "member_delete",
    ];
    assert_eq!(targets.map(|target| counters.of(target)), [1, 1, 1, 1]);
}
