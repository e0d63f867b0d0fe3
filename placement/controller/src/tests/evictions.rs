//! Placements that are taken from a cluster because somebody asks for it.

use serde_json::{Value, json};

use super::stage::*;

const EVICTIONS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementevictions";

fn eviction(name: &str, cluster: &str) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementEviction",
        "metadata": { "name": name },
        "spec": { "placementName": "crp-all", "clusterName": cluster },
    })
}

fn budget(bounds: &Value) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementDisruptionBudget",
        "metadata": { "name": "crp-all" },
        "spec": bounds,
    })
}

/// A hub with three clusters, of which two have the placement.
async fn placed() -> Stage {
    let stage = Stage::with_clusters(&["a", "b", "c"]).await;
    place(
        &stage,
        &json!({ "placementType": "PickN", "numberOfClusters": 2 }),
    )
    .await;
    stage.agents().await;
    assert_eq!(bindings(&stage).await, ["b Bound", "c Bound"]);
    stage
}

/// Has nothing more placed in a cluster.
async fn taint(stage: &Stage, cluster: &str) {
    let taints = json!([{ "key": "dns", "effect": "NoSchedule" }]);
    let path = format!("{CLUSTERS}/{cluster}");
    let body = json!({ "spec": { "taints": taints } });
    stage.change("PATCH", &path, &body).await;
}

async fn outcome(stage: &Stage, name: &str) -> Vec<String> {
    conditions(&stage.get(&format!("{EVICTIONS}/{name}")).await["status"])
}

const EXECUTED: [&str; 2] = [
    "Valid True ClusterResourcePlacementEvictionValid",
    "Executed True ClusterResourcePlacementEvictionExecuted",
];
const BLOCKED: [&str; 2] = [
    "Valid True ClusterResourcePlacementEvictionValid",
    "Executed False ClusterResourcePlacementEvictionNotExecuted",
];

/// Case F66: a placement that is evicted from a tainted cluster goes elsewhere at once, and comes back no more.
#[tokio::test(start_paused = true)]
async fn evicted_placement_goes_elsewhere() {
    let stage = placed().await;
    taint(&stage, "c").await;
    assert_eq!(bindings(&stage).await, ["b Bound", "c Bound"]);
    stage.change("POST", EVICTIONS, &eviction("e", "c")).await;
    stage.agents().await;
    assert_eq!(outcome(&stage, "e").await, EXECUTED);
    assert_eq!(bindings(&stage).await, ["a Bound", "b Bound"]);
}

/// Case F67: of two evictions at once, the budget allows one.
#[tokio::test(start_paused = true)]
async fn budget_allows_one() {
    let stage = placed().await;
    taint(&stage, "b").await;
    taint(&stage, "c").await;
    stage.create(&budget(&json!({ "minAvailable": 1 }))).await;
    stage.create(&eviction("first", "b")).await;
    stage.create(&eviction("second", "c")).await;
    stage.settle().await;
    stage.agents().await;
    assert_eq!(outcome(&stage, "first").await, EXECUTED);
    assert_eq!(outcome(&stage, "second").await, BLOCKED);
    assert_eq!(bindings(&stage).await, ["a Bound", "c Bound"]);
}

/// Case F67: the outcome of an eviction is final, and another program finds nothing to do.
#[tokio::test(start_paused = true)]
async fn eviction_is_executed_once() {
    let mut stage = placed().await;
    stage.change("POST", EVICTIONS, &eviction("e", "c")).await;
    stage.agents().await;
    // Nothing kept it away.
    assert_eq!(bindings(&stage).await, ["b Bound", "c Bound"]);
    stage.written();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    let invalid = ["Valid False ClusterResourcePlacementEvictionInvalid"];
    let mut missed = eviction("missed", "a");
    for placement in ["crp-all", "absent", "", "a,b", &"a".repeat(64)] {
        missed["metadata"]["name"] = json!(format!("missed-{}", placement.len()));
        missed["spec"]["placementName"] = json!(placement);
        stage.change("POST", EVICTIONS, &missed).await;
        let name = missed["metadata"]["name"].as_str().unwrap();
        assert_eq!(outcome(&stage, name).await, invalid, "{placement}");
    }
}

/// Case F67: a program that dies after any of its writes leaves an eviction that the next one ends, and nothing else is
/// deleted.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = placed().await;
        taint(&stage, "c").await;
        stage.limit_writes(allowed);
        stage.change("POST", EVICTIONS, &eviction("e", "c")).await;
        let is_whole = stage.outlive().await;
        assert_eq!(outcome(&stage, "e").await, EXECUTED, "{allowed}");
        assert_eq!(bindings(&stage).await, ["a Bound", "b Bound"], "{allowed}");
        if is_whole {
            return;
        }
    }
}
