//! A placement on its way to its clusters and back.

use std::time::Duration;

use serde_json::{Value, json};

use super::stage::*;

async fn status(stage: &Stage) -> Value {
    let placement = stage.get(&format!("{PLACEMENTS}/crp-all")).await;
    placement["status"].clone()
}

/// Returns a status without its times, in which a running KubeFleet and a test are alike.
fn alike(mut status: Value) -> Value {
    strip_generations(&mut status);
    timeless(status)
}

fn strip_generations(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("observedGeneration");
            fields.values_mut().for_each(strip_generations);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_generations),
        _ => {}
    }
}

/// Case F46: the seed's own example: a namespace on every cluster, with the status that a running KubeFleet had in the
/// end.
#[tokio::test(start_paused = true)]
async fn recorded_status_is_reached() {
    let clusters = ["kind-cluster-1", "kind-cluster-2", "kind-cluster-3"];
    let mut stage = Stage::with_clusters(&clusters).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    let waiting = conditions(&status(&stage).await);
    assert_eq!(
        waiting,
        [
            "Scheduled True SchedulingPolicyFulfilled",
            "RolloutStarted True RolloutStarted",
            "Overridden True NoOverrideSpecified",
            "WorkSynchronized True WorkSynchronized",
            "Applied Unknown ApplyPending"
        ]
    );
    stage.agents().await;
    let recorded = recorded!("crp-all-available")["status"].clone();
    assert_eq!(alike(status(&stage).await), alike(recorded));
    let events = stage.events().await.into_iter();
    let mut reasons: Vec<_> = events.filter_map(|event| event.reason).collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "PlacementApplied",
            "PlacementAvailable",
            "PlacementOverriddenSucceeded",
            "PlacementRolloutCompleted",
            "PlacementRolloutStarted",
            "PlacementWorkSynchronized"
        ]
    );
    // Neither time nor a restart is a reason to write.
    stage.writes();
    stage.settle().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// The completion of a placement is told at once, though something else was told a moment before.
#[tokio::test(start_paused = true)]
async fn completion_is_told_at_once() {
    let stage = Stage::with_clusters(&["m1", "m2"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    for available in 1..=2 {
        let works = stage.list(ALL_WORKS).await;
        let waiting = works.iter().find(|work| work["status"].is_null()).unwrap();
        assert!(stage.answer(waiting).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(available_clusters(&status(&stage).await), available);
    }
    let said = conditions(&status(&stage).await);
    assert_eq!(said.last().unwrap(), "Available True ResourceAvailable");
}

/// Returns the number of clusters that a status calls available.
fn available_clusters(status: &Value) -> usize {
    let clusters = status["placementStatuses"].as_array().unwrap();
    let last = clusters.iter().filter_map(|one| conditions(one).pop());
    last.filter(|last| last.starts_with("Available True"))
        .count()
}

/// Case F19: a cluster that joins later gets the objects that are placed everywhere, and one that is not heard of gets nothing new.
#[tokio::test(start_paused = true)]
async fn joining_cluster_is_given_too() {
    let stage = Stage::with_clusters(&["m1"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    stage.join("m2", &json!({})).await;
    stage.agents().await;
    assert_eq!(bindings(&stage).await, ["m1 Bound", "m2 Bound"]);
    tokio::time::sleep(Duration::from_mins(6)).await;
    stage.beat("m2", "True").await;
    let edit = json!({ "data": { "key": "new" } });
    stage.change("PATCH", MAP, &edit).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value", "new"]);
    stage.beat("m1", "True").await;
    stage.settle().await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["new", "new"]);
}

/// Case F25: a tainted cluster is left out, and the objects in it stay there.
#[tokio::test(start_paused = true)]
async fn taint_keeps_new_ones_away() {
    let stage = Stage::with_clusters(&["m1", "m2"]).await;
    let taint =
        json!({ "spec": { "taints": [{ "key": "k", "value": "x", "effect": "NoSchedule" }] } });
    let m1 = format!("{CLUSTERS}/m1");
    stage.change("PATCH", &m1, &taint).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    assert_eq!(bindings(&stage).await, ["m2 Bound"]);
    let m2 = format!("{CLUSTERS}/m2");
    let wrote = stage.change("PATCH", &m2, &taint).await;
    assert_eq!(wrote, [format!("PATCH {m2}/status")]);
    assert_eq!(bindings(&stage).await, ["m2 Bound"]);
    let none = json!({ "spec": { "taints": null } });
    stage.change("PATCH", &m1, &none).await;
    stage.agents().await;
    assert_eq!(bindings(&stage).await, ["m1 Bound", "m2 Bound"]);
}

/// Case F26: a cluster whose API is ill gets nothing new and keeps its objects, and is a cluster as any other once it is well.
#[tokio::test(start_paused = true)]
async fn degraded_cluster_keeps_its_part() {
    let stage = Stage::with_clusters(&["m1", "m2"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    let since = clock();
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let ill = ("False", "InternalMemberClusterUnhealthy", since);
        stage.say("m1", "True", ill).await;
        stage.beat("m2", "True").await;
    }
    stage.settle().await;
    assert_eq!(bindings(&stage).await, ["m1 Bound", "m2 Bound"]);
    let later = placement("crp-new", "application-1", &json!(null));
    stage.change("POST", PLACEMENTS, &later).await;
    stage.agents().await;
    let both = ["m1 Bound", "m2 Bound", "m2 Bound"];
    assert_eq!(bindings(&stage).await, both);
    stage.beat("m1", "True").await;
    stage.settle().await;
    stage.agents().await;
    let all = ["m1 Bound", "m1 Bound", "m2 Bound", "m2 Bound"];
    assert_eq!(bindings(&stage).await, all);
}

/// Case F35: an edit back is the next version, and goes out as any other.
#[tokio::test(start_paused = true)]
async fn edit_back_rolls_back() {
    let stage = Stage::with_clusters(&["m1", "m2", "m3"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    for value in ["new", "value"] {
        stage
            .change("PATCH", MAP, &json!({ "data": { "key": value } }))
            .await;
        stage.agents().await;
        assert_eq!(values(&stage).await, [value; 3]);
    }
    let masters = stage.list(SNAPSHOTS).await.into_iter();
    let hashes: Vec<_> = masters
        .map(|one| one["metadata"]["annotations"]["kubernetes-fleet.io/resource-hash"].clone())
        .collect();
    assert_eq!(hashes.len(), 3);
    assert_eq!(hashes[0], hashes[2]);
    let index = &status(&stage).await["observedResourceIndex"];
    assert_eq!(index, "2");
}

/// Who only observes writes nothing, though much is to be done.
#[tokio::test(start_paused = true)]
async fn observer_places_nothing() {
    let mut stage = Stage::with_clusters(&["m1"]).await;
    stage.kill().await;
    stage.start(&["--observe-only"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(status(&stage).await, json!(null));
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// Case F50: the program may die at any write: the next one comes to the same, and then nothing is left to
/// write.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = Stage::with_clusters(&["m1", "m2"]).await;
        stage.limit_writes(allowed);
        place(&stage, &json!({ "placementType": "PickAll" })).await;
        let is_whole = stage.outlive().await;
        assert_eq!(
            bindings(&stage).await,
            ["m1 Bound", "m2 Bound"],
            "{allowed}"
        );
        let last = conditions(&status(&stage).await).pop();
        let available = Some("Available True ResourceAvailable");
        assert_eq!(last.as_deref(), available, "{allowed}");
        stage.writes();
        stage.settle().await;
        assert_eq!(stage.written(), [""; 0], "{allowed}");
        if is_whole {
            return;
        }
    }
}

/// Case F30: a change that does not become available stops at the first wave, and after ten minutes it says that it is stuck;
/// mended, it goes on at once.
#[tokio::test(start_paused = true)]
async fn broken_change_stops() {
    let stage = Stage::with_clusters(&["m1", "m2", "m3"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    let broken = json!({ "data": { "key": "broken" } });
    stage.change("PATCH", MAP, &broken).await;
    for work in stage.list(ALL_WORKS).await {
        if work["metadata"]["generation"] == 2 {
            stage.report_unavailable(&work).await;
        }
    }
    for reason in ["RolloutNotStartedYet", "RolloutStuck"] {
        for _ in 0..9 {
            tokio::time::sleep(Duration::from_mins(1)).await;
            for name in ["m1", "m2", "m3"] {
                stage.beat(name, "True").await;
            }
        }
        let mut first = values(&stage).await;
        first.sort();
        assert_eq!(first, ["broken", "value", "value"]);
        let started = &conditions(&status(&stage).await)[1];
        assert_eq!(*started, format!("RolloutStarted False {reason}"));
    }
    let mended = json!({ "data": { "key": "mended" } });
    stage.change("PATCH", MAP, &mended).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["mended"; 3]);
}
