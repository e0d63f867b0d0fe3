//! The end of a placement, and of a cluster with one.

use objects::Metadata;
use serde_json::json;

use super::stage::*;

/// A placement of one namespace on two clusters, which is available.
async fn placed() -> Stage {
    let stage = Stage::with_clusters(&["m1", "m2"]).await;
    stage.create_namespace("shop").await;
    let new = placement("crp", "shop", &json!({ "placementType": "PickAll" }));
    stage.send("POST", PLACEMENTS, &new).await;
    stage.settle().await;
    stage.agents().await;
    stage
}

async fn left(stage: &Stage) -> [usize; 5] {
    let mut counts = [0; 5];
    let paths = [PLACEMENTS, POLICIES, SNAPSHOTS, BINDINGS, ALL_WORKS];
    for (count, path) in counts.iter_mut().zip(paths) {
        *count = stage.list(path).await.len();
    }
    counts
}

/// Case F48: a placement stays, and says so, until nothing of it is left in any cluster.
#[tokio::test(start_paused = true)]
async fn placement_outlives_its_objects() {
    let stage = placed().await;
    let path = format!("{PLACEMENTS}/crp");
    stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(left(&stage).await, [1, 1, 1, 2, 2]);
    let stored = stage.get(&path).await;
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    let removing = conditions.last().unwrap();
    assert_eq!(removing["type"], "ClusterResourcePlacementRemoving");
    let message = "Something of the placement is left in 2 cluster(s)";
    assert_eq!(removing["message"], message);
    stage.agents().await;
    assert_eq!(left(&stage).await, [0; 5]);
}

/// Case F101: an object that something holds in a cluster is named while the placement stays, too, until it is gone.
#[tokio::test(start_paused = true)]
async fn held_object_is_named() {
    let stage = placed().await;
    let work = work_path("fleet-member-m2", "crp-work");
    let conditions = stage.get(&work).await["status"]["conditions"].clone();
    let held = "ConfigMap shop/ledger is held by example.com/settle";
    let mut removing = conditions.clone();
    let said = json!({ "type": "Removing", "status": "True", "reason": "HeldByFinalizers",
        "message": held, "lastTransitionTime": clock(), "observedGeneration": 1 });
    removing.as_array_mut().unwrap().push(said);
    let told = format!("; in m2: {held}");
    for (conditions, is_told) in [(removing, true), (conditions, false)] {
        let status = json!({ "status": { "conditions": conditions } });
        stage
            .send("PATCH", &format!("{work}/status"), &status)
            .await;
        stage.settle().await;
        let stored = stage.get(&format!("{PLACEMENTS}/crp")).await;
        let scheduled = stored["status"]["conditions"][0]["message"].as_str();
        assert_eq!(
            scheduled.unwrap().ends_with(&told),
            is_told,
            "{scheduled:?}"
        );
    }
}

/// A placement that was never scheduled goes at once.
#[tokio::test(start_paused = true)]
async fn unscheduled_placement_goes() {
    let stage = Stage::with_clusters(&[]).await;
    let new = placement("crp", "shop", &json!(null));
    stage.change("POST", PLACEMENTS, &new).await;
    let path = format!("{PLACEMENTS}/crp");
    stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(left(&stage).await, [0; 5]);
}

/// Case F49: a cluster that leaves keeps its objects: no Work goes before its agent has let go.
#[tokio::test(start_paused = true)]
async fn leaving_cluster_keeps_objects() {
    let stage = placed().await;
    stage
        .change("DELETE", &format!("{CLUSTERS}/m2"), &json!({}))
        .await;
    let works = stage.list(ALL_WORKS).await;
    assert_eq!(works.len(), 2);
    assert!(works.iter().all(|work| !work.is_deleting()));
    // As an agent does that leaves.
    let work = work_path("fleet-member-m2", "crp-work");
    let none = json!({ "metadata": { "finalizers": null } });
    stage.send("PATCH", &work, &none).await;
    stage.beat("m2", "False").await;
    stage.settle().await;
    assert_eq!(left(&stage).await, [1, 1, 1, 1, 1]);
    assert_eq!(stage.find(&format!("{CLUSTERS}/m2")).await, None);
}

/// A placement that goes while a cluster leaves does not take from that the objects that it is to keep.
#[tokio::test(start_paused = true)]
async fn both_may_go_together() {
    let stage = placed().await;
    stage
        .change("DELETE", &format!("{CLUSTERS}/m2"), &json!({}))
        .await;
    stage
        .change("DELETE", &format!("{PLACEMENTS}/crp"), &json!({}))
        .await;
    let kept = stage.get(&work_path("fleet-member-m2", "crp-work")).await;
    assert!(!kept.is_deleting());
    stage.agents().await;
    assert_eq!(left(&stage).await, [1, 1, 1, 1, 1]);
    let work = work_path("fleet-member-m2", "crp-work");
    let none = json!({ "metadata": { "finalizers": null } });
    stage.send("PATCH", &work, &none).await;
    stage.beat("m2", "False").await;
    stage.settle().await;
    assert_eq!(left(&stage).await, [0; 5]);
}

/// A binding that outlives its placement, and a Work its binding, are taken away.
#[tokio::test(start_paused = true)]
async fn orphans_are_swept() {
    let mut stage = placed().await;
    stage.kill().await;
    for path in [PLACEMENTS, BINDINGS] {
        for object in stage.list(path).await {
            let path = format!("{path}/{}", object.name());
            if path.starts_with(BINDINGS) && object["spec"]["targetCluster"] == "m2" {
                continue;
            }
            let none = json!({ "metadata": { "finalizers": null } });
            stage.send("PATCH", &path, &none).await;
            stage.send("DELETE", &path, &json!({})).await;
        }
    }
    stage.start(&[]).await;
    stage.agents().await;
    assert_eq!(left(&stage).await[3..], [0, 0]);
}

/// Case F50: the program may die at any write of a rollout, and of an end: a later one completes it.
#[tokio::test(start_paused = true)]
async fn changes_survive_any_death() {
    for allowed in 0.. {
        let mut stage = Stage::with_clusters(&["m1", "m2"]).await;
        place(&stage, &json!({ "placementType": "PickAll" })).await;
        stage.agents().await;
        stage.limit_writes(allowed);
        let edit = json!({ "data": { "key": "new" } });
        stage.change("PATCH", MAP, &edit).await;
        let is_whole = stage.outlive().await;
        assert_eq!(values(&stage).await, ["new"; 2], "{allowed}");

        stage.limit_writes(allowed);
        let path = format!("{PLACEMENTS}/crp-all");
        stage.change("DELETE", &path, &json!({})).await;
        stage.outlive().await;
        for path in [PLACEMENTS, POLICIES, SNAPSHOTS, BINDINGS, ALL_WORKS] {
            assert_eq!(stage.list(path).await.len(), 0, "{path} {allowed}");
        }
        if is_whole {
            return;
        }
    }
}
