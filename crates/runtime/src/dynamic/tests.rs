use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;

struct Stage {
    server: ApiServer,
    watches: DynamicWatches,
    seen: mpsc::UnboundedReceiver<String>,
}

/// Leaves out one Secret.
fn selected(kind: &ServedKind) -> Config {
    match kind.resource.kind.as_str() {
        "Secret" => Config::default().fields("metadata.name!=left-out"),
        _ => Config::default(),
    }
}

/// Watches an empty API that has a namespace, and notes what the watches show.
fn stage() -> Stage {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let (sender, seen) = mpsc::unbounded_channel();
    let (watches, running) = DynamicWatches::new(client, selected, move |kind, event| {
        let kind = &kind.kind;
        let shown = match event {
            DynamicEvent::Listed => vec![format!("{kind} listed")],
            DynamicEvent::NotServed => vec![format!("{kind} not served")],
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
    Stage {
        server,
        watches,
        seen,
    }
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

    async fn create_map(&self, name: &str) {
        let maps: Api<ConfigMap> =
            Api::namespaced(Client::new(self.server.service(), "default"), "default");
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some([("a".to_owned(), "b".to_owned())].into()),
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map).await.unwrap();
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
    stage.create_map("map").await;
    assert_eq!(stage.watches.state(&maps), WatchState::Off);

    stage.watches.want(kinds(&[("v1", "ConfigMap")]));
    assert_eq!(stage.next().await, "ConfigMap default/map new");
    assert_eq!(stage.next().await, "ConfigMap listed");
    assert_eq!(stage.watches.state(&maps), WatchState::Complete);
    let object = stage.watches.get(&maps, &map).unwrap();
    assert_eq!(object.value()["data"], json!({ "a": "b" }));
    assert!(stage.watches.served(&maps).unwrap().namespaced);

    stage
        .watches
        .want(kinds(&[("v1", "ConfigMap"), ("v1", "Secret")]));
    assert_eq!(stage.next().await, "Secret listed");
    stage.create_map("later").await;
    assert_eq!(stage.next().await, "ConfigMap default/later new");

    stage.watches.want(kinds(&[("v1", "Secret")]));
    let secrets: Api<Secret> =
        Api::namespaced(Client::new(stage.server.service(), "default"), "default");
    for name in ["left-out", "s"] {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
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

/// A kind that is installed later is found.
#[tokio::test(start_paused = true)]
async fn late_kind_is_found() {
    let mut stage = stage();
    let widget = GroupVersionKind::new("test.io/v1", "Widget");
    stage.watches.want([widget.clone()].into());
    assert_eq!(stage.next().await, "Widget not served");
    assert_eq!(stage.watches.state(&widget), WatchState::NotServed);
    stage.server.install(&widgets()).unwrap();
    loop {
        match &*stage.next().await {
            "Widget listed" => break,
            "Widget not served" => {}
            other => panic!("{other}"),
        }
    }
    assert!(!stage.watches.served(&widget).unwrap().namespaced);
    assert!(
        stage
            .watches
            .api(&widget, &Key::cluster_scoped("a"))
            .is_some()
    );
}
