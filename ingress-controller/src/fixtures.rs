//! Objects of the Karmada API for tests, all in namespace `ns`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use karmada_api::{Cluster, MultiClusterIngress, ResourceBinding, execution_namespace};
use karmada_runtime::commit::Committer;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::{WriteMode, Writer};
use kube::Resource;
use kube::runtime::watcher::Event;
use lab_parts::test_api::TestApi;
use objects::Key;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::events::IngressEvents;
use crate::identity::NAME;
use crate::watch::SharedIndex;

pub(crate) const CONTROLLER: &str = "karmada-rs.io/ingress-controller";
pub(crate) const GATEWAY_CONTROLLER: &str = "karmada-rs.io/multi-cluster";

/// Returns an API with the kinds of Karmada and the namespace `ns`.
pub(crate) async fn karmada() -> TestApi {
    let api = TestApi::with_kinds(karmada_api::crd::installed().unwrap());
    api.create_namespace("ns").await;
    api
}

/// Returns a writer that leads.
pub(crate) fn writer() -> Writer {
    Writer::new(Leadership::always(), WriteMetrics::default())
}

/// Returns the committer to an API. `events` tell its obstacles.
pub(crate) fn committer(api: &TestApi, events: &Arc<IngressEvents>) -> Committer {
    let (mode, notices) = (WriteMode::Perform(writer()), events.notices());
    Committer::new(
        api.client(),
        NAME,
        mode,
        Expectations::default(),
        Some(notices),
    )
}

/// Returns the kinds of exports, which a whole Karmada serves.
pub(crate) fn export_kinds() -> [Value; 2] {
    [
        ("ServiceExport", "multicluster.x-k8s.io", "serviceexports"),
        (
            "PropagationPolicy",
            "policy.karmada.io",
            "propagationpolicies",
        ),
    ]
    .map(|(kind, group, plural)| {
        let schema = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        })
    })
}

/// Returns the definition of a kind of the Gateway API, with any fields.
fn gateway_kind(kind: &str, plural: &str, scope: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.gateway.networking.k8s.io") },
        "spec": {
            "group": "gateway.networking.k8s.io",
            "scope": scope,
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            }],
        },
    })
}

/// Returns the definitions of routes, Gateways and their classes.
pub(crate) fn gateway_kinds() -> [Value; 3] {
    [
        gateway_kind("HTTPRoute", "httproutes", "Namespaced"),
        gateway_kind("Gateway", "gateways", "Namespaced"),
        gateway_kind("GatewayClass", "gatewayclasses", "Cluster"),
    ]
}

pub(crate) fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("a valid object")
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("ns", name)
}

/// Returns an ingress of class `ours` with one path for each of `services`.
pub(crate) fn ingress(name: &str, services: &[&str]) -> MultiClusterIngress {
    let paths = services.iter().map(|service| {
        let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
        json!({ "pathType": "Prefix", "path": "/", "backend": backend })
    });
    let paths: Vec<Value> = paths.collect();
    let rules = [json!({ "http": { "paths": paths } })];
    object(json!({
        "metadata": { "name": name, "namespace": "ns", "uid": name, "resourceVersion": "5" },
        "spec": { "ingressClassName": "ours", "rules": rules },
    }))
}

pub(crate) fn class(name: &str, controller: &str) -> IngressClass {
    object(json!({ "metadata": { "name": name }, "spec": { "controller": controller } }))
}

pub(crate) fn gateway_class(name: &str, controller: &str) -> GatewayClass {
    object(json!({
        "apiVersion": GatewayClass::API_VERSION, "kind": GatewayClass::KIND,
        "metadata": { "name": name },
        "spec": { "controllerName": controller },
    }))
}

/// Returns the Gateway `name` of class `ours` with these listeners for HTTP.
pub(crate) fn gateway(name: &str, listeners: &[&str]) -> Gateway {
    let listeners = listeners
        .iter()
        .map(|name| json!({ "name": name, "protocol": "HTTP", "port": 80 }));
    let listeners: Vec<Value> = listeners.collect();
    object(json!({
        "apiVersion": Gateway::API_VERSION, "kind": Gateway::KIND,
        "metadata": { "name": name, "namespace": "ns" },
        "spec": { "gatewayClassName": "ours", "listeners": listeners },
    }))
}

/// Returns a route of Gateway `web` to port 80 of `service`.
pub(crate) fn http_route(name: &str, service: &str) -> HttpRoute {
    let rule = json!({ "backendRefs": [{ "name": service, "port": 80 }] });
    object(json!({
        "apiVersion": HttpRoute::API_VERSION, "kind": HttpRoute::KIND,
        "metadata": { "name": name, "namespace": "ns", "uid": name, "generation": 1 },
        "spec": { "parentRefs": [{ "name": "web" }], "rules": [rule] },
    }))
}

/// Returns `route` with a filter, which is not served.
pub(crate) fn filtered(mut route: HttpRoute) -> HttpRoute {
    route.metadata.generation = Some(2);
    route.spec.rules[0].filters = vec![json!({ "type": "URLRewrite" })];
    route
}

/// Shows `routes` to an index, as the API lists them together with their Gateway and their class.
pub(crate) fn observe_routes(index: &SharedIndex, routes: Vec<HttpRoute>) -> Vec<Key> {
    index.set_served(true);
    let mut woken = Vec::new();
    for event in listed(vec![gateway_class("ours", GATEWAY_CONTROLLER)]) {
        woken.extend(index.observe_gateway_class(event));
    }
    for event in listed(vec![gateway("web", &["http"])]) {
        woken.extend(index.observe_gateway(event));
    }
    for event in listed(routes) {
        woken.extend(index.observe_route(event));
    }
    woken
}

/// Returns the events of a complete list.
pub(crate) fn listed<K>(objects: Vec<K>) -> Vec<Event<Decoded<K>>> {
    let objects = objects.into_iter().map(Decoded::Valid);
    let mut events = vec![Event::Init];
    events.extend(objects.map(Event::InitApply));
    events.push(Event::InitDone);
    events
}

pub(crate) fn cluster(name: &str, actions: &[&str]) -> Cluster {
    object(json!({
        "metadata": { "name": name },
        "spec": {},
        "status": { "remedyActions": actions },
    }))
}

pub(crate) fn binding(service: &str, clusters: &[&str]) -> ResourceBinding {
    let clusters = clusters.iter().map(|cluster| json!({ "name": cluster }));
    let resource = json!({ "apiVersion": "v1", "kind": "Service", "name": service });
    object(json!({
        "metadata": { "name": format!("{service}-service"), "namespace": "ns" },
        "spec": { "resource": resource, "clusters": clusters.collect::<Vec<_>>() },
    }))
}

pub(crate) fn template(service: &str, port: u16) -> Service {
    object(json!({
        "metadata": { "name": service, "namespace": "ns" },
        "spec": { "ports": [{ "port": port }] },
    }))
}

pub(crate) fn slice(service: &str, cluster: &str, address: &str) -> EndpointSlice {
    let labels = json!({ "kubernetes.io/service-name": format!("derived-{service}") });
    let annotations = json!({ "work.karmada.io/namespace": execution_namespace(cluster) });
    object(json!({
        "metadata": {
            "name": format!("{cluster}-{service}"),
            "namespace": "ns",
            "labels": labels,
            "annotations": annotations,
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address] }],
        "ports": [{ "name": "", "port": 8080 }],
    }))
}

pub(crate) fn applied<K>(object: K) -> Event<Decoded<K>> {
    Event::Apply(Decoded::Valid(object))
}

pub(crate) fn deleted<K>(object: K) -> Event<Decoded<K>> {
    Event::Delete(Decoded::Valid(object))
}

/// Returns the event of an object with the metadata of `object` that does not decode.
pub(crate) fn invalid<K: Resource>(object: &K) -> Event<Decoded<K>> {
    Event::Apply(Decoded::Invalid {
        metadata: Box::new(object.meta().clone()),
        error: "it is of another shape".to_owned(),
    })
}
