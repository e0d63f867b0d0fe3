//! The endpoints of placed Services, which the hub hears of.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use serde_json::{Value, from_value, json};

use crate::endpoints::add_rows;
use crate::index::Agent;

use super::stage::{Stage, WORKS, namespace, work};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/application-1/endpointslices";
const COLLECTED: &str =
    "/apis/discovery.k8s.io/v1/namespaces/fleet-member-kind-cluster-1/endpointslices";

fn service() -> Value {
    json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "application-1" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80 }] } })
}

/// Returns a slice as the controller of the member keeps it.
fn slice(service: &str, address: &str) -> Value {
    json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": format!("{service}-1"), "namespace": "application-1", "labels": {
            "kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] })
}

/// Returns the Services, with their namespaces, and addresses of the slices on the hub.
async fn collected(stage: &Stage) -> Vec<String> {
    let slices = stage.hub.get(COLLECTED).await;
    let slices = slices["items"].as_array().unwrap().iter();
    slices
        .map(|slice| {
            let metadata = &slice["metadata"];
            let parts = [
                &metadata["annotations"]["networking.karmada-rs.io/service-namespace"],
                &metadata["labels"]["kubernetes.io/service-name"],
                &slice["endpoints"][0]["addresses"][0],
            ];
            let [namespace, service, address] =
                parts.map(|value| value.as_str().unwrap_or_default());
            format!("{namespace}/{service} {address}")
        })
        .collect()
}

/// Case F120: a placed Service has its endpoints on the hub, no other has, and they go with it.
#[tokio::test(start_paused = true)]
async fn placed_service_has_endpoints() {
    let mut stage = Stage::new().await;
    stage.start(&["--collect-endpoints"]).await;
    let both = [namespace(), service()];
    stage.hub.send("POST", WORKS, &work(&both)).await;
    stage.settle().await;
    for (service, address) in [("web", "10.1.0.1"), ("other", "10.1.0.2")] {
        let slice = slice(service, address);
        stage.member.send("POST", SLICES, &slice).await;
    }
    stage.settle().await;
    let of_web = ["application-1/derived-web 10.1.0.1"];
    assert_eq!(collected(&stage).await, of_web);

    let path = format!("{SLICES}/web-1");
    let endpoints = json!({ "endpoints": [{ "addresses": ["10.1.0.9"] }] });
    stage.member.send("PATCH", &path, &endpoints).await;
    stage.settle().await;
    let of_web = ["application-1/derived-web 10.1.0.9"];
    assert_eq!(collected(&stage).await, of_web);

    stage.kill().await;
    stage.written();
    stage.start(&["--collect-endpoints"]).await;
    let written = stage.hub.writes();
    let mut calls = written.iter();
    assert!(
        !calls.any(|call| call.contains("endpointslices")),
        "{written:?}"
    );

    stage.place(&both[..1]).await;
    assert_eq!(collected(&stage).await, [""; 0]);
}

/// A Work that cannot be read may bring any Service. Once it is gone, the collection is decided anew.
#[test]
fn gone_work_keeps_nothing() {
    let agent = Agent::new("fleet-member-m1".to_owned(), true);
    let mut works = add_rows(&agent, Watch::new(&agent.index, |index| &mut index.works));
    let copy: EndpointSlice = from_value(json!({
        "metadata": { "name": "a", "namespace": "fleet-member-m1",
            "labels": { "kubernetes.io/service-name": "derived-web" },
            "annotations": { "networking.karmada-rs.io/service-namespace": "shop" } },
        "addressType": "IPv4", "endpoints": [],
    }))
    .unwrap();
    let copy = Event::Apply(Decoded::Valid(copy));
    drop(agent.index.lock().collected.observe(copy));
    let metadata = json!({ "name": "w", "namespace": "fleet-member-m1", "resourceVersion": "1" });
    let unreadable = Decoded::Invalid {
        metadata: Box::new(from_value(metadata).unwrap()),
        error: "no such field".to_owned(),
    };
    works.observe(Event::Apply(unreadable.clone()));
    let woken = &agent.queues.services;
    assert_eq!(woken.take_all(), []);
    works.observe(Event::Delete(unreadable));
    assert_eq!(woken.take_all(), [Key::new("shop", "web")]);
}

/// A copy whose marks somebody has taken is left alone.
#[tokio::test(start_paused = true)]
async fn strange_slice_is_left() {
    let mut stage = Stage::new().await;
    stage.start(&["--collect-endpoints"]).await;
    let both = [namespace(), service()];
    stage.hub.send("POST", WORKS, &work(&both)).await;
    stage.settle().await;
    let slice = slice("web", "10.1.0.1");
    stage.member.send("POST", SLICES, &slice).await;
    stage.settle().await;
    let copies = stage.hub.get(COLLECTED).await;
    let name = copies["items"][0]["metadata"]["name"].as_str().unwrap();
    let copy = format!("{COLLECTED}/{name}");
    let labels = json!({ "app.kubernetes.io/managed-by": null,
        "endpointslice.kubernetes.io/managed-by": "somebody" });
    let theirs = json!({ "metadata": { "labels": labels } });
    let theirs = stage.hub.send("PATCH", &copy, &theirs).await;
    stage.settle().await;
    assert_eq!(stage.hub.get(&copy).await, theirs);
}

/// Without the flag nothing is asked of the slices of the member, nor written on the hub.
#[tokio::test(start_paused = true)]
async fn endpoints_are_collected_by_flag() {
    let stage = Stage::joined().await;
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), service()]))
        .await;
    stage.settle().await;
    let calls = [stage.hub.calls(), stage.member.calls()].concat();
    let mut all = calls.iter();
    assert!(
        !all.any(|call| call.contains("endpointslices")),
        "{calls:?}"
    );
}
