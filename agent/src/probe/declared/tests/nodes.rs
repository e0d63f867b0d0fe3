use embedded_apiserver::{ApiServer, Fault};
use k8s_openapi::api::core::v1;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;

/// Sets whether a node is ready.
async fn set_ready(nodes: &Api<v1::Node>, name: &str, status: &str) {
    let conditions = json!([{ "type": "Ready", "status": status }]);
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    let parameters = PatchParams::default();
    nodes.patch_status(name, &parameters, &patch).await.unwrap();
}

/// Waits until a round has such an outcome.
async fn until(probe: &Probe, node: &Node, is: impl Fn(&Result<(), Unmet>) -> bool) {
    let begun = Instant::now();
    loop {
        let outcome = run_once(probe, node, PERIOD, AMPLE).await;
        if is(&outcome) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_hours(1), "{outcome:?}");
        sleep(PERIOD).await;
    }
}

fn is_too_few(outcome: &Result<(), Unmet>) -> bool {
    match outcome {
        Err(Unmet::Failed { failure, details }) => {
            assert_eq!(failure.to_string(), "nodes-not-ready");
            details == "1 of 3 nodes are ready"
        }
        _ => false,
    }
}

/// The share of ready nodes decides, as the watch shows it, and an API that is away is no vote.
#[tokio::test(start_paused = true)]
async fn share_of_ready_nodes_decides() {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let nodes: Api<v1::Node> = Api::all(client.clone());
    for name in ["n1", "n2", "n3"] {
        let object = json!({ "metadata": { "name": name } });
        let object = serde_json::from_value(object).unwrap();
        nodes.create(&PostParams::default(), &object).await.unwrap();
        set_ready(&nodes, name, "True").await;
    }
    let probe = probe(json!({ "nodes": { "readyShare": 0.6 } }));
    let mut node = node();
    let outcome = run_once(&probe, &node, PERIOD, AMPLE).await;
    assert_unobserved(&outcome, "the API of the member cluster");
    node.member = Some(client);
    until(&probe, &node, Result::is_ok).await;

    set_ready(&nodes, "n1", "Unknown").await;
    set_ready(&nodes, "n2", "False").await;
    until(&probe, &node, is_too_few).await;

    // The next leader, or this one once it leads again, begins anew.
    probe.kind().rest();
    let away = server.faults().inject(Fault::Unavailable);
    until(&probe, &node, |outcome| {
        let problem = "the nodes cannot be listed: ";
        matches!(outcome, Err(Unmet::Unobserved(reason)) if reason.starts_with(problem))
    })
    .await;
    server.faults().remove(away);
    set_ready(&nodes, "n2", "True").await;
    until(&probe, &node, Result::is_ok).await;
}
