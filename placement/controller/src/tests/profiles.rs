//! The profiles of clusters, by which programs of others find them.

use serde_json::{Value, json};

use super::stage::*;

const PROFILES: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet-system/clusterprofiles";

/// Returns the definition of the kind, as far as this hub needs it.
fn definition() -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterprofiles.multicluster.x-k8s.io" },
        "spec": {
            "group": "multicluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": "ClusterProfile", "plural": "clusterprofiles", "singular": "clusterprofile" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": any, "status": any } } } }],
        },
    })
}

/// A hub with two clusters, one of which has joined.
async fn hub() -> Stage {
    let stage = Stage::with_clusters(&["m1"]).await;
    stage.create_namespace("fleet-system").await;
    stage
        .send("POST", CLUSTERS, &cluster("m2", &json!({})))
        .await;
    stage.settle().await;
    stage
}

async fn names(stage: &Stage) -> Vec<String> {
    let all = stage.list(PROFILES).await.into_iter();
    let names = all.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

async fn health(stage: &Stage) -> String {
    let profile = stage.get(&format!("{PROFILES}/m1")).await;
    conditions(&profile["status"]).join(", ")
}

/// Case F117: once the hub has the kind, each cluster that has joined gets its profile, which says when it falls silent; a heartbeat
/// changes nothing in it, and it goes with the cluster.
#[tokio::test(start_paused = true)]
async fn joined_cluster_is_found() {
    let mut stage = hub().await;
    stage
        .send(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition(),
        )
        .await;
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    stage.beat("m1", "True").await;
    stage.settle().await;
    assert_eq!(names(&stage).await, ["m1"]);
    let healthy = "ControlPlaneHealthy True MemberClusterAPIServerHealthy";
    assert_eq!(health(&stage).await, healthy);
    stage.writes();
    stage.beat("m1", "True").await;
    stage.settle().await;
    let mut written = stage.written();
    written.retain(|write| write.contains("clusterprofiles"));
    assert_eq!(written, [""; 0]);
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);

    tokio::time::sleep(std::time::Duration::from_mins(6)).await;
    assert_eq!(
        health(&stage).await,
        "ControlPlaneHealthy False MemberAgentHeartbeatLost"
    );
    stage.beat("m1", "True").await;
    stage.settle().await;
    assert_eq!(health(&stage).await, healthy);
    let member = format!("{CLUSTERS}/m1");
    stage.change("DELETE", &member, &json!({})).await;
    assert_eq!(names(&stage).await, [""; 0]);
}
