use std::time::Duration;

use clap::Parser;
use karmada_runtime::program::Program;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};

use crate::{Args, IDENTITY, NAME, assemble};

const REQUESTS: &str = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers";
const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings";
const CLUSTER_BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings";

/// Starts the program on an API with the bindings of a Deployment and of a ClusterRole.
async fn started(flags: &[&str]) -> TestApi {
    let api = TestApi::with_kinds(karmada_api::crd::fleet().unwrap());
    api.create_namespace("shop").await;
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web" });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "viewer" });
    let bound = json!({ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": { "name": "web-deployment" }, "spec": { "resource": deployment } });
    api.send("POST", BINDINGS, &bound).await;
    let bound = json!({ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
        "metadata": { "name": "viewer-clusterrole" }, "spec": { "resource": role } });
    api.send("POST", CLUSTER_BINDINGS, &bound).await;
    let flags = [&[NAME, "--leader-elect=false"], flags].concat();
    let args = Args::try_parse_from(flags).unwrap();
    let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
    assemble(&args, api.client(), &mut program);
    tokio::spawn(program.run_until(async || std::future::pending().await));
    settle().await;
    api
}

async fn settle() {
    tokio::time::sleep(Duration::from_secs(8)).await;
}

/// Returns a request for the Deployments of these names, and the ClusterRole.
fn request(names: &[&str], ttl: Option<i64>) -> Value {
    let deployments = names.iter().map(|name| json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name }));
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "viewer" });
    let workloads: Vec<_> = deployments.chain([role]).collect();
    let mut request = json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
        "metadata": { "name": "anew" }, "spec": { "workloads": workloads },
    });
    if let Some(ttl) = ttl {
        request["spec"]["ttlSecondsAfterFinished"] = json!(ttl);
    }
    request
}

fn results(request: &Value) -> Vec<(&str, &str, &str)> {
    let observed = request["status"]["observedWorkloads"].as_array().unwrap();
    observed
        .iter()
        .map(|item| {
            (
                item["workload"]["name"].as_str().unwrap(),
                item["result"].as_str().unwrap_or_default(),
                item["reason"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

/// A workload of the same kind and name in another group is not asked to move.
#[tokio::test(start_paused = true)]
async fn another_groups_workload_stays() {
    let api = started(&["--rebalance-workloads"]).await;
    let workload = json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "Deployment", "namespace": "shop", "name": "web" });
    let request = json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
        "metadata": { "name": "anew" }, "spec": { "workloads": [workload] },
    });
    api.send("POST", REQUESTS, &request).await;
    settle().await;
    let done = api.get(&format!("{REQUESTS}/anew")).await;
    assert_eq!(
        results(&done),
        [("web", "Failed", "ReferencedBindingNotFound")]
    );
    let other = api.get(&format!("{BINDINGS}/web-deployment")).await;
    assert_eq!(other["spec"]["rescheduleTriggeredAt"], Value::Null);
}

/// Bindings of both scopes are to be scheduled anew as of the request's creation, a workload without one is named, and an
/// edited request serves only its new workloads. Case I97.
#[tokio::test(start_paused = true)]
async fn bindings_are_scheduled_anew() {
    let api = started(&["--rebalance-workloads"]).await;
    api.send("POST", REQUESTS, &request(&["web", "gone"], None))
        .await;
    settle().await;
    let path = format!("{REQUESTS}/anew");
    let done = api.get(&path).await;
    let created = &done["metadata"]["creationTimestamp"];
    for binding in [
        format!("{BINDINGS}/web-deployment"),
        format!("{CLUSTER_BINDINGS}/viewer-clusterrole"),
    ] {
        let binding = api.get(&binding).await;
        assert_eq!(&binding["spec"]["rescheduleTriggeredAt"], created);
    }
    let served = [
        ("gone", "Failed", "ReferencedBindingNotFound"),
        ("web", "Successful", ""),
        ("viewer", "Successful", ""),
    ];
    assert_eq!(results(&done), served);
    assert!(done["status"]["finishTime"].is_string(), "{done}");

    // Neither time nor an edit of a label is a reason to write.
    api.writes();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    api.send("PATCH", &path, &label).await;
    settle().await;
    assert_eq!(api.writes(), [""; 0]);

    let edited = json!({ "spec": request(&["web", "other"], None)["spec"] });
    api.send("PATCH", &path, &edited).await;
    settle().await;
    assert_eq!(api.writes().len(), 1, "the status");
    let served = [
        ("other", "Failed", "ReferencedBindingNotFound"),
        ("web", "Successful", ""),
        ("viewer", "Successful", ""),
    ];
    assert_eq!(results(&api.get(&path).await), served);
}

/// A request that does not stay is deleted after its end. Case I97.
#[tokio::test(start_paused = true)]
async fn request_goes_after_its_time() {
    let api = started(&["--rebalance-workloads"]).await;
    api.send("POST", REQUESTS, &request(&["web"], Some(0)))
        .await;
    settle().await;
    assert_eq!(api.find(&format!("{REQUESTS}/anew")).await, None);
    let binding = api.get(&format!("{BINDINGS}/web-deployment")).await;
    assert!(binding["spec"]["rescheduleTriggeredAt"].is_string());
}

/// Beside a Karmada its own controller serves requests. Case I97.
#[tokio::test(start_paused = true)]
async fn requests_are_left_to_karmada() {
    let api = started(&[]).await;
    api.send("POST", REQUESTS, &request(&["web"], None)).await;
    settle().await;
    assert_eq!(
        api.get(&format!("{REQUESTS}/anew")).await.get("status"),
        None
    );
}
