//! Objects for tests, and fleets made of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Parser;
use ingress_controller::provider::{Kubernetes, NamedBalancer};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::condition::DNS_READY;
use karmada_api::{
    Cluster, MultiClusterIngress, Remedy, ResourceBinding, TRAFFIC_CONTROL, execution_namespace,
};
use karmada_runtime::program::Program;
use karmada_runtime::write::Writer;
use kube::Client;
use lab_parts::test_api::TestApi;
use serde_json::{Value, from_value, json};
use traffic::ingress::WHEN_ALL_BLOCKED_ANNOTATION;
use traffic::ingress::kubernetes::Ingresses;

use crate::args::{Args, Command, ControllerArgs, FleetCommand};
use crate::fleet::{FleetSnapshot, put};

/// The namespace of every namespaced object.
pub(crate) const NAMESPACE: &str = "shop";
/// The class of every ingress, which is ours.
pub(crate) const CLASS: &str = "karmada-rs";
/// Its controller.
pub(crate) const CONTROLLER: &str = "karmada-rs.io/ingress-controller";

/// Returns a token with these claims.
pub(crate) fn jwt(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Returns a Cluster as a real Karmada served it, with DNS dead and its traffic blocked.
pub(crate) fn recorded_cluster() -> Cluster {
    serde_json::from_str(include_str!("../../tests/fixtures/cluster.json")).unwrap()
}

/// Returns a cluster whose DNS has this status, if any.
pub(crate) fn cluster(name: &str, dns: Option<&str>, actions: &[&str]) -> Cluster {
    let condition = dns.map(|status| {
        json!({ "type": DNS_READY, "status": status, "reason": "Because", "message": "n1 fails",
            "lastTransitionTime": "2026-11-20T08:00:00Z" })
    });
    let conditions: Vec<Value> = condition.into_iter().collect();
    let actions = (!actions.is_empty()).then_some(actions);
    let status = json!({ "conditions": conditions, "remedyActions": actions });
    from_value(json!({ "metadata": { "name": name }, "spec": {}, "status": status })).unwrap()
}

/// Returns a Remedy that blocks every cluster whose DNS is dead.
pub(crate) fn on_dns() -> Remedy {
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    let matches = json!([{ "clusterConditionMatch": requirement }]);
    remedy(
        "dns",
        &json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] }),
    )
}

/// Returns a Remedy that blocks these clusters at once.
pub(crate) fn maintenance(clusters: &[&str]) -> Remedy {
    let affinity = json!({ "clusterNames": clusters });
    remedy(
        "maintenance",
        &json!({ "clusterAffinity": affinity, "actions": [TRAFFIC_CONTROL] }),
    )
}

pub(crate) fn remedy(name: &str, spec: &Value) -> Remedy {
    from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

pub(crate) fn class() -> IngressClass {
    from_value(json!({ "metadata": { "name": CLASS }, "spec": { "controller": CONTROLLER } }))
        .unwrap()
}

/// Returns the binding of a Service.
pub(crate) fn binding(service: &str, clusters: &[&str]) -> ResourceBinding {
    let targets: Vec<Value> = clusters
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let resource =
        json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": service });
    from_value(json!({
        "metadata": { "name": format!("{service}-service"), "namespace": NAMESPACE },
        "spec": { "resource": resource, "clusters": targets },
    }))
    .unwrap()
}

/// Returns the endpoints of a Service that Karmada collected from a cluster.
pub(crate) fn slice(service: &str, cluster: &str, ip: &str, is_ready: bool) -> EndpointSlice {
    from_value(json!({
        "metadata": {
            "name": format!("imported-{cluster}-{service}"),
            "namespace": NAMESPACE,
            "labels": {
                "kubernetes.io/service-name": format!("derived-{service}"),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
            },
            "annotations": { "work.karmada.io/namespace": execution_namespace(cluster) },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [ip], "conditions": { "ready": is_ready } }],
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
    }))
    .unwrap()
}

/// Returns an ingress with one path for each Service, and with this value of the annotation, if any.
pub(crate) fn ingress(
    name: &str,
    services: &[&str],
    when_all_blocked: Option<&str>,
) -> MultiClusterIngress {
    let paths: Vec<Value> = services
        .iter()
        .map(|service| {
            let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
            json!({ "path": format!("/{service}"), "pathType": "Prefix", "backend": backend })
        })
        .collect();
    let annotations = when_all_blocked
        .map(|when_all_blocked| json!({ WHEN_ALL_BLOCKED_ANNOTATION: when_all_blocked }));
    from_value(json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": { "ingressClassName": CLASS,
            "rules": [{ "host": "shop.example.com", "http": { "paths": paths } }] },
    }))
    .unwrap()
}

/// Returns the ingress with the status that the ingress-controller gives it.
pub(crate) fn with_status(
    mut ingress: MultiClusterIngress,
    located: &[&str],
    blocked: &[&str],
) -> MultiClusterIngress {
    let locations = json!([{ "name": "web", "clusters": located }]);
    let blocked = (!blocked.is_empty()).then_some(blocked);
    let status = json!({ "serviceLocations": locations, "trafficBlockClusters": blocked });
    ingress.status = from_value(status).unwrap();
    ingress
}

/// Returns a fleet in which `member1` is blocked because of its DNS and `member2` serves.
pub(crate) fn fleet() -> FleetSnapshot {
    let both = ["member1", "member2"];
    let mut fleet = FleetSnapshot::default();
    put(&mut fleet.clusters, recorded_cluster());
    put(&mut fleet.clusters, cluster("member2", Some("True"), &[]));
    put(&mut fleet.remedies, on_dns());
    put(&mut fleet.classes, class());
    put(&mut fleet.bindings, binding("web", &both));
    put(&mut fleet.slices, slice("web", "member1", "10.1.0.1", true));
    put(&mut fleet.slices, slice("web", "member2", "10.2.0.1", true));
    let shop = ingress("shop", &["web"], None);
    put(&mut fleet.ingresses, with_status(shop, &both, &["member1"]));
    fleet
}

fn said(kind: &str, status: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": "Because", "message": "",
        "lastTransitionTime": "2026-11-20T08:00:00Z" })
}

fn member(name: &str, conditions: &[Value]) -> Value {
    json!({ "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": { "name": name }, "spec": { "identity": { "kind": "User", "name": name } },
        "status": { "conditions": conditions } })
}

fn entry(cluster: &str) -> Value {
    json!({ "clusterName": cluster, "conditions": [said("Scheduled", "True")] })
}

/// Creates a hub of placements that has no Remedies and no ingresses. Of its members m1 has the action, and both have Service
/// web, of which m1 tells an endpoint.
pub(crate) async fn hub() -> TestApi {
    let api = TestApi::with_kinds(fleet_api::definitions());
    let blocked = [said(DNS_READY, "False"), said(TRAFFIC_CONTROL, "True")];
    api.create(&member("m1", &blocked)).await;
    api.create(&member("m2", &[said(DNS_READY, "True")])).await;
    let service =
        json!({ "version": "v1", "kind": "Service", "name": "web", "namespace": NAMESPACE });
    let status = json!({ "selectedResources": [service],
        "placementStatuses": [entry("m1"), entry("m2")] });
    let namespace = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": NAMESPACE });
    api.create(&json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement",
        "metadata": { "name": "shop" }, "spec": { "resourceSelectors": [namespace] },
        "status": status,
    }))
    .await;
    api.create_namespace("fleet-member-m1").await;
    let mut told = slice("web", "m1", "10.1.0.1", true);
    told.metadata.namespace = Some("fleet-member-m1".to_owned());
    let of = ("networking.karmada-rs.io/service-namespace", NAMESPACE);
    let annotation = [of].map(|(key, value)| (key.to_owned(), value.to_owned()));
    told.metadata.annotations = Some(annotation.into());
    api.create(&told).await;
    api
}

/// Returns the definition of routes, with any fields.
pub(crate) fn http_routes() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({ "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} } });
    let names = json!({ "kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "httproutes.gateway.networking.k8s.io" },
        "spec": { "group": "gateway.networking.k8s.io", "scope": "Namespaced",
            "names": names, "versions": [version] },
    })
}

/// Returns the flags of the controllers, given these.
pub(crate) fn controllers(flags: &[&str]) -> ControllerArgs {
    let line = ["kubectl-remedy", "why", "member1"];
    let args = Args::try_parse_from(line.iter().chain(flags)).unwrap();
    match args.command {
        Command::Fleet(FleetCommand::Why(args)) => args.controllers,
        _ => unreachable!("the line has the command why"),
    }
}

/// Runs the remedy-controller with these flags.
pub(crate) fn run_remedy_controller(karmada: Client, flags: &[&str]) {
    let mut program = Program::new(remedy_controller::IDENTITY, ([127, 0, 0, 1], 0).into());
    let line = [remedy_controller::NAME].into_iter();
    let args = remedy_controller::Args::try_parse_from(line.chain(flags.iter().copied()));
    remedy_controller::assemble(&args.unwrap(), karmada, &mut program);
    tokio::spawn(program.run_until(async || std::future::pending().await));
}

/// Runs the ingress-controller, which writes its ingresses into a gateway cluster.
pub(crate) fn run_ingress_controller(karmada: Client, gateway: Client) {
    let mut program = Program::new(ingress_controller::IDENTITY, ([127, 0, 0, 1], 0).into());
    let flags = [ingress_controller::NAME, "--export-services=false"];
    let args = ingress_controller::Args::try_parse_from(flags).unwrap();
    let routing = Ingresses::new(&CONTROLLER.parse().unwrap(), None);
    let balancer = |writer: &Writer| NamedBalancer::only(Kubernetes::new(gateway, writer, routing));
    ingress_controller::assemble(args, karmada, balancer, &mut program);
    tokio::spawn(program.run_until(async || std::future::pending().await));
}
