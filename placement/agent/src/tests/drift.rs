//! Objects that somebody changes in the member after they were placed there.

use std::time::Duration;

use serde_json::{Value, json};

use super::stage::*;

const APPLIED: &str = "Applied True AllManifestsApplied";

async fn data(stage: &Stage) -> Value {
    stage.member.get(MAP).await["data"].clone()
}

fn details(work: &Value) -> Value {
    work["status"]["manifestConditions"][0]["driftDetails"].clone()
}

/// Case F71: where drifted objects are not to be written, one is left and named, nothing is asked or said again, not even
/// after a restart, and it is written once it is as it was or the manifest is another.
#[tokio::test(start_paused = true)]
async fn drifted_object_is_left() {
    let mut stage = Stage::with_map(&map()).await;
    stage
        .apply_map(json!({ "whenToApply": "IfNotDrifted" }))
        .await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    let drift = json!({ "data": { "key": "drift", "extra": "1" } });
    stage.disturb("PATCH", &drift).await;
    let drifted = [["/data/key", "drift", "value"].map(str::to_owned)];
    assert_eq!(stage.differences("drift").await, drifted);
    assert_eq!(stage.says().await.1, [["Applied False FoundDrifts"]]);
    stage.rests().await;
    stage.kill().await;
    stage.start(&[]).await;
    stage.rests().await;
    assert_eq!(data(&stage).await["key"], "drift");

    stage
        .disturb("PATCH", &json!({ "data": { "key": "value" } }))
        .await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    assert_eq!(stage.differences("drift").await, [[""; 3]; 0]);
    stage.disturb("PATCH", &drift).await;
    let mut other = map();
    other["data"]["key"] = json!("other");
    stage.place(&[other]).await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    assert_eq!(data(&stage).await, json!({ "key": "other", "extra": "1" }));
    // One that is deleted has not drifted.
    stage.disturb("DELETE", &json!({})).await;
    assert_eq!(data(&stage).await, json!({ "key": "other" }));
}

/// Case F71: where everything is compared, an addition is named, and keeps the date at which it was seen first; the fields
/// of the manifest are repaired meanwhile.
#[tokio::test(start_paused = true)]
async fn additions_are_told() {
    let stage = Stage::with_map(&map()).await;
    stage
        .apply_map(json!({ "comparisonOption": "FullComparison" }))
        .await;
    assert_eq!(stage.differences("drift").await, [[""; 3]; 0]);
    let change = json!({ "data": { "key": "drift", "extra": "1" },
        "metadata": { "labels": { "app": "x", "a.kubernetes.io/b": "c" } } });
    stage.disturb("PATCH", &change).await;
    assert_eq!(data(&stage).await, json!({ "key": "value", "extra": "1" }));
    let added = [
        ["/data/extra", "1", ""].map(str::to_owned),
        ["/metadata/labels/app", "x", ""].map(str::to_owned),
    ];
    assert_eq!(stage.differences("drift").await, added);
    assert_eq!(stage.says().await.0[0], APPLIED);
    let first = details(&stage.hub.get(WORK).await);
    stage.rests().await;
    stage
        .disturb("PATCH", &json!({ "metadata": { "labels": null } }))
        .await;
    assert_eq!(stage.differences("drift").await, added[..1]);
    let second = details(&stage.hub.get(WORK).await);
    let seen_first = "firstDriftedObservedTime";
    assert_eq!(first[seen_first], second[seen_first]);
    assert_ne!(first["observationTime"], second["observationTime"]);
    stage
        .disturb("PATCH", &json!({ "data": { "extra": null } }))
        .await;
    assert_eq!(details(&stage.hub.get(WORK).await), Value::Null);
    stage.rests().await;
}

/// Case F71: with both, an addition keeps the object from being written.
#[tokio::test(start_paused = true)]
async fn added_field_is_drift() {
    let stage = Stage::with_map(&map()).await;
    stage
        .apply_map(json!({ "comparisonOption": "FullComparison", "whenToApply": "IfNotDrifted" }))
        .await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    stage
        .disturb("PATCH", &json!({ "data": { "extra": "1" } }))
        .await;
    assert_eq!(stage.says().await.1, [["Applied False FoundDrifts"]]);
    stage
        .apply_map(json!({ "whenToApply": "IfNotDrifted" }))
        .await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    assert_eq!(stage.differences("drift").await, [[""; 3]; 0]);
}

/// Case F75: a field that somebody else has applied otherwise is taken from him only where that is asked for; until then the
/// Work names him.
#[tokio::test(start_paused = true)]
async fn conflict_is_told() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let mut theirs = map();
    theirs["data"]["key"] = json!("theirs");
    let apply = format!("{MAP}?fieldManager=somebody");
    stage.member.send("APPLY", &apply, &theirs).await;
    stage.apply_map(json!({ "type": "ServerSideApply" })).await;
    assert_eq!(
        stage.says().await.1,
        [["Applied False ManifestApplyFailed"]]
    );
    let work = stage.hub.get(WORK).await;
    let told = &work["status"]["manifestConditions"][0]["conditions"][0]["message"];
    assert!(told.as_str().unwrap().contains("somebody"), "{told}");
    assert_eq!(data(&stage).await["key"], "theirs");
    // It may be otherwise by now, though nothing shows that.
    stage.asked();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let mut tries = stage.asked();
    tries.retain(|call| call.starts_with("PATCH"));
    assert!((3..=4).contains(&tries.len()), "{tries:?}");
    stage.member.send("APPLY", &apply, &map()).await;
    stage.settle().await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    stage
        .member
        .send("APPLY", &format!("{apply}&force=true"), &theirs)
        .await;
    stage.settle().await;
    assert_eq!(
        stage.says().await.1,
        [["Applied False ManifestApplyFailed"]]
    );
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    stage.apply_map(forced).await;
    assert_eq!(stage.says().await.0[0], APPLIED);
    assert_eq!(data(&stage).await["key"], "value");
}

fn shirts(fields: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": fields } } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "shirts.example.com" },
        "spec": { "group": "example.com", "scope": "Cluster",
            "names": { "plural": "shirts", "singular": "shirt", "kind": "Shirt" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }] } })
}

/// Case F71: a field that the member did not know when it was written is no drift once it knows it, but is written then.
#[tokio::test(start_paused = true)]
async fn new_field_is_no_drift() {
    let size = json!({ "type": "integer" });
    for is_restarted in [false, true] {
        let mut stage = Stage::joined().await;
        stage.member.install([shirts(&json!({ "size": size }))]);
        let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt",
            "metadata": { "name": "one" }, "spec": { "size": 1, "color": "red" } });
        let mut work = work(&[shirt]);
        work["spec"]["applyStrategy"] = json!({ "whenToApply": "IfNotDrifted" });
        stage.hub.send("POST", WORKS, &work).await;
        stage.settle().await;
        assert_eq!(stage.says().await.0[0], APPLIED);
        let path = "/apis/example.com/v1/shirts/one";
        assert_eq!(stage.member.get(path).await["spec"], json!({ "size": 1 }));
        if is_restarted {
            stage.kill().await;
        }
        let known = shirts(&json!({ "size": size, "color": { "type": "string" } }));
        let definition =
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shirts.example.com";
        let edit = json!({ "spec": known["spec"] });
        stage.member.send("PATCH", definition, &edit).await;
        if is_restarted {
            stage.start(&[]).await;
        }
        tokio::time::sleep(Duration::from_mins(2)).await;
        let spec = stage.member.get(path).await["spec"].clone();
        assert_eq!(spec, json!({ "size": 1, "color": "red" }));
        assert_eq!(stage.says().await.0[0], APPLIED);
        assert_eq!(stage.differences("drift").await, [[""; 3]; 0]);
    }
}
