//! The Works of a cluster.

use objects::Metadata;
use serde_json::json;

use super::stage::*;

/// The Work of a cluster is the one that a running KubeFleet made of the same snapshot.
#[tokio::test(start_paused = true)]
async fn recorded_work_is_made() {
    let stage = Stage::with_clusters(&["kind-cluster-1"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    let stored = stage
        .get(&work_path("fleet-member-kind-cluster-1", "crp-all-work"))
        .await;
    let recorded = recorded!("crp-all-work");
    assert_eq!(stored["spec"], recorded["spec"]);
    assert_eq!(
        stored["metadata"]["annotations"],
        recorded["metadata"]["annotations"]
    );
    let index = "kubernetes-fleet.io/parent-resource-snapshot-index";
    assert_eq!(stored.label(index), recorded.label(index));
}

/// A binding whose Work somebody changed or deleted gets it back.
#[tokio::test(start_paused = true)]
async fn work_is_repaired() {
    let stage = Stage::with_clusters(&["m1"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    let path = work_path("fleet-member-m1", "crp-all-work");
    let spoilt = json!({ "spec": { "workload": { "manifests": [] } } });
    stage.change("PATCH", &path, &spoilt).await;
    assert_eq!(values(&stage).await, ["value"]);
    stage.change("DELETE", &path, &json!({})).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"]);
}

/// One cluster costs eight writes, and none is tried twice.
#[tokio::test(start_paused = true)]
async fn writes_are_counted() {
    let stage = Stage::with_clusters(&["m1"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    let bindings = stage.list(BINDINGS).await;
    let name = bindings[0].name().to_owned();
    let mut wrote = stage.written();
    wrote.retain(|call| !call.contains("placements/"));
    let of_binding = format!("PATCH {BINDINGS}/{name}");
    assert_eq!(
        wrote,
        [
            // The snapshot with the finalizer, and the conditions for the start and the Works.
            of_binding.clone(),
            format!("{of_binding}/status"),
            format!("{of_binding}/status"),
            format!("PATCH {POLICIES}/crp-all-0/status"),
            format!("POST {BINDINGS}"),
            format!("POST {SNAPSHOTS}"),
            format!("POST {POLICIES}"),
            "POST /apis/placement.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-m1/works"
                .to_owned(),
        ]
    );
}

/// Many placements at once get in each other's way no more than one alone.
#[tokio::test(start_paused = true)]
async fn no_write_is_wasted() {
    let stage = Stage::with_clusters(&["m1", "m2", "m3"]).await;
    for nth in 0..20 {
        let namespace = format!("shop-{nth}");
        stage.create_namespace(&namespace).await;
        let policy = json!({ "placementType": "PickAll" });
        let new = placement(&format!("crp-{nth}"), &namespace, &policy);
        stage.send("POST", PLACEMENTS, &new).await;
    }
    stage.settle().await;
    let mut wrote = stage.written();
    // The status of a placement depends on how fast the rest is.
    wrote.retain(|call| !call.starts_with(&format!("PATCH {PLACEMENTS}/")));
    // Two snapshots, the decisions, and for each cluster four writes of a binding and a Work.
    assert_eq!(wrote.len(), 20 * (3 + 3 * 5), "{wrote:#?}");
}
