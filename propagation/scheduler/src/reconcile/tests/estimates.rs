use std::net::TcpListener;

use clap::Parser;

use super::*;
use crate::args::Args;
use crate::estimators::Answers;

/// Returns how often estimators were looked for.
fn asked(stage: &Stage) -> usize {
    let reads = stage.api.reads();
    let asked = reads.iter().filter(|read| read.contains("estimator"));
    asked.count()
}

/// A cluster whose estimator is away is scheduled to by its status, and only where its room matters is it asked at
/// all. Case I95.
#[tokio::test]
async fn dead_estimator_stops_nothing() {
    let mut stage = Stage::new().await;
    let args = Args::parse_from(["scheduler", "--enable-scheduler-estimator"]).estimators;
    let client = stage.api.client();
    stage.api.create_namespace("karmada-system").await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for name in ["m1", "m2"] {
        let service = json!({
            "metadata": { "name": format!("karmada-scheduler-estimator-{name}") },
            "spec": {
                "type": "ExternalName", "externalName": "localhost",
                "ports": [{ "port": 10352, "targetPort": port }],
            },
        });
        let services = "/api/v1/namespaces/karmada-system/services";
        stage.api.send("POST", services, &service).await;
    }
    stage.reconciler.estimators = Some(Estimators::new(args, client, Answers::default()));
    for name in ["m1", "m2"] {
        let mut roomy = cluster(name, 2);
        let room = json!({ "allocatable": { "pods": "10" } });
        roomy.status.resource_summary = from_value(room).unwrap();
        stage.show_cluster(roomy);
    }
    let (key, path) = web();
    let everywhere = binding("web", "ResourceBinding", &json!({}));
    stage.show(&stage.api.create(&everywhere).await);
    stage.reconcile(&key).await.unwrap();
    stage.assert_settled(&path, &key).await;
    assert_eq!(asked(&stage), 0);

    let dynamic = json!({ "weightPreference": { "dynamicWeight": "AvailableReplicas" } });
    let by_room = json!({ "spec": { "placement": { "replicaScheduling": dynamic } } });
    stage.show(&stage.api.send("PATCH", &path, &by_room).await);
    stage.reconcile(&key).await.unwrap();
    assert_eq!(asked(&stage), 2);
    let stored = stage.assert_settled(&path, &key).await;
    let clusters = json!([{ "name": "m1", "replicas": 1 }, { "name": "m2", "replicas": 1 }]);
    assert_eq!(stored["spec"]["clusters"], clusters);
    assert_eq!(asked(&stage), 0);
}

/// An estimator is to know the nodes that a replica may be on, its namespace and its class: none of that is dropped from
/// the stored binding.
#[tokio::test]
async fn needs_are_remembered() {
    let stage = Stage::new().await;
    let (key, _) = web();
    let needs = json!({
        "namespace": "shop", "priorityClassName": "high",
        "nodeClaim": { "nodeSelector": { "disk": "ssd" } },
    });
    let mut claiming = binding("web", "ResourceBinding", &json!({}));
    claiming["spec"]["replicaRequirements"] = needs.clone();
    stage.show(&stage.api.create(&claiming).await);
    let snapshot = stage.reconciler.index.lock().snapshot(&key).unwrap();
    let known = &snapshot.binding.view().spec.replica_requirements;
    assert_eq!(*known, Some(needs));
}
