//! The Events about templates and policies, each recorded once.

use super::*;

/// Replicas are recorded when they change.
#[tokio::test(start_paused = true)]
async fn changed_replicas_are_recorded() {
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

/// A pause of a cluster that does not exist is recorded once.
#[tokio::test(start_paused = true)]
async fn unknown_paused_cluster_is_recorded() {
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

/// A policy that selects a kind that is not served is told once.
#[tokio::test(start_paused = true)]
async fn unserved_kind_is_recorded_once() {
    let mut stage = Stage::new().await;
    // A kind that is not served is looked up again later.
    let settle = async |stage: &Stage| {
        stage.settle().await;
        stage.settle().await;
    };
    let selecting = |kinds: &[&str]| {
        let selectors = kinds
            .iter()
            .map(|kind| json!({ "apiVersion": "test.io/v1", "kind": kind }));
        json!({ "resourceSelectors": selectors.collect::<Vec<_>>() })
    };
    let toys = policy("toys", &selecting(&["Toy"]));
    stage.send("POST", POLICY, &toys).await;
    stage.start(&[]).await;
    settle(&stage).await;
    let toy = "UnknownKind: Selects kinds that the API does not serve: Toy of test.io/v1";
    assert_eq!(stage.events("PropagationPolicy").await, [toy]);

    stage.kill().await;
    stage.start(&[]).await;
    let path = format!("{POLICY}/toys");
    let other = json!({ "spec": { "priority": 1 } });
    stage.send("PATCH", &path, &other).await;
    settle(&stage).await;
    assert_eq!(stage.events("PropagationPolicy").await, [toy]);

    let both = json!({ "spec": selecting(&["Toy", "Kite"]) });
    stage.send("PATCH", &path, &both).await;
    settle(&stage).await;
    let kite = "UnknownKind: Selects kinds that the API does not serve: Kite of test.io/v1, Toy of test.io/v1";
    assert_eq!(stage.events("PropagationPolicy").await, [kite, toy]);

    let one = json!({ "spec": selecting(&["Toy"]) });
    stage.send("PATCH", &path, &one).await;
    settle(&stage).await;
    assert_eq!(stage.events("PropagationPolicy").await, [kite, toy, toy]);
    stage.add_toy(&[]).await;
    settle(&stage).await;
    assert_eq!(claim_of(&stage.get(&web(TOY)).await), Some("toys"));
    assert_eq!(stage.events("PropagationPolicy").await, [kite, toy, toy]);

    // That trouble was over: it is another one now.
    stage.send("PATCH", &path, &both).await;
    settle(&stage).await;
    let alone = "UnknownKind: Selects kinds that the API does not serve: Kite of test.io/v1";
    let events = stage.events("PropagationPolicy").await;
    assert_eq!(events, [alone, kite, toy, toy]);
}
