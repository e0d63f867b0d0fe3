use std::collections::BTreeSet;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use karmada_runtime::dynamic::{Selected, WatchState};
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::write::{WouldWrite, WriteMode, Writer};
use kube::runtime::watcher::Config;
use lab_parts::test_api::TestApi;
use objects::comparison::Comparison;
use objects::managed_fields::{Managers, TakeOver};
use objects::metadata::Written;
use objects::ownership::{
    Adoption, Instruction, ObservedObject, Removal, Retain, Retainer, WriteStyle,
};
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

mod replacement;
mod rivals;
mod withheld;

const NAMESPACE: &str = "sets";

/// A member with its API.
struct Stage {
    api: TestApi,
    member: Applier<TestOwner>,
    writes: WriteMode,
    woken: mpsc::UnboundedReceiver<Wake>,
    watches: JoinHandle<()>,
}

impl Stage {
    async fn new() -> Self {
        let api = TestApi::of(ApiServer::new());
        api.create_namespace("shop").await;
        Self::of(api)
    }

    /// Starts anew with a member as it is.
    fn of(api: TestApi) -> Self {
        let (sender, woken) = mpsc::unbounded_channel();
        let (member, running) = Applier::new(api.client(), TestOwner, owned(), move |wake| {
            sender.send(wake).unwrap();
        });
        let watches = tokio::spawn(running);
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        Self {
            api,
            member,
            writes: WriteMode::Perform(writer),
            woken,
            watches,
        }
    }

    /// Watches the kinds that the tests apply, and waits until all are listed.
    async fn watching() -> Self {
        Self::new().await.watch().await
    }

    async fn watch(self) -> Self {
        let mut stage = self;
        let kinds = [("apps/v1", "Deployment"), ("v1", "ConfigMap")];
        let kinds = kinds.map(|(version, kind)| GroupVersionKind::new(version, kind));
        stage.member.want(BTreeSet::from(kinds));
        let settings = source(&json!([settings()]));
        let deployment = source(&json!([deployment()]));
        for source in [settings, deployment] {
            while let SyncResult::Later(_) = {
                let observing = WriteMode::DryRun(WouldWrite::default());
                stage.member.sync(&observing, &source.set()).await
            } {
                stage.woken().await;
            }
            stage.member.forget(&source.set().key);
        }
        stage
    }

    async fn woken(&mut self) -> Wake {
        timeout(Duration::from_mins(1), self.woken.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn sync(&self, source: &Source) -> Vec<Synced> {
        match self.member.sync(&self.writes, &source.set()).await {
            SyncResult::Done { manifests, .. } => manifests,
            SyncResult::Later(_) => panic!("not listed"),
        }
    }

    /// Syncs and returns the error of the only manifest.
    async fn error(&self, source: &Source) -> Option<MemberError> {
        let mut synced = self.sync(source).await;
        assert_eq!(synced.len(), 1);
        synced.remove(0).error
    }

    /// Returns which objects were read one by one since the last call.
    fn read(&self) -> Vec<String> {
        let mut reads = self.api.reads();
        reads.retain(|path| [WEB, SETTINGS].contains(&path.as_str()));
        reads
    }
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const SETTINGS: &str = "/api/v1/namespaces/shop/configmaps/settings";

/// An object that lists manifests.
struct Source {
    generation: i64,
    manifests: Vec<Value>,
    suspended: bool,
    /// True if the objects stay when the set goes.
    preserved: bool,
    style: WriteStyle,
    last_write: LastWrite,
    notes: String,
}

impl Source {
    fn set(&self) -> ManifestSet<'_, Self> {
        ManifestSet {
            source: self,
            key: Key::new(NAMESPACE, "web"),
            generation: Some(self.generation),
            manifests: self.manifests.iter().collect(),
            withheld: BTreeSet::new(),
            terms: String::new(),
            suspended: self.suspended,
            last_write: self.last_write,
            notes: &self.notes,
        }
    }
}

fn source(manifests: &Value) -> Source {
    Source {
        generation: 1,
        manifests: manifests.as_array().unwrap().clone(),
        suspended: false,
        preserved: false,
        style: WriteStyle::Apply,
        last_write: LastWrite::Unknown,
        notes: String::new(),
    }
}

const OWNED: &str = "test.io/owned";
const SET: &str = "test.io/set";
const ADOPTS: &str = "test.io/adopts";
/// The node ports of a manifest that may be others.
const ALLOCATED: &str = "test.io/allocated";
/// Names the labels of a manifest.
const LABELS: &str = "test.io/labels";

/// An owner whose sets are named by an annotation of their objects.
struct TestOwner;

/// Selects the objects that may be of a set.
fn owned() -> Selected {
    Config::default().labels(&format!("{OWNED}=true")).into()
}

/// Returns the metadata of the last write of an object, by the labels that it lists.
fn written(object: &Value) -> Option<Written> {
    let labels = object.annotation(LABELS)?.split(',').map(Into::into);
    let annotations = [SET, LABELS].map(Into::into).into();
    Some(Written {
        labels: labels.collect(),
        annotations,
    })
}

impl TestOwner {
    fn adoption(&self, set: &Key, manifest: &Value, object: &Value) -> Adoption {
        if self.set_of(object).as_ref() == Some(set) {
            Adoption::Owned
        } else if manifest.annotation(ADOPTS).is_some() {
            let fields = TakeOver::FromAll;
            Adoption::Adopt { fields }
        } else {
            let reason = "not ours".to_owned();
            Adoption::Refuse { reason }
        }
    }
}

impl Ownership for TestOwner {
    type Source = Source;

    const MANAGERS: Managers = Managers {
        ours: "tester",
        predecessors: &["predecessor"],
    };

    const WRITTEN: fn(&Value) -> Option<Written> = written;

    const PRUNED: fn(&GroupVersionKind) -> bool = |kind| kind.kind == "ConfigMap";

    fn set_of(&self, object: &impl Metadata) -> Option<Key> {
        let name = object.annotation(SET)?;
        Some(Key::new(NAMESPACE, name))
    }

    fn instruction(&self, one: &ManifestRef<'_, Source>, object: Option<&Value>) -> Instruction {
        let ports = one.manifest.annotation(ALLOCATED).unwrap_or_default();
        let labels = &one.manifest["metadata"]["labels"];
        let by = if labels["is-interpreted"] == "true" {
            Retainer::Interpreter(1)
        } else {
            Retainer::Nobody
        };
        Instruction {
            style: one.set.source.style,
            adopt: object.map_or(Adoption::Owned, |object| {
                self.adoption(&one.set.key, one.manifest, object)
            }),
            compare: Comparison::Never,
            retain: Retain {
                replicas: labels["retains-replicas"] == "true",
                node_ports: ports.split(',').flat_map(str::parse::<u16>).collect(),
                by,
            },
            wave: one.ordinal,
        }
    }

    fn removal(&self, source: &Source, object: &Value) -> Removal {
        if self.set_of(object) != Some(source.set().key) {
            Removal::Nothing
        } else if source.preserved {
            let marks = json!({ "labels": { OWNED: null }, "annotations": { SET: null } });
            let patch = json!({ "metadata": marks });
            Removal::Release { patch }
        } else {
            let uid = object.uid().to_owned();
            Removal::Delete { uid }
        }
    }
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "namespace": "shop",
        "labels": { OWNED: "true" }, "annotations": { SET: "web" },
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

/// An object is created once, and again when somebody deletes it; its status alone wakes the set at leisure.
#[tokio::test(start_paused = true)]
async fn created_once_and_after_deletion() {
    let mut stage = Stage::watching().await;
    let source = source(&json!([deployment()]));
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [format!("PATCH {WEB}")]);
    let key = Key::new(NAMESPACE, "web");
    assert_eq!(stage.woken().await, Wake::Now(key.clone()));
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
    stage
        .api
        .send(
            "PATCH",
            &format!("{WEB}/status"),
            &json!({ "status": { "replicas": 2 } }),
        )
        .await;
    assert_eq!(stage.woken().await, Wake::Paced(key.clone()));
    let synced = stage.sync(&source).await;
    let ObservedObject::Present(object) = &synced[0].object else {
        panic!("{synced:?}")
    };
    assert_eq!(object["status"]["replicas"], 2);
    assert_eq!(stage.api.writes(), [""; 0]);
    stage.api.send("DELETE", WEB, &json!({})).await;
    assert_eq!(stage.woken().await, Wake::Now(key));
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [format!("PATCH {WEB}")]);
}

/// An object that we have applied is edited and deleted without a live look.
#[tokio::test(start_paused = true)]
async fn own_objects_need_no_read() {
    let mut stage = Stage::watching().await;
    stage.read();
    let mut source = source(&json!([deployment()]));
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.read(), [WEB]);
    stage.woken().await;
    let containers = "/spec/template/spec/containers/0";
    for field in ["args", "command"] {
        let manifest = &mut source.manifests[0];
        let mut container = json!({ "name": "web", "image": "web:1" });
        container[field] = json!(["a"]);
        *manifest.pointer_mut(containers).unwrap() = container.clone();
        assert!(stage.error(&source).await.is_none());
        stage.woken().await;
        let web = stage.api.find(WEB).await.unwrap();
        let web = web.pointer(containers).unwrap();
        // The fields of the former edit are gone.
        for field in ["args", "command"] {
            assert_eq!(web.get(field), container.get(field));
        }
    }
    assert_eq!(stage.read(), [""; 0]);
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    assert_eq!(stage.api.find(WEB).await, None);
    assert_eq!(stage.read(), [""; 0]);
}

/// An object that the watch does not show yet is looked at, and left alone if it is not ours.
#[tokio::test(start_paused = true)]
async fn unseen_replacement_is_read() {
    for is_ours in [true, false] {
        let mut stage = Stage::watching().await;
        let mut source = source(&json!([settings()]));
        assert!(stage.error(&source).await.is_none());
        stage.woken().await;
        stage.watches.abort();
        stage.api.send("DELETE", SETTINGS, &json!({})).await;
        let mut other = settings();
        if !is_ours {
            other["metadata"] = json!({ "name": "settings" });
        }
        stage.api.send("POST", MAPS, &other).await;
        stage.read();
        source.manifests[0]["data"]["more"] = json!("y");
        let error = stage.error(&source).await;
        assert_eq!(
            stage.read(),
            [SETTINGS],
            "{error:?} {:?}",
            stage.api.writes()
        );
        assert_eq!(error.is_none(), is_ours, "{error:?}");
        stage
            .member
            .remove(&stage.writes, &source.set())
            .await
            .unwrap();
        assert_eq!(stage.api.find(SETTINGS).await.is_none(), is_ours);
    }
}

/// Changes of others to fields of the manifest are repaired, their additions stay. A key that leaves the manifest goes.
#[tokio::test(start_paused = true)]
async fn drift_repaired_others_stay() {
    let mut stage = Stage::watching().await;
    let mut source = source(&json!([deployment(), settings()]));
    assert!(
        stage
            .sync(&source)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    stage.woken().await;
    stage.woken().await;
    stage.api.writes();
    let theirs = json!({ "metadata": { "annotations": { "theirs": "kept" } },
        "spec": { "replicas": 9 } });
    stage.api.send("PATCH", WEB, &theirs).await;
    stage
        .api
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
            .sync(&source)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    assert_eq!(
        stage.api.writes(),
        [format!("PATCH {WEB}"), format!("PATCH {SETTINGS}")]
    );
    let web = stage.api.find(WEB).await.unwrap();
    assert_eq!(web["spec"]["replicas"], 2);
    assert_eq!(web["metadata"]["annotations"]["theirs"], "kept");
    let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(
        data,
        json!({ "greeting": "hello", "more": "x", "own": "y" })
    );
    // An edit that only takes something out.
    source.manifests[1]["data"] = json!({ "greeting": "hello" });
    source.generation = 2;
    assert!(
        stage
            .sync(&source)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    assert_eq!(stage.api.writes(), [format!("PATCH {SETTINGS}")]);
    let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data, json!({ "greeting": "hello", "own": "y" }));
}

/// Case P110: an element that nobody may share is ours as a whole, whatever somebody adds within it: also if that was
/// while nobody looked.
#[tokio::test(start_paused = true)]
async fn widened_element_is_repaired() {
    let mut manifest = deployment();
    let toleration = json!({ "key": "gpu", "operator": "Exists" });
    manifest["spec"]["template"]["spec"]["tolerations"] = json!([toleration]);
    let wider = json!([{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }]);
    let widened = json!({ "spec": { "template": { "spec": { "tolerations": wider } } } });
    let mut source = source(&json!([manifest]));
    let mut stage = Stage::watching().await;
    assert!(stage.error(&source).await.is_none());
    stage.woken().await;
    for is_restarted in [false, true] {
        stage.api.send("PATCH", WEB, &widened).await;
        if is_restarted {
            stage.watches.abort();
            source.last_write = LastWrite::OfManifest;
            stage = Stage::of(stage.api.clone()).watch().await;
        } else {
            stage.woken().await;
        }
        assert!(stage.error(&source).await.is_none());
        let web = stage.api.find(WEB).await.unwrap();
        let [found, wanted] = [&web, &source.manifests[0]]
            .map(|object| object.pointer("/spec/template/spec/tolerations"));
        assert_eq!(found, wanted, "{is_restarted}");
        stage.api.writes();
        assert!(stage.error(&source).await.is_none());
        assert_eq!(stage.api.writes(), [""; 0]);
    }
}

/// An object that left the watch because somebody took its label off is taken back.
#[tokio::test(start_paused = true)]
async fn object_without_label_is_restored() {
    let mut stage = Stage::watching().await;
    let source = source(&json!([settings()]));
    assert!(stage.error(&source).await.is_none());
    stage.woken().await;
    let bare = json!({ "metadata": { "labels": { OWNED: null } } });
    stage.api.send("PATCH", SETTINGS, &bare).await;
    assert_eq!(stage.woken().await, Wake::Now(Key::new(NAMESPACE, "web")));
    assert!(stage.error(&source).await.is_none());
    let labels = &stage.api.find(SETTINGS).await.unwrap()["metadata"]["labels"];
    assert_eq!(labels[OWNED], "true");
}

/// Case P23: a suspended set writes nothing, and goes on to observe; resumed, it is applied.
#[tokio::test(start_paused = true)]
async fn suspended_set_only_observes() {
    let mut stage = Stage::watching().await;
    let mut source = source(&json!([deployment()]));
    assert!(stage.error(&source).await.is_none());
    stage.woken().await;
    stage.api.writes();
    source.suspended = true;
    source.manifests[0]["spec"]["replicas"] = json!(5);
    stage
        .api
        .send("PATCH", WEB, &json!({ "spec": { "replicas": 9 } }))
        .await;
    stage.woken().await;
    let synced = stage.sync(&source).await;
    let ObservedObject::Present(object) = &synced[0].object else {
        panic!("{synced:?}")
    };
    assert_eq!(object["spec"]["replicas"], 9);
    stage.api.send("DELETE", WEB, &json!({})).await;
    stage.woken().await;
    assert_eq!(stage.sync(&source).await[0].object, ObservedObject::Absent);
    assert_eq!(stage.api.writes(), [""; 0]);
    source.suspended = false;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.find(WEB).await.unwrap()["spec"]["replicas"], 5);
}

/// Creates an object as the predecessor does.
async fn by_predecessor(stage: &Stage, path: &str, object: &Value) {
    let path = format!("{path}?fieldManager=predecessor");
    stage.api.send("POST", &path, object).await;
}

/// The object of a predecessor is left alone until its first edit, and is then ours: fields that left the manifest go.
#[tokio::test(start_paused = true)]
async fn predecessors_objects_taken_at_edit() {
    for is_watched in [false, true] {
        let stage = if is_watched {
            Stage::watching().await
        } else {
            Stage::new().await
        };
        by_predecessor(&stage, MAPS, &settings()).await;
        by_predecessor(&stage, DEPLOYMENTS, &deployment()).await;
        let mut source = source(&json!([settings(), deployment()]));
        assert!(
            stage
                .sync(&source)
                .await
                .iter()
                .all(|one| one.error.is_none())
        );
        assert_eq!(stage.api.writes(), [""; 0]);
        source.generation = 2;
        source.manifests[0]["data"] = json!({ "greeting": "hallo" });
        let container = &mut source.manifests[1]["spec"]["template"]["spec"]["containers"][0];
        *container = json!({ "name": "app", "image": "web:2" });
        assert!(
            stage
                .sync(&source)
                .await
                .iter()
                .all(|one| one.error.is_none())
        );
        let writes = [SETTINGS, SETTINGS, WEB, WEB].map(|path| format!("PATCH {path}"));
        assert_eq!(stage.api.writes(), writes);
        let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
        assert_eq!(data, json!({ "greeting": "hallo" }));
        let web = stage.api.find(WEB).await.unwrap();
        let containers = web["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        assert_eq!(containers.len(), 1, "the former container is gone");
        assert_eq!(containers[0]["image"], "web:2");
    }
}

/// A foreign object is left alone unless the owner may adopt it; then it is ours as a whole.
#[tokio::test(start_paused = true)]
async fn foreign_object_needs_adoption() {
    let stage = Stage::new().await;
    let mut foreign = settings();
    foreign["metadata"] = json!({ "name": "settings" });
    foreign["data"] = json!({ "theirs": "x" });
    stage.api.send("POST", MAPS, &foreign).await;
    let mut source = source(&json!([settings()]));
    let error = stage.error(&source).await.unwrap();
    assert!(matches!(error, MemberError::Refused { .. }), "{error}");
    assert_eq!(stage.api.writes(), [""; 0]);
    let annotations = &mut source.manifests[0]["metadata"]["annotations"];
    annotations[ADOPTS] = json!("true");
    assert!(stage.error(&source).await.is_none());
    let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data, json!({ "greeting": "hello", "more": "x" }));
}

/// Each manifest that fails names its object, and its request if there was one. The others are applied.
#[tokio::test(start_paused = true)]
async fn failing_manifests_hold_up_none() {
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
    let source = source(&json!([lost, unscoped, unknown, {}, 7, settings()]));
    let errors = stage.sync(&source).await.into_iter();
    let errors: Vec<_> = errors
        .map(|one| one.error.map(|error| error.to_string()))
        .collect();
    let text = |index: usize| errors[index].as_deref().unwrap_or_default();
    let missing = "create ConfigMap nowhere/settings: the API server answered 404 NotFound: \
                   namespaces \"nowhere\" not found";
    let unserved = "Widget shop/w: the member does not serve Widget of example.com/v1";
    assert_eq!(text(0), missing);
    assert_eq!(text(1), "ConfigMap settings has no namespace");
    assert_eq!(text(2), unserved);
    assert_eq!(text(3), "manifest 3 has no apiVersion and kind");
    assert_eq!(text(4), "manifest 4 has no apiVersion and kind");
    assert_eq!(errors[5], None);
}

/// A set of a kind that the cluster does not serve is woken once it does.
#[tokio::test(start_paused = true)]
async fn served_kind_wakes() {
    let mut stage = Stage::new().await;
    let widget = json!({ "apiVersion": "test.io/v1", "kind": "Widget", "metadata": metadata("w") });
    let source = source(&json!([widget]));
    stage.member.want(BTreeSet::from([GroupVersionKind::new(
        "test.io/v1",
        "Widget",
    )]));
    let error = stage.error(&source).await.unwrap();
    assert!(matches!(error, MemberError::NotServed { .. }), "{error}");
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.test.io" },
        "spec": { "group": "test.io", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }] },
    });
    stage.api.install([definition]);
    assert_eq!(stage.woken().await, Wake::Now(Key::new(NAMESPACE, "web")));
    assert!(stage.error(&source).await.is_none());
}

/// Server-side apply refuses a list with a key twice; such an object is replaced instead.
#[tokio::test(start_paused = true)]
async fn duplicate_keys_are_replaced() {
    let stage = Stage::new().await;
    let mut manifest = deployment();
    let env = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
    let mut source = source(&json!([manifest]));
    assert!(stage.error(&source).await.is_none());
    let web = stage.api.find(WEB).await.unwrap();
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["env"], env);
    stage.api.writes();
    assert!(stage.error(&source).await.is_none());
    source.manifests[0]["spec"]["replicas"] = json!(3);
    assert!(stage.error(&source).await.is_none());
    let web = stage.api.find(WEB).await.unwrap();
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["env"], env);
}

/// A replacement drops the fields that left the manifest, whoever owns them, and keeps metadata of others.
#[tokio::test(start_paused = true)]
async fn replaced_object_has_manifest_alone() {
    let mut stage = Stage::watching().await;
    let mut source = source(&json!([settings()]));
    source.style = WriteStyle::Replace;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [format!("POST {MAPS}")]);
    stage.woken().await;
    let theirs = json!({ "metadata": { "annotations": { "theirs": "kept" }, "finalizers": ["test.io/f"] },
        "data": { "greeting": "hallo", "own": "y" } });
    stage.api.send("PATCH", SETTINGS, &theirs).await;
    stage.woken().await;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [format!("PUT {SETTINGS}")]);
    let map = stage.api.find(SETTINGS).await.unwrap();
    assert_eq!(map["data"], json!({ "greeting": "hello", "more": "x" }));
    assert_eq!(map["metadata"]["annotations"]["theirs"], "kept");
    assert_eq!(map["metadata"]["finalizers"], json!(["test.io/f"]));
    stage.woken().await;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
    source.generation = 2;
    let manifest = &mut source.manifests[0];
    manifest["data"] = json!({ "greeting": "hello" });
    manifest["metadata"]["labels"]["app"] = json!("web");
    assert!(stage.error(&source).await.is_none());
    let map = stage.api.find(SETTINGS).await.unwrap();
    assert_eq!(map["data"], json!({ "greeting": "hello" }));
    assert_eq!(map["metadata"]["labels"]["app"], "web");
    stage.woken().await;
    source.manifests[0]["metadata"]["labels"] = json!({ OWNED: "true" });
    assert!(stage.error(&source).await.is_none());
    let map = stage.api.find(SETTINGS).await.unwrap();
    assert_eq!(map["metadata"]["labels"], json!({ OWNED: "true" }));
    assert_eq!(
        stage.api.writes(),
        [""; 2].map(|_| format!("PUT {SETTINGS}"))
    );
}

/// A set that goes takes its own objects, and no others; a second time there is nothing to do.
#[tokio::test(start_paused = true)]
async fn removal_takes_own_objects_only() {
    let stage = Stage::new().await;
    let source = source(&json!([deployment(), settings()]));
    stage.sync(&source).await;
    let other = json!({ "metadata": { "annotations": { SET: "other" } } });
    stage.api.send("PATCH", SETTINGS, &other).await;
    stage.api.writes();
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    assert_eq!(stage.api.writes(), [format!("DELETE {WEB}")]);
    assert_eq!(stage.api.find(WEB).await, None);
    assert!(stage.api.find(SETTINGS).await.is_some());
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// A set whose object could not be deleted is not gone.
#[tokio::test(start_paused = true)]
async fn refused_deletion_is_an_error() {
    let stage = Stage::watching().await;
    let source = source(&json!([settings()]));
    stage.sync(&source).await;
    let refused = Fault::Conflict.verbs([Verb::Delete]);
    let fault = stage.api.server.faults().inject(refused);
    assert!(
        stage
            .member
            .remove(&stage.writes, &source.set())
            .await
            .is_err()
    );
    stage.api.server.faults().remove(fault);
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    assert_eq!(stage.api.find(SETTINGS).await, None);
}

/// Case P9: objects that are to stay lose the owner's marks, and nothing else. One that is gone already is no error.
#[tokio::test(start_paused = true)]
async fn released_objects_lose_marks_only() {
    let stage = Stage::new().await;
    let mut source = source(&json!([deployment(), settings()]));
    stage.sync(&source).await;
    stage.api.send("DELETE", SETTINGS, &json!({})).await;
    source.preserved = true;
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    let web = stage.api.find(WEB).await.unwrap();
    assert!(!web["metadata"]["labels"].to_string().contains("test.io"));
    assert!(
        !web["metadata"]["annotations"]
            .to_string()
            .contains("test.io")
    );
    assert_eq!(web["spec"]["replicas"], 2);
}

/// Only a cluster that does not answer is unreachable; whatever fails, the error names the request.
#[tokio::test(start_paused = true)]
async fn silence_alone_is_unreachable() {
    let stage = Stage::new().await;
    let source = source(&json!([settings()]));
    for (fault, unreachable, unauthorized) in [
        (Fault::Disconnect, true, false),
        (Fault::Silence, true, false),
        (Fault::Unauthorized, false, true),
        (Fault::Forbidden, false, false),
        (Fault::InternalError, false, false),
    ] {
        let id = stage
            .api
            .server
            .faults()
            .inject(fault.clone().verbs([Verb::Patch, Verb::Get]));
        let error = stage.error(&source).await.unwrap();
        assert_eq!(error.is_unreachable(), unreachable, "{fault:?}: {error}");
        assert_eq!(error.is_unauthorized(), unauthorized, "{fault:?}: {error}");
        let text = error.to_string();
        let requests = [
            "discover ConfigMap of v1: ",
            "get ConfigMap shop/settings: ",
        ];
        assert!(
            requests.iter().any(|request| text.starts_with(request)),
            "{text}"
        );
        stage.api.server.faults().remove(id);
    }
    assert!(stage.error(&source).await.is_none());
}

/// An answer that breaks off is asked for once more, and is no news of the cluster.
#[tokio::test(start_paused = true)]
async fn broken_answer_is_asked_for_again() {
    for (fault, verb) in [
        (Fault::Disconnect, Verb::Get),
        (Fault::Disconnect, Verb::Patch),
        (Fault::LoseResponse, Verb::Patch),
    ] {
        let stage = Stage::new().await;
        let once = fault.clone().times(1).kind("configmaps").verbs([verb]);
        stage.api.server.faults().inject(once);
        let error = stage.error(&source(&json!([settings()]))).await;
        assert!(error.is_none(), "{fault:?} {verb:?}: {error:?}");
        assert_eq!(stage.api.server.faults().hits()[fault.name()], 1);
    }
}

/// Writes that are only counted are decided like all others.
#[tokio::test(start_paused = true)]
async fn dry_run_only_counts() {
    let mut stage = Stage::new().await;
    by_predecessor(&stage, DEPLOYMENTS, &deployment()).await;
    let counters = WouldWrite::default();
    stage.writes = WriteMode::DryRun(counters.clone());
    let mut edited = deployment();
    edited["spec"]["replicas"] = json!(5);
    let source = source(&json!([edited, settings()]));
    assert!(
        stage
            .sync(&source)
            .await
            .iter()
            .all(|one| one.error.is_none())
    );
    stage
        .member
        .remove(&stage.writes, &source.set())
        .await
        .unwrap();
    assert_eq!(stage.api.writes(), [""; 0]);
    let targets = [
        "member_apply",
        "member_create",
        "member_managed_fields",
        "member_delete",
    ];
    assert_eq!(targets.map(|target| counters.of(target)), [1, 1, 1, 1]);
}

/// A cluster that cannot be reached has no lists to wait for: every set tells so at once.
#[tokio::test]
async fn unreached_cluster_is_told() {
    let address = format!("http://{}", lab_parts::port::CLOSED);
    let nowhere = kube::Config::new(address.parse().unwrap());
    let client = kube::Client::try_from(nowhere).unwrap();
    let (member, running) = Applier::new(client, TestOwner, owned(), |_| {});
    let watches = tokio::spawn(running);
    let writes = WriteMode::Perform(Writer::new(Leadership::always(), WriteMetrics::default()));
    let listed = source(&json!([settings()]));
    let is_told = async || match member.sync(&writes, &listed.set()).await {
        SyncResult::Done { manifests, .. } => manifests.iter().any(|one| one.error.is_some()),
        SyncResult::Later(_) => false,
    };
    assert!(is_told().await);
    let kind = GroupVersionKind::new("v1", "ConfigMap");
    member.want(BTreeSet::from([kind.clone()]));
    let listing = async {
        while member.watches.state(&kind) != WatchState::Listing {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_mins(1), listing).await.unwrap();
    assert!(is_told().await);
    watches.abort();
}
