//! The Events about templates and policies, each recorded once.

use embedded_apiserver::Injection;

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
    let [known, all] = [&["m1"][..], &["m1", "m2", "m3"]].map(|clusters| {
        let clusters = json!({ "clusterNames": clusters });
        json!({ "spec": { "suspension": { "dispatchingOnClusters": clusters } } })
    });
    let policy = format!("{POLICY}/pp");
    stage.change("PATCH", &policy, &known).await;
    assert_eq!(stage.events("PropagationPolicy").await, [""; 0]);
    stage.change("PATCH", &policy, &all).await;
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

/// Waits until kinds that are not served have been looked up again, too.
async fn settle(stage: &Stage) {
    stage.settle().await;
    stage.settle().await;
}

/// A policy that selects a kind that is not served is told once.
#[tokio::test(start_paused = true)]
async fn unserved_kind_is_recorded_once() {
    let mut stage = Stage::new().await;
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

fn no_right_to_toys() -> Injection {
    let fault = Fault::Forbidden.kind("toys");
    fault.verbs([Verb::List, Verb::Watch])
}

fn policy_of_toys() -> Value {
    let selectors = json!([{ "apiVersion": "test.io/v1", "kind": "Toy" }]);
    policy("toys", &json!({ "resourceSelectors": selectors }))
}

/// Case P77: a policy for a kind without rights says how to grant them; once they are there, its templates are claimed without a
/// restart.
#[tokio::test(start_paused = true)]
async fn forbidden_kind_names_its_grant() {
    let mut stage = Stage::new().await;
    stage.add_toy(&[]).await;
    let forbidden = stage.server.faults().inject(no_right_to_toys());
    stage.send("POST", POLICY, &policy_of_toys()).await;
    stage.start(&[]).await;
    let told = "ApplyPolicyFailed: May not propagate Toy of test.io/v1; this grants it: \
        kubectl remedy rights test.io/toys | kubectl apply -f -";
    assert_eq!(stage.events("PropagationPolicy").await, [told]);
    assert_eq!(claim_of(&stage.get(&web(TOY)).await), None);

    stage.server.faults().remove(forbidden);
    stage.settle().await;
    assert_eq!(claim_of(&stage.get(&web(TOY)).await), Some("toys"));
    assert_eq!(stage.events("PropagationPolicy").await, [told]);
}

/// A policy that never had a template, because its kind is without rights, can be deleted.
#[tokio::test(start_paused = true)]
async fn forbidden_kind_holds_no_policy() {
    let mut stage = Stage::new().await;
    stage.add_toy(&[]).await;
    stage.server.faults().inject(no_right_to_toys());
    stage.send("POST", POLICY, &policy_of_toys()).await;
    stage.start(&[]).await;
    let path = format!("{POLICY}/toys");
    stage.change("DELETE", &path, &json!({})).await;
    let policies: Api<PropagationPolicy> = Api::namespaced(stage.user(), "shop");
    assert_eq!(policies.get_opt("toys").await.unwrap(), None);
}

/// A policy whose templates may not be read any more stays until they are known again, and says so.
#[tokio::test(start_paused = true)]
async fn revoked_kind_holds_its_policy() {
    let mut stage = Stage::new().await;
    stage.add_toy(&[]).await;
    stage.send("POST", POLICY, &policy_of_toys()).await;
    stage.start(&[]).await;
    assert_eq!(claim_of(&stage.get(&web(TOY)).await), Some("toys"));
    stage.kill().await;
    let forbidden = stage.server.faults().inject(no_right_to_toys());
    stage.start(&[]).await;
    let path = format!("{POLICY}/toys");
    stage.change("DELETE", &path, &json!({})).await;
    let policies: Api<PropagationPolicy> = Api::namespaced(stage.user(), "shop");
    assert!(policies.get_opt("toys").await.unwrap().is_some());
    let events = stage.events("PropagationPolicy").await;
    assert_eq!(events.len(), 1);
    assert!(events[0].contains("May not propagate Toy"), "{events:?}");

    stage.server.faults().remove(forbidden);
    stage.settle().await;
    assert_eq!(policies.get_opt("toys").await.unwrap(), None);
    assert_eq!(claim_of(&stage.get(&web(TOY)).await), None);
}
