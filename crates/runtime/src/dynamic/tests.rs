use embedded_apiserver::ApiServer;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;

struct Stage {
    api: TestApi,
    watches: DynamicWatches,
    seen: mpsc::UnboundedReceiver<String>,
}

/// Leaves out one Secret, and keeps no object of one name.
fn selected(kind: &ServedKind) -> Selected {
    let sent = match kind.resource.kind.as_str() {
        "Secret" => Config::default().fields("metadata.name!=left-out"),
        _ => Config::default(),
    };
    Selected {
        keeps: |object| object.name.as_deref() != Some("unkept"),
        ..sent.into()
    }
}

/// Watches an empty API that has a namespace, and notes the events of the watches.
fn stage() -> Stage {
    let api = TestApi::of(ApiServer::new());
    let (sender, seen) = mpsc::unbounded_channel();
    let (watches, running) = DynamicWatches::new(api.client(), selected, move |kind, event| {
        let kind = &kind.kind;
        let shown = match event {
            DynamicEvent::Listed => vec![format!("{kind} listed")],
            DynamicEvent::NotServed => vec![format!("{kind} not served")],
            DynamicEvent::Forbidden => vec![format!("{kind} forbidden")],
            DynamicEvent::Failing => vec![format!("{kind} failing")],
            DynamicEvent::Unkept(key, Some(_)) => vec![format!("{kind} {key} not kept")],
            DynamicEvent::Unkept(key, None) => vec![format!("{kind} {key} gone, not kept")],
            DynamicEvent::Changed(transitions) => transitions
                .iter()
                .map(|Transition { key, old, new }| match (old, new) {
                    (None, _) => format!("{kind} {key} new"),
                    (_, None) => format!("{kind} {key} gone"),
                    _ => format!("{kind} {key} changed"),
                })
                .collect(),
        };
        for text in shown {
            sender.send(text).unwrap();
        }
    });
    tokio::spawn(running);
    Stage { api, watches, seen }
}

fn kinds(kinds: &[(&str, &str)]) -> BTreeSet<GroupVersionKind> {
    let kinds = kinds.iter();
    kinds
        .map(|(version, kind)| GroupVersionKind::new(version, kind))
        .collect()
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.test.io" },
        "spec": { "group": "test.io", "scope": "Cluster",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } }] },
    })
}

impl Stage {
    async fn next(&mut self) -> String {
        let waited = tokio::time::timeout(Duration::from_mins(2), self.seen.recv());
        waited.await.unwrap().unwrap()
    }

    /// Creates an object in the namespace `default`.
    async fn create(&self, kind: &str, name: &str) {
        let metadata = json!({ "name": name, "namespace": "default" });
        let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata,
            "data": { "a": "Yg==" } });
        self.api.create(&object).await;
    }
}

/// Kinds are watched from the moment they are wanted until they are not.
#[tokio::test(start_paused = true)]
async fn wanted_kinds_are_watched() {
    let mut stage = stage();
    let (maps, map) = (
        GroupVersionKind::new("v1", "ConfigMap"),
        Key::new("default", "map"),
    );
    stage.create("ConfigMap", "map").await;
    assert_eq!(stage.watches.state(&maps), WatchState::Off);

    stage.watches.want(kinds(&[("v1", "ConfigMap")]));
    assert_eq!(stage.next().await, "ConfigMap default/map new");
    assert_eq!(stage.next().await, "ConfigMap listed");
    assert_eq!(stage.watches.state(&maps), WatchState::Complete);
    let object = stage.watches.get(&maps, &map).unwrap();
    assert_eq!(object.value()["data"], json!({ "a": "Yg==" }));
    assert!(stage.watches.served(&maps).unwrap().namespaced);

    stage
        .watches
        .want(kinds(&[("v1", "ConfigMap"), ("v1", "Secret")]));
    assert_eq!(stage.next().await, "Secret listed");
    stage.create("ConfigMap", "later").await;
    assert_eq!(stage.next().await, "ConfigMap default/later new");

    stage.watches.want(kinds(&[("v1", "Secret")]));
    for name in ["left-out", "s"] {
        stage.create("Secret", name).await;
    }
    assert_eq!(stage.next().await, "Secret default/s new");
    assert_eq!(stage.watches.state(&maps), WatchState::Off);
    assert_eq!(stage.watches.get(&maps, &map), None);

    stage.watches.want(kinds(&[("v1", "ConfigMap")]));
    let mut again = [stage.next().await, stage.next().await];
    again.sort();
    assert_eq!(
        again,
        ["ConfigMap default/later new", "ConfigMap default/map new"]
    );
    assert_eq!(stage.next().await, "ConfigMap listed");
}

/// Of an object that is not kept only the changes are told.
#[tokio::test(start_paused = true)]
async fn unkept_objects_are_told() {
    let mut stage = stage();
    stage.create("ConfigMap", "unkept").await;
    stage.watches.want(kinds(&[("v1", "ConfigMap")]));
    assert_eq!(stage.next().await, "ConfigMap listed");
    let path = "/api/v1/namespaces/default/configmaps/unkept";
    for (method, change, told) in [
        ("PATCH", json!({ "data": { "a": "b" } }), "not kept"),
        ("DELETE", json!({}), "gone, not kept"),
    ] {
        stage.api.send(method, path, &change).await;
        let expected = format!("ConfigMap default/unkept {told}");
        assert_eq!(stage.next().await, expected);
    }
    let maps = GroupVersionKind::new("v1", "ConfigMap");
    assert!(stage.watches.objects(&maps).is_empty());
}

/// A kind that is installed later is found.
#[tokio::test(start_paused = true)]
async fn late_kind_is_found() {
    let mut stage = stage();
    let widget = GroupVersionKind::new("test.io/v1", "Widget");
    stage.watches.want([widget.clone()].into());
    assert_eq!(stage.next().await, "Widget not served");
    assert_eq!(stage.watches.state(&widget), WatchState::NotServed);
    stage.api.install([widgets()]);
    loop {
        match &*stage.next().await {
            "Widget listed" => break,
            "Widget not served" => {}
            other => panic!("{other}"),
        }
    }
    assert!(!stage.watches.served(&widget).unwrap().namespaced);
}
