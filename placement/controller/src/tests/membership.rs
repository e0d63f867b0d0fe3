//! Clusters that join, are silent, and leave.

use std::time::Duration;

use fleet_api::names::WORK_FINALIZER;
use serde_json::{Value, json};

use super::stage::*;

const NAMESPACE: &str = "/api/v1/namespaces/fleet-member-kind-cluster-1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/fleet-member-kind-cluster-1";

/// A hub with one cluster, as a running KubeFleet had it.
async fn joined() -> Stage {
    let mut stage = Stage::new();
    stage.start(&[]).await;
    let recorded = recorded!("membercluster");
    let mut new = cluster(
        "kind-cluster-1",
        &json!({ "env": "prod", "region": "east" }),
    );
    new["spec"] = recorded["spec"].clone();
    stage.send("POST", CLUSTERS, &new).await;
    stage.settle().await;
    stage
}

/// Returns an object without the fields that only its server knows, its owner's uid included.
fn owned(object: Value) -> Value {
    let mut object = timeless(object);
    if let Some(uid) = object.pointer_mut("/metadata/ownerReferences/0/uid") {
        *uid = json!("");
    }
    object
}

/// A cluster for which the hub can have no namespace says so, and nothing is made for it.
#[tokio::test(start_paused = true)]
async fn impossible_cluster_is_refused() {
    let mut stage = Stage::new();
    stage.start(&[]).await;
    for name in ["eu.prod", &"x".repeat(51)] {
        let new = cluster(name, &json!({}));
        let wrote = stage.change("POST", CLUSTERS, &new).await;
        assert_eq!(wrote, [format!("PATCH {CLUSTERS}/{name}/status")]);
        let refused = stage.get(&format!("{CLUSTERS}/{name}")).await;
        assert_eq!(
            conditions(&refused["status"]),
            ["ReadyToJoin False MemberClusterNotReadyToJoin"]
        );
    }
}

/// A cluster gets on the hub the objects that KubeFleet's agents expect there, and the status that its agent reports.
#[tokio::test(start_paused = true)]
async fn joining_cluster_gets_everything() {
    let stage = joined().await;
    for (path, recorded) in [
        (NAMESPACE.to_owned(), recorded!("member-namespace")),
        (
            format!("{RBAC}/roles/fleet-role-kind-cluster-1"),
            recorded!("member-role"),
        ),
        (
            format!("{RBAC}/rolebindings/fleet-rolebinding-kind-cluster-1"),
            recorded!("member-rolebinding"),
        ),
    ] {
        assert_eq!(owned(stage.get(&path).await), owned(recorded), "{path}");
    }
    let recorded = recorded!("internalmembercluster");
    let stored = stage.get(&channel("kind-cluster-1")).await;
    assert_eq!(stored["spec"], recorded["spec"]);
    assert_eq!(stored["metadata"]["ownerReferences"][0]["controller"], true);
    let path = format!("{CLUSTERS}/kind-cluster-1");
    let ready = stage.get(&path).await;
    assert_eq!(
        conditions(&ready["status"]),
        ["ReadyToJoin True MemberClusterReadyToJoin"]
    );

    let status = json!({ "status": recorded["status"] });
    let said = format!("{}/status", channel("kind-cluster-1"));
    let wrote = stage.change("PATCH", &said, &status).await;
    assert_eq!(wrote, [format!("PATCH {path}/status")]);
    let (stored, mut recorded) = (stage.get(&path).await, recorded!("membercluster"));
    recorded["metadata"]["finalizers"] = json!(["kubernetes-fleet.io/membercluster-finalizer"]);
    let generation = stored["metadata"]["generation"].clone();
    for observed in [
        "/status/conditions/0",
        "/status/conditions/1",
        "/status/agentStatus/0/conditions/0",
        "/status/agentStatus/0/conditions/1",
    ] {
        recorded.pointer_mut(observed).unwrap()["observedGeneration"] = generation.clone();
    }
    assert_eq!(timeless(stored), timeless(recorded));
}

/// An agent reports its findings, and does not decide about its cluster: else a member would lift its own block.
#[tokio::test(start_paused = true)]
async fn agent_says_no_action() {
    let stage = joined().await;
    let said = ["TrafficControl", "Collected"].map(|kind| {
        json!({ "type": kind, "status": "False", "reason": "Told", "message": "",
            "lastTransitionTime": clock() })
    });
    let status = json!({ "status": { "conditions": said } });
    let path = format!("{}/status", channel("kind-cluster-1"));
    stage.change("PATCH", &path, &status).await;
    let cluster = stage.get(&format!("{CLUSTERS}/kind-cluster-1")).await;
    assert_eq!(
        conditions(&cluster["status"]),
        [
            "ReadyToJoin True MemberClusterReadyToJoin",
            "Collected False Told"
        ]
    );
}

/// At rest a cluster costs one write for each heartbeat, and a restart none.
#[tokio::test(start_paused = true)]
async fn heartbeat_is_one_write() {
    let mut stage = Stage::with_clusters(&["m1"]).await;
    stage.beat("m1", "True").await;
    stage.settle().await;
    assert_eq!(stage.written(), [format!("PATCH {CLUSTERS}/m1/status")]);
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// A cluster that leaves stays until its agent has let go, and keeps the Works until then.
#[tokio::test(start_paused = true)]
async fn leaving_waits_for_agent() {
    let stage = Stage::with_clusters(&["m1"]).await;
    let path = format!("{CLUSTERS}/m1");
    stage.change("DELETE", &path, &json!({})).await;
    let leaving = stage.get(&path).await;
    assert_eq!(stage.get(&channel("m1")).await["spec"]["state"], "Leave");
    assert_eq!(
        conditions(&leaving["status"]),
        [
            "ReadyToJoin False MemberClusterNotReadyToJoin",
            "Joined True MemberClusterJoined"
        ]
    );
    stage.beat("m1", "False").await;
    stage.settle().await;
    assert_eq!(stage.find(&path).await, None);
    let namespace = "/api/v1/namespaces/fleet-member-m1";
    assert_eq!(stage.find(namespace).await, None);
}

/// A cluster whose agent has gone for good leaves after a quarter of an hour, with the objects that waited for that agent.
#[tokio::test(start_paused = true)]
async fn silent_cluster_is_forced_out() {
    let stage = Stage::with_clusters(&["m1"]).await;
    let work = json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work",
        "metadata": { "name": "w", "namespace": "fleet-member-m1", "finalizers": [WORK_FINALIZER] },
        "spec": { "workload": { "manifests": [] } },
    });
    stage.create(&work).await;
    let path = format!("{CLUSTERS}/m1");
    stage.change("DELETE", &path, &json!({})).await;
    tokio::time::sleep(Duration::from_mins(14)).await;
    assert!(stage.find(&path).await.is_some());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(stage.find(&path).await, None);
    assert_eq!(stage.list(ALL_WORKS).await, [json!(null); 0]);
}

/// A cluster that never joined leaves at once.
#[tokio::test(start_paused = true)]
async fn unjoined_cluster_leaves() {
    let stage = joined().await;
    let path = format!("{CLUSTERS}/kind-cluster-1");
    stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(stage.find(&path).await, None);
}

#[tokio::test(start_paused = true)]
async fn observer_writes_nothing() {
    let mut stage = Stage::new();
    let new = cluster("m1", &json!({}));
    stage.send("POST", CLUSTERS, &new).await;
    stage.start(&["--observe-only"]).await;
    assert_eq!(stage.written(), [""; 0]);
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// An object that somebody changed or deleted is as before again, and another identity is given the rights.
#[tokio::test(start_paused = true)]
async fn hub_resources_are_repaired() {
    let stage = joined().await;
    let role = format!("{RBAC}/roles/fleet-role-kind-cluster-1");
    let before = stage.get(&role).await["rules"].clone();
    stage.change("PATCH", &role, &json!({ "rules": [] })).await;
    assert_eq!(stage.get(&role).await["rules"], before);
    stage.change("DELETE", &role, &json!({})).await;
    assert_eq!(stage.get(&role).await["rules"], before);
    let other =
        json!({ "spec": { "identity": { "kind": "User", "name": "eve", "namespace": null } } });
    let cluster = format!("{CLUSTERS}/kind-cluster-1");
    stage.change("PATCH", &cluster, &other).await;
    let binding = format!("{RBAC}/rolebindings/fleet-rolebinding-kind-cluster-1");
    let subject = stage.get(&binding).await["subjects"][0].clone();
    assert_eq!(
        (&subject["kind"], &subject["name"]),
        (&json!("User"), &json!("eve"))
    );
    assert_eq!(stage.change("PATCH", &cluster, &other).await, [""; 0]);
}

/// Case F50: the program may die at any write of a join or of a leave: a later one completes it.
#[tokio::test(start_paused = true)]
async fn any_death_is_survived() {
    for allowed in 0.. {
        let mut stage = Stage::new();
        stage.start(&[]).await;
        stage.limit_writes(allowed);
        let new = cluster("m1", &json!({}));
        stage.send("POST", CLUSTERS, &new).await;
        stage.settle().await;
        let is_whole = !stage.is_limit_reached();
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        stage.beat("m1", "True").await;
        stage.settle().await;
        let path = format!("{CLUSTERS}/m1");
        let said = conditions(&stage.get(&path).await["status"]);
        assert_eq!(said[1], "Joined True MemberClusterJoined", "{allowed}");

        stage.beat("m1", "False").await;
        stage.limit_writes(allowed);
        stage.send("DELETE", &path, &json!({})).await;
        stage.settle().await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(stage.find(&path).await, None, "{allowed}");
        if is_whole {
            return;
        }
    }
}

/// Case F65: a cluster has a taint while a condition of it says so, beside those of others, and not without the flag.
#[tokio::test(start_paused = true)]
async fn condition_taints_a_cluster() {
    let mut stage = Stage::new();
    stage
        .start(&["--taint-on-condition=DnsReady=False:NoSchedule"])
        .await;
    stage.join("a", &json!({})).await;
    let path = format!("{CLUSTERS}/a");
    let taint =
        |key: &str, value: &str| json!({ "key": key, "value": value, "effect": "NoSchedule" });
    let theirs = taint("team", "x");
    let spec = json!({ "spec": { "taints": [theirs] } });
    stage.change("PATCH", &path, &spec).await;
    let ours = taint("cluster.karmada-rs.io/DnsReady", "False");
    for (status, taints) in [
        ("False", json!([theirs, ours])),
        ("True", json!([theirs])),
        ("False", json!([theirs, ours])),
    ] {
        let mut conditions = stage.get(&path).await["status"]["conditions"].clone();
        let conditions = conditions.as_array_mut().unwrap();
        conditions.retain(|one| one["type"] != "DnsReady");
        conditions.push(
            json!({ "type": "DnsReady", "status": status, "reason": "Told", "message": "",
            "lastTransitionTime": clock() }),
        );
        let body = json!({ "status": { "conditions": conditions } });
        stage
            .change("PATCH", &format!("{path}/status"), &body)
            .await;
        assert_eq!(stage.get(&path).await["spec"]["taints"], taints, "{status}");
    }
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.get(&path).await["spec"]["taints"], json!([theirs]));
}
