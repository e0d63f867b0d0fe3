//! The clusters that are picked.

use serde_json::json;

use super::stage::*;

/// Only the loops that are asked for run: the others are another controller's.
#[tokio::test(start_paused = true)]
async fn one_loop_runs_alone() {
    let mut stage = Stage::with_clusters(&["m1"]).await;
    stage.kill().await;
    stage.start(&["--loops=schedule"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    assert_eq!(stage.written(), [""; 0]);
    let snapshot = json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterSchedulingPolicySnapshot",
        "metadata": {
            "name": "crp-all-0",
            "labels": {
                "kubernetes-fleet.io/parent-CRP": "crp-all", "kubernetes-fleet.io/policy-index": "0",
                "kubernetes-fleet.io/is-latest-snapshot": "true",
            },
            "annotations": { "kubernetes-fleet.io/CRP-generation": "1" },
        },
        "spec": { "policy": { "placementType": "PickAll" }, "policyHash": "aGFzaA==" },
    });
    let wrote = stage.change("POST", POLICIES, &snapshot).await;
    let status = format!("PATCH {POLICIES}/crp-all-0/status");
    assert_eq!(wrote, [status, format!("POST {BINDINGS}")]);
}
