//! The selection of a placement, and the snapshots of that and of its policy.

use std::time::Duration;

use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const MAPS: &str = "/api/v1/namespaces/application-1/configmaps";

fn map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "application-1" }, "data": { "key": value } })
}

/// A hub with the namespace that the recorded `crp-all` selects.
async fn hub() -> Stage {
    let stage = Stage::with_clusters(&[]).await;
    stage.create_namespace("application-1").await;
    stage.create(&map("app-config-1", "value")).await;
    stage
}

/// A hub with the recorded `crp-all`.
async fn placed() -> Stage {
    let stage = hub().await;
    let new = placement(
        "crp-all",
        "application-1",
        &json!({ "placementType": "PickAll" }),
    );
    stage.change("POST", PLACEMENTS, &new).await;
    stage
}

async fn names(stage: &Stage, path: &str) -> Vec<String> {
    let items = stage.list(path).await;
    items.iter().map(|item| item.name().to_owned()).collect()
}

fn owned(object: Value) -> Value {
    let mut object = timeless(object);
    object["metadata"]["ownerReferences"][0]["uid"] = json!("");
    object["status"] = json!(null);
    // KubeFleet's, which only its own debounce reads.
    let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("kubernetes-fleet.io/next-resource-snapshot-candidate-detection-time");
    object
}

/// Case F14: the first snapshots are those that a running KubeFleet made, name, hash and content.
#[tokio::test(start_paused = true)]
async fn first_snapshots_are_recorded_ones() {
    let stage = placed().await;
    for (path, recorded) in [
        (
            format!("{SNAPSHOTS}/crp-all-0-snapshot"),
            recorded!("crp-all-resourcesnapshot-0"),
        ),
        (
            format!("{POLICIES}/crp-all-0"),
            recorded!("crp-all-policysnapshot-0"),
        ),
    ] {
        assert_eq!(owned(stage.get(&path).await), owned(recorded), "{path}");
    }
    let placement = stage.get(&format!("{PLACEMENTS}/crp-all")).await;
    let finalizers = json!([
        "kubernetes-fleet.io/crp-cleanup",
        "kubernetes-fleet.io/scheduler-cleanup"
    ]);
    assert_eq!(placement["metadata"]["finalizers"], finalizers);
}

/// Case F15: edits within a second are one snapshot, and one that changes nothing is none; the label moves to the
/// latest.
#[tokio::test(start_paused = true)]
async fn edits_make_one_snapshot() {
    let stage = placed().await;
    let path = format!("{MAPS}/app-config-1");
    for value in ["a", "b", "c"] {
        let edit = json!({ "data": { "key": value } });
        stage.send("PATCH", &path, &edit).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stage.settle().await;
    let expected = ["crp-all-0-snapshot", "crp-all-1-snapshot"];
    assert_eq!(names(&stage, SNAPSHOTS).await, expected);
    let snapshots = stage.list(SNAPSHOTS).await;
    let latest = "kubernetes-fleet.io/is-latest-snapshot";
    let labels: Vec<_> = snapshots.iter().map(|one| one.label(latest)).collect();
    assert_eq!(labels, [Some("false"), Some("true")]);
    let content = &snapshots[1]["spec"]["selectedResources"][1]["data"];
    assert_eq!(*content, json!({ "key": "c" }));

    let touch = json!({ "metadata": { "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{}" } } });
    assert_eq!(stage.change("PATCH", &path, &touch).await, [""; 0]);
}

/// Case F13: a part that is lost is made again, from the objects that are selected still.
#[tokio::test(start_paused = true)]
async fn lost_part_is_made_again() {
    let stage = hub().await;
    for name in ["big-1", "big-2"] {
        stage.create(&map(name, &"x".repeat(600 * 1024))).await;
    }
    let new = placement("crp", "application-1", &json!(null));
    stage.change("POST", PLACEMENTS, &new).await;
    assert_eq!(
        names(&stage, SNAPSHOTS).await,
        ["crp-0-0", "crp-0-snapshot"]
    );
    let path = format!("{SNAPSHOTS}/crp-0-0");
    let before = timeless(stage.get(&path).await);
    let wrote = stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(wrote, [format!("POST {SNAPSHOTS}")]);
    assert_eq!(timeless(stage.get(&path).await), before);
}

/// Case F7: an object that appears in a selected namespace, or leaves it, is in the next snapshot; changes elsewhere are not.
#[tokio::test(start_paused = true)]
async fn namespace_is_followed() {
    let stage = placed().await;
    let selected = async |snapshot: &str| {
        let snapshot = stage.get(&format!("{SNAPSHOTS}/{snapshot}")).await;
        let selected = snapshot["spec"]["selectedResources"].as_array();
        let names = selected.unwrap().iter().map(|one| one.name().to_owned());
        names.collect::<Vec<_>>()
    };
    stage.change("POST", MAPS, &map("second", "x")).await;
    let all = ["application-1", "app-config-1", "second"];
    assert_eq!(selected("crp-all-1-snapshot").await, all);
    let path = format!("{MAPS}/app-config-1");
    stage.change("DELETE", &path, &json!({})).await;
    let left = ["application-1", "second"];
    assert_eq!(selected("crp-all-2-snapshot").await, left);
    let elsewhere = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "c", "namespace": "default" } });
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(stage.change("POST", maps, &elsewhere).await, [""; 0]);
}
