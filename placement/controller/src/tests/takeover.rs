//! A fleet that changes hands: the objects of a running KubeFleet are gone on with, and nothing moves.

use fleet_api::names::{PARENT_BINDING, PARENT_PLACEMENT, RESOURCE_HASH};
use objects::{Metadata, metadata};
use placement_rules::hash::of_objects;
use serde_json::{Value, json};

use super::stage::*;

/// Returns a recorded object as another API stores it: of its first generation, and of an owner that is there.
fn moved(mut object: Value, owner: &str) -> Value {
    for field in ["uid", "resourceVersion", "generation", "managedFields"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    if let Some(uid) = object.pointer_mut("/metadata/ownerReferences/0/uid") {
        *uid = json!(owner);
    }
    observe_first_generation(&mut object);
    object
}

fn observe_first_generation(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(generation) = fields.get_mut("observedGeneration") {
                *generation = json!(1);
            }
            fields.values_mut().for_each(observe_first_generation);
        }
        Value::Array(items) => items.iter_mut().for_each(observe_first_generation),
        _ => {}
    }
}

/// A hub with the recorded `crp-all` and all that KubeFleet made of it, whose controller is gone.
async fn left_by_kubefleet() -> Stage {
    let clusters = ["kind-cluster-1", "kind-cluster-2", "kind-cluster-3"];
    let mut stage = Stage::with_clusters(&clusters).await;
    stage.kill().await;
    stage.create_namespace("application-1").await;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "key": "value" },
        "metadata": { "name": "app-config-1", "namespace": "application-1" } });
    stage.create(&map).await;
    let placement = moved(recorded!("crp-all-available"), "");
    let placement = stage.create(&placement).await;
    let owner = placement.uid();
    for snapshot in [
        recorded!("crp-all-policysnapshot-0"),
        recorded!("crp-all-resourcesnapshot-0"),
    ] {
        stage.create(&moved(snapshot, owner)).await;
    }
    for binding in recorded!("crp-all-bindings")["items"].as_array().unwrap() {
        stage.create(&moved(binding.clone(), owner)).await;
        let mut work = moved(recorded!("crp-all-work"), owner);
        let cluster = binding["spec"]["targetCluster"].as_str().unwrap();
        metadata::set(
            &mut work,
            "namespace",
            format!("fleet-member-{cluster}").into(),
        );
        metadata::edit(&mut work, "labels", |labels| {
            labels.insert(PARENT_BINDING.to_owned(), binding.name().into());
        });
        stage.create(&work).await;
    }
    stage
}

/// Case F52.
#[tokio::test(start_paused = true)]
async fn takeover_moves_nothing() {
    let mut stage = left_by_kubefleet().await;
    stage.writes();
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Returns a recorded snapshot of `crp-all` as that of `crp-over`.
fn of_overridden(mut snapshot: Value) -> Value {
    let name = snapshot.name().replace("crp-all", "crp-over");
    metadata::set(&mut snapshot, "name", name.into());
    metadata::edit(&mut snapshot, "labels", |labels| {
        labels.insert(PARENT_PLACEMENT.to_owned(), "crp-over".into());
    });
    snapshot["metadata"]["ownerReferences"][0]["name"] = json!("crp-over");
    snapshot
}

/// Case F36: the same, of a placement with overrides.
#[tokio::test(start_paused = true)]
async fn overrides_are_gone_on_with() {
    let mut stage = recorded_fleet().await;
    stage.kill().await;
    let objects = fill_overridden(&stage).await;
    for [one, snapshot] in [
        [
            recorded!("crp-over-clusterresourceoverride"),
            recorded!("crp-over-clusterresourceoverridesnapshot"),
        ],
        [
            recorded!("crp-over-resourceoverride"),
            recorded!("crp-over-resourceoverridesnapshot"),
        ],
    ] {
        let stored = stage.create(&moved(one, "")).await;
        stage.create(&moved(snapshot, stored.uid())).await;
    }
    let placement = stage
        .create(&moved(recorded!("crp-over-available"), ""))
        .await;
    let mut snapshot = of_overridden(recorded!("crp-all-resourcesnapshot-0"));
    snapshot["spec"] = json!({ "selectedResources": objects });
    snapshot["metadata"]["annotations"][RESOURCE_HASH] = json!(of_objects(objects).unwrap());
    let policy = of_overridden(recorded!("crp-all-policysnapshot-0"));
    let bindings = recorded!("crp-over-bindings")["items"].clone();
    let works = recorded!("crp-over-works")["items"].clone();
    let lists = [bindings, works]
        .into_iter()
        .flat_map(|list| list.as_array().cloned().unwrap());
    for object in [policy, snapshot].into_iter().chain(lists) {
        stage.create(&moved(object, placement.uid())).await;
    }
    stage.writes();
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// And then it goes on: a change is the next snapshot, and goes out in waves.
#[tokio::test(start_paused = true)]
async fn changes_go_on() {
    let mut stage = left_by_kubefleet().await;
    stage.start(&[]).await;
    let path = "/api/v1/namespaces/application-1/configmaps/app-config-1";
    let edit = json!({ "data": { "key": "new" } });
    stage.change("PATCH", path, &edit).await;
    stage.agents().await;
    let snapshots = stage.list(SNAPSHOTS).await;
    let names: Vec<_> = snapshots.iter().map(Metadata::name).collect();
    assert_eq!(names, ["crp-all-0-snapshot", "crp-all-1-snapshot"]);
    for work in stage.list(ALL_WORKS).await {
        let value = &work["spec"]["workload"]["manifests"][1]["data"]["key"];
        assert_eq!(*value, "new", "{}", work.namespace());
    }
}
