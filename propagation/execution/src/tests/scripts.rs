//! Kinds that scripts of users interpret, in members.

use karmada_api::work::ManifestStatus;
use karmada_runtime::events::EventReason;
use kube::core::{ApiResource, DynamicObject};

use super::*;

/// The scripts of a customization of `ConfigMap`s, by the fields that they stand in.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "retention",
        "function Retain(desired, observed)
          desired.data.counted = observed.data.counted
          return desired
        end",
    ),
    (
        "statusReflection",
        "function ReflectStatus(obj)
          return { greeting = obj.data.greeting, seen = os.date('!%Y-%m-%dT%H:%M:%SZ', os.time() + math.random(1000)) }
        end",
    ),
    (
        "healthInterpretation",
        "function InterpretHealth(obj) return obj.data.greeting == 'hello' end",
    ),
];

impl Stage {
    /// Creates a customization of `ConfigMap`s, or changes it.
    async fn customize(&self, scripts: &[(&str, &str)]) {
        self.customize_kind(("v1", "ConfigMap"), scripts).await;
    }

    /// Creates the customization `maps` for a kind, or changes it.
    pub(super) async fn customize_kind(&self, kind: (&str, &str), scripts: &[(&str, &str)]) {
        let scripts = scripts.iter();
        let scripts: serde_json::Map<_, _> = scripts
            .map(|(field, source)| ((*field).to_owned(), json!({ "luaScript": source })))
            .collect();
        let object = json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterCustomization",
            "metadata": { "name": "maps" },
            "spec": {
                "target": { "apiVersion": kind.0, "kind": kind.1 },
                "customizations": scripts,
            },
        });
        let parameters = PatchParams::apply("user").force();
        let patch = Patch::Apply(object);
        self.customizations()
            .patch("maps", &parameters, &patch)
            .await
            .unwrap();
    }

    pub(super) fn customizations(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<karmada_api::ResourceInterpreterCustomization>(&());
        Api::all_with(self.api.user(), &kind)
    }

    /// Waits until the status of the object of a Work is so, and returns it.
    pub(super) async fn reported(
        &self,
        name: &str,
        is_so: impl Fn(&ManifestStatus) -> bool,
    ) -> ManifestStatus {
        let work = until(self.works("m1"), name, |work| {
            work.and_then(first_status).is_some_and(&is_so)
        });
        first_status(&work.await.unwrap()).unwrap().clone()
    }

    /// Returns the notes of a Work's Events with this reason.
    async fn notes(&self, reason: Reason) -> Vec<String> {
        let events = self.api.events().await.into_iter();
        let events = events.filter(|event| event.reason.as_deref() == Some(reason.as_str()));
        events.filter_map(|event| event.note).collect()
    }

    /// Waits for an Event with this reason, and returns its note.
    pub(super) async fn told(&self, reason: Reason) -> String {
        let told = async {
            loop {
                if let Some(note) = self.notes(reason).await.pop() {
                    return note;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), told).await.unwrap()
    }
}

fn first_status(work: &Work) -> Option<&ManifestStatus> {
    work.status.as_ref()?.manifest_statuses.first()
}

pub(super) fn is_unknown(object: &ManifestStatus) -> bool {
    object.health.as_deref() == Some("Unknown")
}

/// Waits until a script or webhook has put an object right, but for the field that it keeps.
pub(super) async fn until_right(member: &ServedApi) {
    let right = until(maps(member), "a", |map| {
        map.is_some_and(|map| data(map) == json!({ "greeting": "hello", "counted": "7" }))
    });
    right.await;
}

pub(super) async fn set(member: &ServedApi, name: &str, data: Value) {
    let patch = Patch::Merge(json!({ "data": data }));
    let parameters = PatchParams {
        field_manager: Some("counter".to_owned()),
        ..PatchParams::default()
    };
    maps(member).patch(name, &parameters, &patch).await.unwrap();
}

fn data(map: &ConfigMap) -> Value {
    json!(map.data)
}

pub(super) async fn joined() -> (ServedApi, Stage) {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    (member, stage)
}

/// Case I65: scripts choose the reported part of an object's status, its health, and the fields that it keeps.
#[tokio::test]
async fn scripts_interpret_objects() {
    let (member, stage) = joined().await;
    stage.customize(&SCRIPTS).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let reported = stage.reported("a", |one| one.status.is_some()).await;
    assert_eq!(reported.status.unwrap()["greeting"], "hello");
    assert_eq!(reported.health.as_deref(), Some("Healthy"));

    // A field that the script keeps stays; another is put right.
    set(&member, "a", json!({ "counted": "7" })).await;
    set(&member, "a", json!({ "greeting": "bye", "other": "x" })).await;
    until_right(&member).await;
}

/// Case I77: a field that a script keeps is no drift, though another has written it: neither at rest nor after a restart
/// is anything written. Case I78: a time in a report settles.
#[tokio::test]
async fn retained_fields_settle() {
    let (member, stage) = joined().await;
    stage.customize(&SCRIPTS).await;
    stage.dispatch("m1", "a", json!({})).await;
    let program = stage.start(&[]);
    stage.reported("a", |one| one.status.is_some()).await;
    set(&member, "a", json!({ "counted": "7" })).await;
    drop(program);
    let versions = async || {
        let map = map(&member, "a").await.unwrap();
        let work = stage.works("m1").get("a").await.unwrap();
        (
            map.metadata.resource_version,
            work.metadata.resource_version,
        )
    };
    let before = versions().await;
    let _program = stage.start(&[]);
    // A second Work shows when the first has been looked at.
    stage.dispatch("m1", "b", json!({})).await;
    stage.reported("b", |one| one.status.is_some()).await;
    assert_eq!(versions().await, before);
}

/// Case I68: a changed customization is applied to the objects that are there, and so is its end.
#[tokio::test]
async fn changed_script_is_applied() {
    let (_member, stage) = joined().await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let is =
        |health: &'static str| move |one: &ManifestStatus| one.health.as_deref() == Some(health);
    stage.reported("a", is("Healthy")).await;
    let ill = (
        "healthInterpretation",
        "function InterpretHealth() return false end",
    );
    stage.customize(&[ill]).await;
    stage.reported("a", is("Unhealthy")).await;
    let well = (
        "healthInterpretation",
        "function InterpretHealth() return true end",
    );
    stage.customize(&[well]).await;
    stage.reported("a", is("Healthy")).await;
    stage.customize(&[ill]).await;
    stage.reported("a", is("Unhealthy")).await;
    let parameters = DeleteParams::default();
    stage
        .customizations()
        .delete("maps", &parameters)
        .await
        .unwrap();
    stage.reported("a", is("Healthy")).await;
}

/// Case I69: where a script fails, the last report stays, or the health is unknown, and the Work says so once.
#[tokio::test]
async fn failed_report_is_told() {
    let (_member, stage) = joined().await;
    let timeless = "function ReflectStatus(obj) return { greeting = obj.data.greeting } end";
    let timeless = ("statusReflection", timeless);
    stage.customize(&[timeless]).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let before = stage.reported("a", |one| one.status.is_some()).await;
    let health = "function InterpretHealth() error('no', 0) end";
    stage.customize(&[("healthInterpretation", health)]).await;
    stage.reported("a", is_unknown).await;
    let why = "failed, err: no (ResourceInterpreterCustomization maps).";
    assert_eq!(
        stage.told(Reason::InterpretHealthFailed).await,
        format!("Interpret health of object(ConfigMap/shop/a) {why}")
    );
    stage.customize(&[timeless]).await;
    stage.reported("a", |one| *one == before).await;
    let status = "function ReflectStatus() error('no', 0) end";
    stage.customize(&[("statusReflection", status)]).await;
    assert_eq!(
        stage.told(Reason::ReflectStatusFailed).await,
        format!("Reflect status for object(ConfigMap/shop/a) {why}")
    );
    stage.reported("a", |one| *one == before).await;
    assert_eq!(stage.notes(Reason::ReflectStatusFailed).await.len(), 1);
}

/// Case I69: where the script fails that chooses the fields which an object keeps, the member is not written.
#[tokio::test]
async fn failed_retention_writes_nothing() {
    let (member, stage) = joined().await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let script = ("retention", "function Retain() error('no', 0) end");
    stage.customize(&[script]).await;
    stage.condition("m1", "a", APPLIED, FALSE).await;
    set(&member, "a", json!({ "greeting": "bye" })).await;
    let failed = stage.condition("m1", "a", APPLIED, FALSE).await;
    let why = "ConfigMap shop/a: no (ResourceInterpreterCustomization maps)";
    assert!(failed.message.ends_with(why), "{}", failed.message);
    assert_eq!(data(&map(&member, "a").await.unwrap())["greeting"], "bye");
    let parameters = DeleteParams::default();
    stage
        .customizations()
        .delete("maps", &parameters)
        .await
        .unwrap();
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// Case I74: a script that never ends delays the objects of no other kind.
#[tokio::test]
async fn endless_script_delays_no_other_kind() {
    let (member, stage) = joined().await;
    let endless = (
        "statusReflection",
        "function ReflectStatus() while true do end end",
    );
    stage.customize(&[endless]).await;
    for name in ["a", "b", "c"] {
        stage.dispatch("m1", name, json!({})).await;
    }
    let secret = json!({ "workload": { "manifests": [{
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "keys", "namespace": "shop",
            "labels": { "karmada.io/managed": "true" },
            "annotations": { "work.karmada.io/namespace": "karmada-es-m1",
                "work.karmada.io/name": "keys" } },
    }] } });
    stage.dispatch("m1", "keys", secret).await;
    let _program = stage.start(&[]);
    let why = "ConfigMap/shop/";
    assert!(stage.told(Reason::ReflectStatusFailed).await.contains(why));
    stage.condition("m1", "keys", APPLIED, TRUE).await;
    let applied = stage.condition("m1", "a", APPLIED, TRUE).await;
    assert_eq!(applied.reason, "AppliedSuccessful");
    assert!(map(&member, "a").await.is_some());
}

/// Case I67: until every customization is known nothing is written.
#[tokio::test]
async fn nothing_is_written_unlisted() {
    let (member, stage) = joined().await;
    stage.customize(&SCRIPTS).await;
    let unlisted = Fault::InternalError.kind("resourceinterpretercustomizations");
    let unlisted = stage
        .api
        .server
        .faults()
        .inject(unlisted.verbs([Verb::List]));
    stage.dispatch("m1", "a", json!({})).await;
    let program = stage.start(&[]);
    counts(&program, "suspended_works 0").await;
    assert!(map(&member, "a").await.is_none());
    stage.api.server.faults().remove(unlisted);
    let reported = stage.reported("a", |one| one.status.is_some()).await;
    assert_eq!(reported.status.unwrap()["greeting"], "hello");
}
