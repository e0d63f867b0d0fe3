//! The Events about templates and policies, each recorded once.

use super::*;

#[tokio::test(start_paused = true)]
async fn replicas_are_recorded_when_they_change() {
    let stage = settled().await;
    let recorded = async || {
        let mut events = stage.events("Deployment").await;
        events.retain(|event| event.starts_with("GetReplicasSucceed"));
        events
    };
    let first = "GetReplicasSucceed: Get replicas(2) of the template succeed";
    assert_eq!(recorded().await, [first]);
    let label = json!({ "metadata": { "labels": { "tier": "front" } } });
    stage.change("PATCH", &web(DEPLOYMENT), &label).await;
    assert_eq!(recorded().await, [first]);
    let scaled = json!({ "spec": { "replicas": 5 } });
    stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    let second = "GetReplicasSucceed: Get replicas(5) of the template succeed";
    assert_eq!(recorded().await, [first, second]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_a_cluster_that_does_not_exist_is_recorded_once() {
    let cluster = |name: &str| {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": { "name": name },
            "spec": { "syncMode": "Push" },
        })
    };
    let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
    let mut stage = settled().await;
    stage.send("POST", clusters, &cluster("m1")).await;
    let pause = |clusters: &[&str]| {
        let clusters = json!({ "clusterNames": clusters });
        json!({ "spec": { "suspension": { "dispatchingOnClusters": clusters } } })
    };
    let policy = format!("{POLICY}/pp");
    stage.change("PATCH", &policy, &pause(&["m1"])).await;
    assert_eq!(stage.events("PropagationPolicy").await, [""; 0]);
    stage
        .change("PATCH", &policy, &pause(&["m1", "m2", "m3"]))
        .await;
    let both = "UnknownCluster: Suspends dispatching to clusters that do not exist: m2, m3";
    assert_eq!(stage.events("PropagationPolicy").await, [both]);

    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.events("PropagationPolicy").await, [both]);

    stage.change("POST", clusters, &cluster("m2")).await;
    let one = "UnknownCluster: Suspends dispatching to clusters that do not exist: m3";
    assert_eq!(stage.events("PropagationPolicy").await, [both, one]);
    stage.change("POST", clusters, &cluster("m3")).await;
    stage
        .change("DELETE", &format!("{clusters}/m3"), &json!({}))
        .await;
    assert_eq!(stage.events("PropagationPolicy").await, [both, one, one]);
}
