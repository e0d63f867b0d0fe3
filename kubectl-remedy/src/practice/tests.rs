//! Practices on an embedded API with the real remedy-controller, in virtual time.

use clap::Parser;
use karmada_api::condition::DNS_READY;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};

use super::*;
use crate::args::{Args, Command, FleetCommand};
use crate::fixtures::run_remedy_controller;

const REMEDY: &str = "/apis/remedy.karmada.io/v1alpha1/remedies/practice-m1";

fn args(line: &str) -> PracticeArgs {
    let words = ["kubectl-remedy", "practice"].into_iter();
    let args = Args::try_parse_from(words.chain(line.split_whitespace())).unwrap();
    match args.command {
        Command::Fleet(FleetCommand::Practice(args)) => args,
        _ => unreachable!("the line has the command practice"),
    }
}

/// Creates a fleet of two clusters whose DNS is well.
async fn fleet() -> TestApi {
    let definitions = karmada_api::crd::stand_ins().unwrap().into_iter();
    let installed = karmada_api::crd::installed().unwrap();
    let api = TestApi::with_kinds(definitions.chain(installed));
    api.create_namespace("karmada-system").await;
    for name in ["m1", "m2"] {
        api.create(&json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name }, "spec": {}, "status": dns("True"),
        }))
        .await;
    }
    api
}

fn dns(status: &str) -> Value {
    json!({ "conditions": [{ "type": DNS_READY, "status": status, "reason": "r", "message": "",
        "lastTransitionTime": "2026-11-20T08:00:00Z" }] })
}

fn practiced(remedy: &Value) -> &Value {
    let conditions = remedy["status"]["conditions"].as_array().unwrap();
    let mut conditions = conditions.iter();
    conditions
        .find(|condition| condition["type"] == "Practiced")
        .unwrap()
}

/// A practice that goes well, and one that is ended because another cluster gets worse: the outcome of the last is in the
/// status of the Remedy, beside the conditions of the remedy-controller, and each is an Event. Case T25.
#[tokio::test(start_paused = true)]
async fn outcome_is_recorded() {
    let api = fleet().await;
    run_remedy_controller(api.user(), &[]);
    let practice = args("m1 --for=10m");
    let well = run(&practice, &api.client(), Timestamp::now()).await;
    assert_eq!(well.unwrap(), Answer::Yes);
    let remedy = api.get(REMEDY).await;
    assert_eq!(practiced(&remedy)["reason"], "PracticeSucceeded");

    // The clock is the machine's, and by it the first has not ended yet.
    api.send("DELETE", REMEDY, &Value::Null).await;
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";
    while api.get(path).await["status"]["remedyActions"].is_array() {
        sleep(Duration::from_millis(100)).await;
    }
    let other = api.clone();
    tokio::spawn(async move {
        sleep(Duration::from_mins(2)).await;
        let path = "/apis/cluster.karmada.io/v1alpha1/clusters/m2/status";
        let status = json!({ "status": dns("False") });
        other.send("PATCH", path, &status).await;
    });
    let start = Instant::now();
    let ended = run(&practice, &api.client(), Timestamp::now()).await;
    assert_eq!(ended.unwrap(), Answer::No);
    assert!(start.elapsed() < Duration::from_mins(3));
    let remedy = api.get(REMEDY).await;
    let outcome = practiced(&remedy);
    assert_eq!(outcome["status"], "False");
    let message = outcome["message"].as_str().unwrap();
    assert!(
        message.ends_with("ended early: ServiceDomainNameResolutionReady of m2 is False"),
        "{message}"
    );
    let end = &remedy["metadata"]["annotations"][EXPIRES_AT];
    let end: Timestamp = end.as_str().unwrap().parse().unwrap();
    assert!(end <= Timestamp::now());
    let reasons: Vec<_> = api
        .events()
        .await
        .into_iter()
        .filter_map(|event| event.reason)
        .collect();
    for reason in ["PracticeSucceeded", "PracticeEndedEarly"] {
        assert!(reasons.iter().any(|one| one == reason), "{reasons:?}");
    }
}

/// A practice that nobody carries out proves nothing. Case T25.
#[tokio::test(start_paused = true)]
async fn unblocked_practice_has_no_outcome() {
    let api = fleet().await;
    let practice = args("m1 --for=1m");
    let answer = run(&practice, &api.client(), Timestamp::now()).await;
    assert_eq!(answer.unwrap(), Answer::No);
    let remedy = api.get(REMEDY).await;
    assert_eq!(practiced(&remedy)["reason"], "PracticeInterrupted");
}

/// Trouble that only the last look finds is no success. Case T25.
#[tokio::test(start_paused = true)]
async fn last_look_counts() {
    let api = fleet().await;
    let other = api.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(6)).await;
        let path = "/apis/cluster.karmada.io/v1alpha1/clusters/m2/status";
        let status = json!({ "status": dns("False") });
        other.send("PATCH", path, &status).await;
    });
    let practice = args("m1 --for=7s");
    let answer = run(&practice, &api.client(), Timestamp::now()).await;
    assert_eq!(answer.unwrap(), Answer::No);
    let remedy = api.get(REMEDY).await;
    assert_eq!(practiced(&remedy)["reason"], "PracticeEndedEarly");
}

/// Who takes the Remedy over during a practice keeps the cluster blocked for as long as he says. Case T25.
#[tokio::test(start_paused = true)]
async fn replaced_remedy_is_left_alone() {
    let api = fleet().await;
    let (user, end) = (api.clone(), "2100-01-01T00:00:00Z");
    tokio::spawn(async move {
        sleep(Duration::from_mins(1)).await;
        let annotations = json!({ EXPIRES_AT: end });
        let patch = json!({ "metadata": { "annotations": annotations } });
        user.send("PATCH", REMEDY, &patch).await;
    });
    let practice = args("m1 --for=10m");
    let answer = run(&practice, &api.client(), Timestamp::now()).await;
    assert_eq!(answer.unwrap(), Answer::No);
    let remedy = api.get(REMEDY).await;
    assert_eq!(practiced(&remedy)["reason"], "PracticeInterrupted");
    assert_eq!(remedy["metadata"]["annotations"][EXPIRES_AT], end);
}

/// Neither a cluster that is blocked nor one that does not exist is practised without.
#[tokio::test(start_paused = true)]
async fn blocked_cluster_is_left_alone() {
    let api = fleet().await;
    let block = json!({ "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "maintenance" },
        "spec": { "clusterAffinity": { "clusterNames": ["m1"] }, "actions": [TRAFFIC_CONTROL] } });
    api.create(&block).await;
    let now = Timestamp::now();
    let answer = run(&args("m1"), &api.client(), now).await.unwrap();
    assert_eq!(answer, Answer::No);
    let error = run(&args("nowhere"), &api.client(), now).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no cluster nowhere");
    assert_eq!(api.writes(), [""; 0]);
}
