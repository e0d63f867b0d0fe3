use std::slice;

use k8s_openapi::api::networking::v1::IngressTLS;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;

use super::*;
use crate::provider::balancer::LoadBalancer;
use crate::provider::contract::{self, Stage};

type HttpStage = GatewayStage<HttpRouting>;

/// Returns the outcome for an ingress with one host, as a provider that starts now finds it.
async fn ensured(stage: &HttpStage, desired: &Desired) -> Ensured {
    let provider = stage.provider().await;
    provider.ensure(desired).await.unwrap()
}

fn shop() -> Desired {
    contract::desired("i", &["s"], &["m1"])
}

fn shown(ensured: &Ensured) -> Vec<(Reason, String)> {
    let obstacles = ensured.obstacles.iter();
    obstacles
        .map(|obstacle| (obstacle.reason, obstacle.to_string()))
        .collect()
}

/// Returns the path of the only route of ours.
async fn route(stage: &HttpStage) -> String {
    let ours = HttpRouting::routing().managed_by().selector();
    let ours = ListParams::default().labels(&ours);
    let [route] = &all::<HttpRoute>(stage.api.user(), &ours).await[..] else {
        panic!("one host");
    };
    format!("{ROUTES}/{}", route.metadata.name.clone().unwrap())
}

/// A Gateway that does not exist is told, and everything is there once it is made.
#[tokio::test]
async fn missing_gateway_is_told() {
    let stage = HttpStage::new().await;
    stage.api.send("DELETE", GATEWAY, &Value::Null).await;
    let first = ensured(&stage, &shop()).await;
    let said = "Gateway infra/web does not exist; create it, or name another with --gateway";
    assert_eq!(shown(&first), [(Reason::GatewayNotFound, said.to_owned())]);
    create_gateway(&stage.api).await;
    stage.changes();
    assert_eq!(shown(&ensured(&stage, &shop()).await), []);
    assert_eq!(stage.changes(), 0);
}

/// An ingress that another keeps from its host is looked at as soon as the route of that one changes or goes, until it is deleted
/// itself.
#[tokio::test]
async fn freed_host_wakes() {
    let stage = HttpStage::new().await;
    let provider = stage.provider().await;
    provider.ensure(&shop()).await.unwrap();
    stage.catch_up(&provider).await;
    let mut second = contract::desired("j", &["s"], &["m1"]);
    second.routes = shop().routes;
    let told = provider.ensure(&second).await.unwrap();
    let reasons: Vec<Reason> = told.obstacles.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, [Reason::RouteConflict]);
    let mut routes = all::<HttpRoute>(stage.api.user(), &ListParams::default()).await;
    let gone = Event::Delete(Decoded::Valid(routes.remove(0)));
    let j = contract::key("j");
    assert_eq!(provider.routing.waiting(&gone), slice::from_ref(&j));
    assert_eq!(
        provider.routing.waiting(&Event::InitDone),
        slice::from_ref(&j)
    );
    provider.delete(&j, &BTreeSet::new()).await.unwrap();
    assert_eq!(provider.routing.waiting(&gone), []);
}

fn accepted_status(accepted: &str) -> Value {
    let parent = json!({ "name": "web", "namespace": "infra" });
    let condition = json!({ "type": "Accepted", "status": accepted,
        "reason": "NotAllowedByListeners", "message": "",
        "lastTransitionTime": "2026-11-01T00:00:00Z" });
    json!({ "status": { "parents": [{ "controllerName": "example.com/theirs",
        "parentRef": parent, "conditions": [condition] }] } })
}

/// The word of the Gateway's controller on a route becomes an obstacle, or the addresses of the ingress. The status of a
/// route is never ours to write.
#[tokio::test]
async fn controllers_word_counts() {
    let stage = HttpStage::new().await;
    ensured(&stage, &shop()).await;
    let path = route(&stage).await;
    let addresses = json!({ "status": { "addresses": [{ "value": "192.0.2.1" }] } });
    let status = format!("{GATEWAY}/status");
    stage.api.send("PATCH", &status, &addresses).await;
    let status = format!("{path}/status");
    stage.changes();
    for (accepted, obstacles) in [("True", 0), ("False", 1)] {
        stage
            .api
            .send("PATCH", &status, &accepted_status(accepted))
            .await;
        let found = ensured(&stage, &shop()).await;
        assert_eq!(found.obstacles.len(), obstacles, "{accepted}");
        let reported = found.load_balancer.as_ref();
        let served = reported.unwrap().ingress.is_some();
        assert_eq!(served, obstacles == 0);
        for (reason, said) in shown(&found) {
            assert_eq!(reason, Reason::RouteNotAccepted);
            assert!(said.ends_with(": NotAllowedByListeners"), "{said}");
        }
    }
    assert_eq!(stage.changes(), 0);
}

/// An HTTPRoute of somebody else with the same host and path is told and left alone.
#[tokio::test]
async fn foreign_route_is_told() {
    let stage = HttpStage::new().await;
    let theirs = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "name": "theirs", "namespace": "infra" },
        "spec": { "parentRefs": [{ "name": "web" }], "hostnames": ["s.i.example.com"], "rules": [{}] },
    });
    let theirs: HttpRoute = serde_json::from_value(theirs).unwrap();
    let before = stage.api.create(&theirs).await;
    let found = shown(&ensured(&stage, &shop()).await);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Reason::RouteConflict);
    let path = "/apis/gateway.networking.k8s.io/v1/namespaces/infra/httproutes/theirs";
    let after: HttpRoute = serde_json::from_value(stage.api.get(path).await).unwrap();
    assert_eq!(after, before);
    assert_eq!(stage.served("s.i.example.com").await.len(), 1);
}

/// Two ingresses want one host: the first has it, and the second gets it once the first is gone.
#[tokio::test]
async fn host_has_one_ingress() {
    let stage = HttpStage::new().await;
    ensured(&stage, &shop()).await;
    let mut second = contract::desired("j", &["s"], &["m2"]);
    second.routes = shop().routes;
    let found = shown(&ensured(&stage, &second).await);
    assert_eq!(found.len(), 1, "{found:?}");
    let said = "PathPrefix / of s.i.example.com is not served for this MultiClusterIngress: ns/i has it already; remove it from one of the two";
    assert_eq!(found[0], (Reason::RouteConflict, said.to_owned()));
    let host = "s.i.example.com";
    assert_eq!(Vec::from_iter(stage.served(host).await), ["10.1.0.0"]);
    assert_eq!(shown(&ensured(&stage, &shop()).await), []);

    let provider = stage.provider().await;
    let none = BTreeSet::new();
    provider.delete(&contract::key("i"), &none).await.unwrap();
    assert_eq!(shown(&ensured(&stage, &second).await), []);
    assert_eq!(Vec::from_iter(stage.served(host).await), ["10.2.0.0"]);
}

/// A route has its host from its writing on, before a watch shows it.
#[tokio::test]
async fn unseen_route_has_its_host() {
    let stage = HttpStage::new().await;
    let provider = stage.provider().await;
    provider.ensure(&shop()).await.unwrap();
    let mut second = contract::desired("j", &["s"], &["m2"]);
    second.routes = shop().routes;
    let found = provider.ensure(&second).await.unwrap();
    let reasons = found.obstacles.iter().map(|obstacle| obstacle.reason);
    assert_eq!(reasons.collect::<Vec<_>>(), [Reason::RouteConflict]);
}

/// A host with TLS that no listener serves is told, and the Gateway stays as it is.
#[tokio::test]
async fn unserved_tls_is_told() {
    let stage = HttpStage::new().await;
    let mut desired = shop();
    desired.routes.tls = Some(vec![IngressTLS {
        hosts: Some(vec!["s.i.example.com".to_owned()]),
        secret_name: Some("cert".to_owned()),
    }]);
    let before = stage.api.get(GATEWAY).await;
    let found = shown(&ensured(&stage, &desired).await);
    let said = "no listener of Gateway infra/web serves s.i.example.com with TLS; add one with protocol HTTPS, this host and a certificate";
    assert_eq!(found, [(Reason::TlsNotServed, said.to_owned())]);
    assert_eq!(stage.api.get(GATEWAY).await, before);
}

fn other_route(host: &str, version: &str) -> Event<Decoded<HttpRoute>> {
    let object = json!({
        "metadata": { "name": "theirs", "namespace": "infra", "resourceVersion": version },
        "spec": { "hostnames": [host] },
        "status": { "parents": [{ "controllerName": version }] },
    });
    let route: HttpRoute = serde_json::from_value(object).unwrap();
    Event::Apply(Decoded::Valid(route))
}

/// The status of somebody else's route concerns no host, a change of its hosts those before and after.
#[test]
fn other_route_concerns_its_hosts() {
    let mut others = OtherRoutes::default();
    for (event, concerned) in [
        (other_route("a", "1"), vec!["a"]),
        (other_route("a", "2"), vec![]),
        (other_route("b", "3"), vec!["a", "b"]),
    ] {
        let found: Vec<String> = others.observe(event).into_iter().collect();
        assert_eq!(found, concerned);
    }
    assert_eq!(others.with_host("a").len(), 0);
    assert_eq!(others.with_host("b").len(), 1);
}

fn gateway(listener: &str, attached: u32) -> Event<Decoded<Gateway>> {
    let object = json!({
        "metadata": { "name": "web", "namespace": "infra", "resourceVersion": format!("{listener}{attached}") },
        "spec": { "listeners": [{ "name": listener, "protocol": "HTTP" }] },
        "status": { "listeners": [{ "name": listener, "attachedRoutes": attached }] },
    });
    let gateway: Gateway = serde_json::from_value(object).unwrap();
    Event::Apply(Decoded::Valid(gateway))
}

/// A Gateway with a controller that counts routes wakes nobody, and one that gets another listener wakes all.
#[test]
fn only_what_counts_wakes() {
    let mut parent = Parent::default();
    assert!(parent.observe(gateway("a", 1)));
    assert!(!parent.observe(gateway("a", 2)));
    assert!(parent.observe(gateway("b", 2)));
}
