//! The reports about the member to the hub.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::*;

const HEALTHY: &str = "True InternalMemberClusterHealthy";
const JOINED: &str = "True InternalMemberClusterJoined";
const LEFT: &str = "False InternalMemberClusterLeft";

/// A member with one node, without the agent.
async fn unjoined() -> Stage {
    let stage = Stage::new().await;
    let amounts = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "status": { "capacity": amounts, "allocatable": amounts } });
    stage.member.create(&node).await;
    stage
}

/// A member with one node that joined 8 s ago, whose agent beats every minute.
async fn joined() -> Stage {
    let mut stage = unjoined().await;
    stage.start(&[]).await;
    beats(&stage);
    stage
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

async fn status(stage: &Stage) -> Value {
    stage.hub.get(CHANNEL).await["status"].clone()
}

/// Returns the status and reason of each condition of the agent.
async fn said(stage: &Stage) -> Vec<String> {
    let status = status(stage).await;
    let conditions = status["agentStatus"][0]["conditions"].as_array().unwrap();
    let conditions = conditions.iter();
    conditions
        .map(|one| {
            ["status", "reason"]
                .map(|field| one[field].as_str().unwrap())
                .join(" ")
        })
        .collect()
}

/// Returns the number of heartbeats since the last call, besides which nothing has been written.
fn beats(stage: &Stage) -> usize {
    let mut writes = stage.hub.writes();
    let count = writes.len();
    let beat = format!("PATCH {CHANNEL}/status");
    writes.retain(|write| *write != beat);
    writes.extend(stage.member.writes());
    assert_eq!(writes, [""; 0]);
    count
}

/// A cluster that joins has the status that KubeFleet's agent gave to one like it.
#[tokio::test(start_paused = true)]
async fn joining_says_everything() {
    let status = status(&joined().await).await;
    let recorded = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../placement/rules/src/fixtures/internalmembercluster.json"
    ));
    let now = status["agentStatus"][0]["lastReceivedHeartbeat"]
        .as_str()
        .unwrap();
    let recorded = recorded.replace("2026-11-25T16:44:09Z", now);
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    assert_eq!(status, recorded["status"]);
}

/// At rest the agent writes one heartbeat for each period, and nothing else anywhere.
#[tokio::test(start_paused = true)]
async fn rest_is_heartbeats_only() {
    let stage = joined().await;
    seconds(600).await;
    assert_eq!(beats(&stage), 10);
    let last = status(&stage).await["agentStatus"][0]["lastReceivedHeartbeat"].clone();
    let last: Timestamp = last.as_str().unwrap().parse().unwrap();
    assert!(clock().duration_since(last) < SignedDuration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn restart_beats_no_earlier() {
    let mut stage = joined().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(beats(&stage), 0);
    seconds(50).await;
    assert_eq!(beats(&stage), 1);
}

/// A pod that comes is told of with the next heartbeat, and one that has ended is not counted.
#[tokio::test(start_paused = true)]
async fn usage_waits_for_heartbeat() {
    let stage = joined().await;
    for (name, phase) in [("a", "Running"), ("b", "Succeeded")] {
        let requests = json!({ "requests": { "cpu": "250m", "memory": "1Gi" } });
        let containers = json!([{ "name": "c", "image": "i", "resources": requests }]);
        let pod = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "nodeName": "n1", "containers": containers },
            "status": { "phase": phase } });
        stage.member.create(&pod).await;
    }
    stage.settle().await;
    assert_eq!(beats(&stage), 0);
    seconds(50).await;
    assert_eq!(beats(&stage), 1);
    let available = json!({ "cpu": "3750m", "memory": "7Gi" });
    assert_eq!(
        status(&stage).await["resourceUsage"]["available"],
        available
    );
}

/// Without a right the usage stays unknown; it is told as soon as the right is given.
#[tokio::test(start_paused = true)]
async fn missing_right_stops_nothing() {
    let mut stage = unjoined().await;
    let forbidden = Fault::Forbidden.kind("pods").verbs([Verb::List]);
    stage.member.server.faults().inject(forbidden);
    stage.start(&[]).await;
    assert_eq!(said(&stage).await, [HEALTHY, JOINED]);
    assert_eq!(status(&stage).await["properties"], json!(null));
    assert_eq!(beats(&stage), 1);
    seconds(120).await;
    assert_eq!(beats(&stage), 2);
    stage.member.server.faults().clear();
    stage.settle().await;
    assert_eq!(beats(&stage), 1);
    let nodes = &status(&stage).await["properties"]["kubernetes-fleet.io/node-count"];
    assert_eq!(nodes["value"], "1");
}

/// Trouble and recovery are told when they are seen, not with the next heartbeat.
#[tokio::test(start_paused = true)]
async fn trouble_is_told_immediately() {
    let stage = joined().await;
    let readyz = "GET /readyz";
    stage
        .member
        .refuse(readyz, 500, "InternalError", "etcd is away");
    seconds(10).await;
    let ill = ["False InternalMemberClusterUnhealthy", JOINED];
    assert_eq!(said(&stage).await, ill);
    let status = status(&stage).await;
    let message = status["agentStatus"][0]["conditions"][0]["message"].as_str();
    assert!(message.unwrap().contains("etcd is away"), "{message:?}");
    seconds(10).await;
    assert_eq!(said(&stage).await, [HEALTHY, JOINED]);
    assert_eq!(beats(&stage), 2);
}

/// A cluster has left once its agent holds no Work any more. Then the agent is silent until it is to join again.
#[tokio::test(start_paused = true)]
async fn leaving_waits_for_works() {
    let stage = joined().await;
    stage.hub.send("POST", WORKS, &work(&[])).await;
    stage.settle().await;
    let stuck = Fault::InternalError.kind("works").verbs([Verb::Patch]);
    let stuck = stage.hub.server.faults().inject(stuck);
    let leave = json!({ "spec": { "state": "Leave" } });
    stage.hub.send("PATCH", CHANNEL, &leave).await;
    seconds(30).await;
    assert_eq!(said(&stage).await, [HEALTHY, JOINED]);
    stage.hub.server.faults().remove(stuck);
    seconds(40).await;
    assert_eq!(said(&stage).await, [HEALTHY, LEFT]);
    stage.written();
    seconds(600).await;
    assert_eq!(beats(&stage), 0);
    let join = json!({ "spec": { "state": "Join" } });
    stage.hub.send("PATCH", CHANNEL, &join).await;
    stage.settle().await;
    assert_eq!(said(&stage).await, [HEALTHY, JOINED]);
}

/// A heartbeat that meets another version is decided again.
#[tokio::test(start_paused = true)]
async fn conflict_is_no_end() {
    let stage = joined().await;
    let conflict = Fault::Conflict.kind("internalmemberclusters").times(1);
    stage.hub.server.faults().inject(conflict);
    seconds(60).await;
    assert_eq!(beats(&stage), 2);
    seconds(60).await;
    assert_eq!(beats(&stage), 1);
}

/// A channel that comes again is told everything again.
#[tokio::test(start_paused = true)]
async fn new_channel_hears_everything() {
    let stage = joined().await;
    stage.hub.send("DELETE", CHANNEL, &json!({})).await;
    seconds(120).await;
    assert_eq!(beats(&stage), 0);
    stage.hub.send("POST", CHANNELS, &channel("Join")).await;
    stage.settle().await;
    assert_eq!(said(&stage).await, [HEALTHY, JOINED]);
}

#[tokio::test(start_paused = true)]
async fn observer_sends_no_heartbeat() {
    let mut stage = unjoined().await;
    stage.start(&["--observe-only"]).await;
    seconds(120).await;
    assert_eq!(beats(&stage), 0);
    assert_eq!(status(&stage).await, json!(null));
    stage.kill().await;
    stage.start(&[]).await;
    seconds(120).await;
    assert!(beats(&stage) > 0, "it is to send some");
}

/// Returns the names of the namespaces that the agent tells of.
async fn namespaces(stage: &Stage) -> Vec<String> {
    let status = status(stage).await;
    let namespaces = status["namespaces"].as_object().into_iter().flatten();
    namespaces.map(|(name, _)| name.clone()).collect()
}

/// Case F92: an agent that is asked to tells of the namespaces, and of a new one at once; who is no longer asked takes it back.
#[tokio::test(start_paused = true)]
async fn namespaces_are_told() {
    let mut stage = unjoined().await;
    stage.start(&["--collect-namespaces"]).await;
    assert!(!namespaces(&stage).await.contains(&"shop".to_owned()));
    let collected = status(&stage).await["conditions"][0].clone();
    assert_eq!(collected["type"], "NamespaceCollectionSucceeded");
    stage.member.create_namespace("shop").await;
    seconds(5).await;
    assert!(namespaces(&stage).await.contains(&"shop".to_owned()));
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(namespaces(&stage).await, [""; 0]);
    assert_eq!(status(&stage).await["conditions"], Value::Null);
}

/// Case F118: an agent that is given prices tells the costs of its nodes, and one that is no longer takes it back; the URL by which
/// others reach its member goes with the version.
#[tokio::test(start_paused = true)]
async fn costs_are_told() {
    let mut stage = Stage::new().await;
    let amounts = json!({ "cpu": "4", "memory": "8Gi" });
    let labels = json!({ "node.kubernetes.io/instance-type": "small" });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1", "labels": labels },
        "status": { "capacity": amounts, "allocatable": amounts } });
    stage.member.create(&node).await;
    let folder = tempfile::tempdir().unwrap();
    let prices = folder.path().join("prices.yaml");
    std::fs::write(&prices, "small: 0.4").unwrap();
    let prices = format!("--instance-prices={}", prices.display());
    let entrypoint = "--cluster-entrypoint=https://m1.example.com";
    stage.start(&[&prices, entrypoint]).await;
    seconds(60).await;
    let told = status(&stage).await;
    let properties = &told["properties"];
    for (name, value) in [
        ("kubernetes.azure.com/per-cpu-core-cost", "0.100"),
        ("kubernetes.azure.com/per-gb-memory-cost", "0.050"),
        ("kubernetes.azure.com/vm-sizes/small/count", "1"),
        ("k8s.io/cluster-entrypoint", "https://m1.example.com"),
    ] {
        assert_eq!(properties[name]["value"], value, "{name}");
    }
    let version = &properties["k8s.io/k8s-version"]["value"];
    assert!(version.is_string(), "{told}");
    assert_eq!(told["conditions"][0]["reason"], "CostsCalculated");
    stage.kill().await;
    stage.start(&[]).await;
    seconds(60).await;
    let told = status(&stage).await;
    let names: Vec<_> = told["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["kubernetes-fleet.io/node-count"]);
    assert!(told["conditions"].is_null(), "{told}");
}
