//! Placements whose clusters are updated by runs, stage by stage.

use std::time::Duration;

use fleet_api::names::UPDATE_RUN_FINALIZER;
use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const RUNS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdateruns";
const STRATEGIES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdatestrategies";
const APPROVALS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterapprovalrequests";

/// A hub with a placement on three clusters that waits for a run: a canary, with an approval and a wait after it, and two
/// others, with an approval before them.
async fn external() -> Stage {
    let mut stage = Stage::new();
    stage.start(&[]).await;
    for (name, env) in [("c", "canary"), ("p1", "prod"), ("p2", "prod")] {
        stage.join(name, &json!({ "env": env })).await;
    }
    place_external(&stage).await;
    stage.writes();
    stage
}

fn env(value: &str) -> Value {
    json!({ "matchLabels": { "env": value } })
}

async fn place_external(stage: &Stage) {
    stage.create_namespace("application-1").await;
    stage.create(&map()).await;
    let mut new = placement(
        "crp-all",
        "application-1",
        &json!({ "placementType": "PickAll" }),
    );
    new["spec"]["strategy"] = json!({ "type": "External" });
    stage.send("POST", PLACEMENTS, &new).await;
    let strategy = json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterStagedUpdateStrategy",
        "metadata": { "name": "safe" },
        "spec": { "stages": [
            { "name": "canary", "labelSelector": env("canary"),
              "afterStageTasks": [{ "type": "Approval" }, { "type": "TimedWait", "waitTime": "1m" }] },
            { "name": "prod", "labelSelector": env("prod"), "beforeStageTasks": [{ "type": "Approval" }] },
        ] },
    });
    stage.send("POST", STRATEGIES, &strategy).await;
    stage.settle().await;
}

fn run(name: &str, index: &str, state: &str) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterStagedUpdateRun",
        "metadata": { "name": name },
        "spec": { "placementName": "crp-all", "resourceSnapshotIndex": index,
            "stagedRolloutStrategyName": "safe", "state": state },
    })
}

/// Returns the last thing that a run says.
async fn said(stage: &Stage, name: &str) -> String {
    let run = stage.get(&format!("{RUNS}/{name}")).await;
    let conditions = run["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let last = ["Succeeded", "Progressing", "Initialized"]
        .into_iter()
        .find_map(|kind| conditions.iter().find(|one| one["type"] == kind));
    last.map_or_else(String::new, |one| {
        one["reason"].as_str().unwrap().to_owned()
    })
}

/// Approves a request as `kubectl fleet approve` does.
async fn approve(stage: &Stage, name: &str) {
    let said = json!([{ "type": "Approved", "status": "True", "reason": "lgtm", "message": "",
        "lastTransitionTime": clock(), "observedGeneration": 1 }]);
    let path = format!("{APPROVALS}/{name}/status");
    let body = json!({ "status": { "conditions": said } });
    stage.send("PATCH", &path, &body).await;
    stage.settle().await;
}

/// Has time pass, in which the agents are alive.
async fn minutes(stage: &Stage, minutes: u64) {
    for _ in 0..minutes {
        tokio::time::sleep(Duration::from_mins(1)).await;
        for cluster in stage.list(CLUSTERS).await {
            stage.beat(cluster.name(), "True").await;
        }
    }
    stage.settle().await;
}

/// Returns the cluster and the snapshot of each binding.
async fn given(stage: &Stage) -> Vec<String> {
    let bindings = stage.list(BINDINGS).await.into_iter();
    let mut given: Vec<_> = bindings
        .map(|binding| {
            let [cluster, snapshot] = ["targetCluster", "resourceSnapshotName"]
                .map(|field| binding["spec"][field].as_str().unwrap_or_default());
            format!("{cluster} {}", snapshot.trim_start_matches("crp-all-"))
        })
        .collect();
    given.sort();
    given
}

async fn status(stage: &Stage) -> Value {
    stage.get(&format!("{PLACEMENTS}/crp-all")).await["status"].clone()
}

/// Has a run end, whatever it waits for.
async fn finish(stage: &Stage, name: &str) {
    stage.agents().await;
    for request in ["after-canary", "before-prod"] {
        minutes(stage, 1).await;
        if stage
            .list(APPROVALS)
            .await
            .iter()
            .any(|one| one.name() == format!("{name}-{request}"))
        {
            approve(stage, &format!("{name}-{request}")).await;
        }
        stage.agents().await;
    }
    for _ in 0..4 {
        stage.agents().await;
    }
}

/// Case F99: a snapshot that a run has given is kept, to go back to, however many edits come after it: they make none, until a
/// run asks for the latest.
#[tokio::test(start_paused = true)]
async fn releases_are_kept() {
    let stage = external().await;
    for name in ["first", "second"] {
        stage.send("POST", RUNS, &run(name, "", "Run")).await;
        stage.settle().await;
        finish(&stage, name).await;
        assert_eq!(said(&stage, name).await, "UpdateRunSucceeded");
        let edit = json!({ "data": { "key": name } });
        stage.change("PATCH", MAP, &edit).await;
    }
    for value in 0..12 {
        let edit = json!({ "data": { "key": value.to_string() } });
        stage.change("PATCH", MAP, &edit).await;
    }
    let snapshots = stage.list(SNAPSHOTS).await;
    let kept: Vec<_> = snapshots.iter().map(Metadata::name).collect();
    assert_eq!(kept, ["crp-all-0-snapshot", "crp-all-1-snapshot"]);
    stage.send("POST", RUNS, &run("back", "0", "Run")).await;
    stage.settle().await;
    finish(&stage, "back").await;
    assert_eq!(said(&stage, "back").await, "UpdateRunSucceeded");
}

/// Cases F86 and F114: the strategy External gives nothing to anybody, and the placement says who decides.
#[tokio::test(start_paused = true)]
async fn nothing_goes_without_a_run() {
    let stage = external().await;
    assert_eq!(
        bindings(&stage).await,
        ["c Scheduled", "p1 Scheduled", "p2 Scheduled"]
    );
    let waiting = status(&stage).await;
    assert_eq!(
        conditions(&waiting),
        [
            "Scheduled True SchedulingPolicyFulfilled",
            "RolloutStarted Unknown RolloutControlledByExternalController"
        ]
    );
    assert_eq!(waiting["selectedResources"], json!(null));
    assert_eq!(stage.list(ALL_WORKS).await.len(), 0);
    let edit = json!({ "data": { "key": "new" } });
    assert_eq!(stage.change("PATCH", MAP, &edit).await, [""; 0]);
    assert_eq!(stage.list(SNAPSHOTS).await.len(), 0);
}

/// Returns whether each snapshot is called the latest.
async fn labels(stage: &Stage) -> Vec<String> {
    let snapshots = stage.list(SNAPSHOTS).await.into_iter();
    let latest = snapshots.map(|one| {
        let latest = one.label("kubernetes-fleet.io/is-latest-snapshot");
        latest.unwrap().to_owned()
    });
    latest.collect()
}

/// Case F114: a placement that comes to leave its changes to runs keeps its latest snapshot; an edit then is in the next one, which
/// is made for a run.
#[tokio::test(start_paused = true)]
async fn latest_stays_latest() {
    let stage = Stage::with_clusters(&["c"]).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    let path = format!("{PLACEMENTS}/crp-all");
    let external = json!({ "spec": { "strategy": { "type": "External", "rollingUpdate": null } } });
    stage.change("PATCH", &path, &external).await;
    let edit = json!({ "data": { "key": "new" } });
    stage.change("PATCH", MAP, &edit).await;
    assert_eq!(labels(&stage).await, ["true"]);
    let strategy = json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterStagedUpdateStrategy",
        "metadata": { "name": "safe" }, "spec": { "stages": [{ "name": "all", "labelSelector": {} }] },
    });
    stage.send("POST", STRATEGIES, &strategy).await;
    stage.change("POST", RUNS, &run("go", "", "Run")).await;
    assert_eq!(labels(&stage).await, ["false", "true"]);
    stage.agents().await;
    assert_eq!(said(&stage, "go").await, "UpdateRunSucceeded");
    assert_eq!(values(&stage).await, ["new"]);
}

/// Case F80: a run through stages, with approvals and a wait; the placement speaks of the version that all clusters have.
#[tokio::test(start_paused = true)]
async fn run_goes_through_stages() {
    let mut stage = external().await;
    stage
        .change("POST", RUNS, &run("go", "", "Initialize"))
        .await;
    assert_eq!(said(&stage, "go").await, "UpdateRunInitializedSuccessfully");
    let path = format!("{RUNS}/go");
    stage
        .change("PATCH", &path, &json!({ "spec": { "state": "Run" } }))
        .await;
    stage.agents().await;
    assert_eq!(given(&stage).await, ["c 0-snapshot", "p1 ", "p2 "]);
    assert_eq!(said(&stage, "go").await, "UpdateRunWaiting");
    let request = stage.get(&format!("{APPROVALS}/go-after-canary")).await;
    assert_eq!(
        request["metadata"]["labels"],
        json!({ "kubernetes-fleet.io/isLatestUpdateRunApproval": "true",
            "kubernetes-fleet.io/targetUpdateRun": "go", "kubernetes-fleet.io/targetUpdatingStage": "canary",
            "kubernetes-fleet.io/taskType": "afterStage" })
    );
    let spec = json!({ "parentStageRollout": "go", "targetStage": "canary" });
    assert_eq!(request["spec"], spec);
    let differs = status(&stage).await;
    assert_eq!(
        conditions(&differs)[1],
        "RolloutStarted Unknown RolloutControlledByExternalController"
    );
    let indices = differs["placementStatuses"].as_array().unwrap().iter();
    let indices: Vec<_> = indices
        .map(|one| one["observedResourceIndex"].clone())
        .collect();
    assert_eq!(indices, [json!("0"), json!(null), json!(null)]);
    finish(&stage, "go").await;
    assert_eq!(said(&stage, "go").await, "UpdateRunSucceeded");
    assert_eq!(values(&stage).await, ["value"; 3]);
    let done = status(&stage).await;
    assert_eq!(
        conditions(&done).last().unwrap(),
        "Available True ResourceAvailable"
    );
    // An edit changes nothing in the clusters, and so nothing in the words about them.
    stage
        .change("PATCH", MAP, &json!({ "data": { "key": "new" } }))
        .await;
    minutes(&stage, 1).await;
    assert_eq!(timeless(status(&stage).await), timeless(done));
    assert_eq!(values(&stage).await, ["value"; 3]);
    let events = stage.events().await.into_iter();
    let mut reasons: Vec<_> = events.filter_map(|event| event.reason).collect();
    reasons.retain(|reason| reason.starts_with("UpdateRun"));
    reasons.sort();
    reasons.dedup();
    let kinds = ["Initialized", "Succeeded", "Waiting"].map(|kind| format!("UpdateRun{kind}"));
    assert_eq!(reasons, kinds);
    // Neither time nor a restart is a reason to write.
    stage.writes();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Case F80: back to the snapshot before.
#[tokio::test(start_paused = true)]
async fn earlier_snapshot_comes_back() {
    let stage = external().await;
    stage.change("POST", RUNS, &run("first", "", "Run")).await;
    finish(&stage, "first").await;
    // An edit just before it is in the version that it gives.
    stage
        .send("PATCH", MAP, &json!({ "data": { "key": "new" } }))
        .await;
    stage.change("POST", RUNS, &run("second", "", "Run")).await;
    finish(&stage, "second").await;
    assert_eq!(values(&stage).await, ["new"; 3]);
    stage.change("POST", RUNS, &run("back", "0", "Run")).await;
    finish(&stage, "back").await;
    assert_eq!(values(&stage).await, ["value"; 3]);
    let told = status(&stage).await;
    assert_eq!(told["observedResourceIndex"], "0");
    assert_eq!(told["selectedResources"].as_array().unwrap().len(), 2);
}

/// Case F81: a run that can never begin says so for good, and why.
#[tokio::test(start_paused = true)]
async fn bad_run_is_over() {
    let stage = external().await;
    for (field, value, reason) in [
        ("placementName", "absent", "parent placement not found"),
        ("placementName", "a,b", "parent placement not found"),
        (
            "stagedRolloutStrategyName",
            "absent",
            "referenced updateStrategy not found",
        ),
        (
            "resourceSnapshotIndex",
            "7",
            "no resourceSnapshots with index `7`",
        ),
    ] {
        let name = format!("bad-{}-{}", field.len(), value.len());
        let mut bad = run(&name, "", "Run");
        bad["spec"][field] = json!(value);
        stage.change("POST", RUNS, &bad).await;
        let told = stage.get(&format!("{RUNS}/{name}")).await["status"]["conditions"][0].clone();
        assert_eq!(told["reason"], "UpdateRunInitializedFailed");
        assert!(told["message"].as_str().unwrap().contains(reason), "{told}");
    }
}

/// Case F110: of objects that are written together the run may come first.
#[tokio::test(start_paused = true)]
async fn run_may_come_first() {
    let mut stage = Stage::new();
    stage.start(&[]).await;
    for (name, env) in [("c", "canary"), ("p1", "prod"), ("p2", "prod")] {
        stage.join(name, &json!({ "env": env })).await;
    }
    stage.send("POST", RUNS, &run("go", "", "Run")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    place_external(&stage).await;
    assert_eq!(given(&stage).await, ["c 0-snapshot", "p1 ", "p2 "]);
}

/// Case F83: a run that is deleted leaves the clusters as they are, and takes its requests with it.
#[tokio::test(start_paused = true)]
async fn deleted_run_leaves_clusters() {
    let stage = external().await;
    stage.change("POST", RUNS, &run("go", "", "Run")).await;
    stage.agents().await;
    let path = format!("{RUNS}/go");
    let finalizers = stage.get(&path).await["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!([UPDATE_RUN_FINALIZER]));
    assert_eq!(stage.list(APPROVALS).await.len(), 1);
    stage.change("DELETE", &path, &json!({})).await;
    assert!(stage.list(RUNS).await.is_empty());
    assert!(stage.list(APPROVALS).await.is_empty());
    minutes(&stage, 2).await;
    assert_eq!(given(&stage).await, ["c 0-snapshot", "p1 ", "p2 "]);
    assert_eq!(values(&stage).await, ["value"]);
    // Its approval is asked for again.
    stage.change("POST", RUNS, &run("go", "", "Run")).await;
    finish(&stage, "go").await;
    assert_eq!(said(&stage, "go").await, "UpdateRunSucceeded");
}

/// Case F82: a request that somebody deletes is made again.
#[tokio::test(start_paused = true)]
async fn deleted_request_comes_back() {
    let stage = external().await;
    stage.change("POST", RUNS, &run("go", "", "Run")).await;
    stage.agents().await;
    let path = format!("{APPROVALS}/go-after-canary");
    stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(stage.list(APPROVALS).await.len(), 1);
    assert_eq!(said(&stage, "go").await, "UpdateRunWaiting");
}

/// A cluster that is no longer picked keeps its version until a run has gone through its stages.
#[tokio::test(start_paused = true)]
async fn left_cluster_waits_for_a_run() {
    let stage = external().await;
    stage.change("POST", RUNS, &run("go", "", "Run")).await;
    finish(&stage, "go").await;
    let member = format!("{CLUSTERS}/p2");
    stage.change("DELETE", &member, &json!({})).await;
    stage.beat("p2", "False").await;
    stage.settle().await;
    assert_eq!(
        bindings(&stage).await,
        ["c Bound", "p1 Bound", "p2 Unscheduled"]
    );
    stage.change("POST", RUNS, &run("next", "0", "Run")).await;
    finish(&stage, "next").await;
    assert_eq!(said(&stage, "next").await, "UpdateRunSucceeded");
    assert_eq!(bindings(&stage).await, ["c Bound", "p1 Bound"]);
    let next = stage.get(&format!("{RUNS}/next")).await;
    let deleted = &next["status"]["deletionStageStatus"]["clusters"];
    assert_eq!(deleted[0]["clusterName"], "p2");
}

/// Who only observes writes nothing.
#[tokio::test(start_paused = true)]
async fn observer_updates_nothing() {
    let mut stage = external().await;
    stage.kill().await;
    stage.start(&["--observe-only"]).await;
    stage.writes();
    assert_eq!(
        stage.change("POST", RUNS, &run("go", "", "Run")).await,
        [""; 0]
    );
    assert_eq!(said(&stage, "go").await, "");
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// Case F84: the program may die at any write of a run: the next one brings it to the same end, and never gives a cluster
/// anything before its turn.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = external().await;
        stage.limit_writes(allowed);
        stage.change("POST", RUNS, &run("go", "", "Run")).await;
        stage.agents().await;
        let approved = stage.list(APPROVALS).await;
        if approved.iter().any(|one| one.name() == "go-after-canary") {
            approve(&stage, "go-after-canary").await;
            minutes(&stage, 1).await;
        }
        let early = given(&stage).await;
        assert!(early[1..] == ["p1 ", "p2 "], "{allowed}: {early:?}");
        let is_whole = stage.outlive().await;
        finish(&stage, "go").await;
        assert_eq!(said(&stage, "go").await, "UpdateRunSucceeded", "{allowed}");
        assert_eq!(values(&stage).await, ["value"; 3], "{allowed}");
        stage.writes();
        stage.settle().await;
        assert_eq!(stage.written(), [""; 0], "{allowed}");
        if is_whole {
            return;
        }
    }
}
