//! The gateway's trouble is not Karmada's.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::{
    core::v1::{Node, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::Ingress,
};
use karmada_api::{MultiClusterIngress, PropagationPolicy, ServiceExport};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Fleet, INGRESS, Member, NAMESPACE, SERVICE, maintenance},
    manifests, on_both,
    own_members::OwnMembers,
    programs::{Binary, Profile},
    propagation::start_program,
    relay::Relay,
    served::Served,
    wait::until,
};
use serde_json::json;
use tokio::time::timeout;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
/// Eight at a time that each wait ten seconds for the gateway would take more than four minutes.
const INGRESSES: usize = 200;
const BLOCKED_WITHIN: Duration = Duration::from_mins(1);

/// A gateway that does not answer holds up no status, and is caught up with at once.
async fn silent_gateway_delays_no_status(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let names: Vec<String> = (0..INGRESSES).map(|n| format!("i{n}")).collect();
    for name in &names {
        fleet.create_ingress(name, "karmada-rs").await?;
    }
    let relay = Relay::start(fleet.gateway.address()).await?;
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet.ingress_controller_through(&relay).await?;
    let queue = r#"karmada_ingress_controller_queue_length{controller="load_balancer"}"#;
    fleet.serves(&MEMBERS).await?;
    controller
        .until_metric(queue, |length| length == 0.0)
        .await?;

    relay.set_silent(true);
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    let ingresses = fleet.ingresses();
    let blocked = names.iter().map(|name| {
        until(&ingresses, name, "blocked", |ingress| {
            let status = ingress.and_then(|ingress| ingress.status.as_ref());
            status.is_some_and(|status| status.traffic_block_clusters.is_some())
        })
    });
    timeout(BLOCKED_WITHIN, try_join_all(blocked))
        .await
        .context("the gateway holds up the status")??;
    let waiting = "karmada_ingress_controller_waiting_for_load_balancer";
    controller
        .until_metric(waiting, |waiting| waiting > 0.0)
        .await?;

    relay.set_silent(false);
    fleet.serves(&[Member(2)]).await?;
    controller
        .until_metric(queue, |length| length == 0.0)
        .await?;
    controller.stop().await
}

/// One of two gateways is silent: the other is written to as fast as ever, and the silent one catches up.
async fn dead_gateway_delays_no_other(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let other = ControlPlane::start("other", server).await?;
    other.namespace("karmada-rs").await?;
    manifests::apply(&other.client(), "gateway/ingress-controller.yaml").await?;
    let served_there = Served::watch(other.client(), NAMESPACE);
    let relay = Relay::start(other.address()).await?;
    relay.set_silent(true);
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet
        .ingress_controller_with_gateways(&other, &relay)
        .await?;
    fleet.serves(&MEMBERS).await?;
    let ingresses: Api<Ingress> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    report_address(&ingresses, "192.0.2.1").await?;
    has_addresses(&fleet.ingresses(), &["192.0.2.1"]).await?;

    relay.set_silent(false);
    served_there.becomes(&MEMBERS.map(Member::backend)).await?;
    let there: Api<Ingress> = Api::namespaced(other.client(), NAMESPACE);
    until(&there, INGRESS, "served", |found| found.is_some()).await?;
    report_address(&there, "192.0.2.2").await?;
    has_addresses(&fleet.ingresses(), &["192.0.2.1", "192.0.2.2"]).await?;

    relay.set_silent(true);
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.serves(&[Member(2)]).await?;
    let ours = fleet.ingresses();
    ours.delete(INGRESS, &DeleteParams::default()).await?;
    fleet.serves(&[]).await?;
    let kept = ours.get(INGRESS).await?;
    assert!(
        kept.metadata.deletion_timestamp.is_some(),
        "until both let it go"
    );
    relay.set_silent(false);
    until(&ours, INGRESS, "gone", |found| found.is_none()).await?;
    served_there.becomes(&[]).await?;
    controller.stop().await
}

/// Reports an address in place of the gateway's own ingress controller.
pub(crate) async fn report_address(ingresses: &Api<Ingress>, ip: &str) -> Result<()> {
    until(ingresses, INGRESS, "served", |found| found.is_some()).await?;
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
    merge_status(ingresses, INGRESS, &status).await
}

/// Waits until the status of the ingress has exactly these addresses.
pub(crate) async fn has_addresses(
    ingresses: &Api<MultiClusterIngress>,
    expected: &[&str],
) -> Result<()> {
    until(ingresses, INGRESS, "with these addresses", |ingress| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let entries = status.and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
        let entries = entries.into_iter().flatten();
        let found: Vec<&str> = entries.filter_map(|entry| entry.ip.as_deref()).collect();
        found == expected
    })
    .await?;
    Ok(())
}

/// A TLS Secret that an ingress names reaches the gateway where it is asked for, with the rights of the manifests, follows its source, and goes.
async fn tls_secret_follows(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let rights = "tls-secrets/karmada.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    let rights = "tls-secrets/gateway.yaml";
    manifests::apply(&fleet.gateway.client(), rights).await?;
    let secrets: Api<Secret> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    for name in ["cert", "other"] {
        let data = json!({ "tls.crt": "b25l", "tls.key": "b25l" });
        let secret =
            json!({ "metadata": { "name": name }, "type": "kubernetes.io/tls", "data": data });
        create(&secrets, secret).await?;
    }
    let tls = json!([{ "hosts": ["shop.example.com"], "secretName": "cert" }]);
    let ingresses = fleet.ingresses();
    let with_tls = json!({ "spec": { "tls": tls } });
    merge(&ingresses, INGRESS, &with_tls).await?;
    let flags = ["--copy-tls-secrets"];
    let controller = fleet.ingress_controller_with(&flags).await?;
    fleet.serves(&MEMBERS).await?;
    let in_gateway: Api<Ingress> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    until(&in_gateway, INGRESS, "served", |found| found.is_some()).await?;
    let written = in_gateway.get(INGRESS).await?.spec.context("a spec")?;
    let tls = written
        .tls
        .and_then(|tls| tls.into_iter().next())
        .context("TLS")?;
    let copy = tls.secret_name.context("a Secret")?;

    let copies: Api<Secret> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let key = |secret: Option<&Secret>| {
        let data = secret.and_then(|secret| secret.data.as_ref());
        data.map(|data| data["tls.key"].0.clone())
    };
    until(&copies, &copy, "copied", |found| {
        key(found) == Some(b"one".to_vec())
    })
    .await?;
    assert_eq!(copies.list(&ListParams::default()).await?.items.len(), 1);
    let renewed = json!({ "data": { "tls.key": "dHdv" } });
    merge(&secrets, "cert", &renewed).await?;
    until(&copies, &copy, "renewed", |found| {
        key(found) == Some(b"two".to_vec())
    })
    .await?;
    let without = json!({ "spec": { "tls": null } });
    merge(&ingresses, INGRESS, &without).await?;
    until(&copies, &copy, "gone", |found| found.is_none()).await?;
    controller.stop().await
}

/// Members that the gateway reaches by their load balancers only are served, blocked and released there, without exports.
async fn load_balancers_are_served(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    fleet.karmada.install_crds(&[crds::exports()]).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    for member in MEMBERS {
        let name = format!("imported-{}-{SERVICE}", member.name());
        slices.delete(&name, &DeleteParams::default()).await?;
    }
    let _remedies = fleet.remedy_controller().await?;
    let flags = ["--backend-addresses=load-balancers"];
    let controller = fleet.ingress_controller_with(&flags).await?;
    fleet.report_load_balancers(&MEMBERS).await?;
    fleet.serves(&MEMBERS).await?;
    let event =
        "AddressUnusable Service web gets no request at an address: 127.0.0.1 of cluster member1";
    fleet
        .has_event("MultiClusterIngress", INGRESS, event)
        .await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.serves(&[Member(2)]).await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.serves(&MEMBERS).await?;
    let exports: Api<ServiceExport> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    assert_eq!(exports.list(&ListParams::default()).await?.items, []);
    controller.stop().await
}

/// Cases T7 and T8: in a fleet without Karmada, a Service of type `NodePort` is served at the ready nodes of its members, with the
/// rights of the manifests; with `externalTrafficPolicy: Local` at those with a pod of it. A blocked member is drained.
async fn node_ports_are_served(server: ApiKind) -> Result<()> {
    let (fleet, mut own) = OwnMembers::start(server, Profile::Debug, &MEMBERS).await?;
    let mut programs = own.programs.iter();
    let place = programs.position(|(name, _)| name == Binary::ClusterController.name());
    let (_, silent) = own
        .programs
        .swap_remove(place.context("no cluster-controller")?);
    silent.stop().await?;
    let rights = "propagation/publish-nodes/rights.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    let (program, flags) = (Binary::ClusterController, ["--publish-node-addresses"]);
    let publishing = start_program(&fleet.karmada, Profile::Debug, program, &flags).await?;
    for (api, member) in own.apis.iter().zip(MEMBERS) {
        report_node(api, "n1", node(member, 1), true).await?;
        report_node(api, "n2", node(member, 2), false).await?;
    }
    serve_by_node_port(&fleet, "Cluster").await?;
    let flags = [
        "--backend-addresses=load-balancers",
        "--export-services=false",
    ];
    let controller = fleet.ingress_controller_with(&flags).await?;
    let _remedies = fleet.remedy_controller().await?;
    let [first, second] = MEMBERS;
    let backends = &fleet.served;
    backends.becomes(&[node(first, 1), node(second, 1)]).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    for slice in slices.list(&ListParams::default()).await? {
        let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
        assert_eq!(ports.collect::<Vec<_>>(), [30_080]);
    }
    report_node(&own.apis[0], "n2", node(first, 2), true).await?;
    let ready = [node(first, 1), node(first, 2), node(second, 1)];
    backends.becomes(&ready).await?;

    run_pods_on(&own.apis[0], first, "n2").await?;
    run_pods_on(&own.apis[1], second, "n1").await?;
    serve_by_node_port(&fleet, "Local").await?;
    backends.becomes(&[node(first, 2), node(second, 1)]).await?;
    fleet
        .create_remedy("maintenance", maintenance(first))
        .await?;
    backends.becomes(&[node(second, 1)]).await?;
    controller.stop().await?;
    publishing.stop().await
}

/// Returns the node port of a node of a member.
fn node(Member(member): Member, node: u8) -> SocketAddr {
    SocketAddr::from(([10, 50, member, node], 30_080))
}

/// Reports a node of a member, as its kubelet would.
async fn report_node(
    api: &ControlPlane,
    name: &str,
    address: SocketAddr,
    is_ready: bool,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(api.client());
    if nodes.get_opt(name).await?.is_none() {
        let new = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        nodes.create(&PostParams::default(), &new).await?;
    }
    let status = if is_ready { "True" } else { "False" };
    let status = json!({
        "addresses": [{ "type": "InternalIP", "address": address.ip() }],
        "conditions": [{ "type": "Ready", "status": status }],
    });
    merge_status(&nodes, name, &status).await
}

/// Makes the template of the Service one of type `NodePort` with this `externalTrafficPolicy`.
async fn serve_by_node_port(fleet: &Fleet, policy: &str) -> Result<()> {
    let port = json!({ "name": "http", "port": 80, "targetPort": "http", "nodePort": 30_080 });
    let spec = json!({ "type": "NodePort", "externalTrafficPolicy": policy, "ports": [port] });
    let services: Api<Service> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let patch = json!({ "spec": spec });
    merge(&services, SERVICE, &patch).await
}

/// Has the pods of the Service in a member run on a node.
async fn run_pods_on(api: &ControlPlane, member: Member, node: &str) -> Result<()> {
    let endpoint = json!({ "addresses": [member.backend().ip()],
        "conditions": { "ready": true }, "nodeName": node });
    let slices: Api<EndpointSlice> = Api::namespaced(api.client(), NAMESPACE);
    let patch = json!({ "endpoints": [endpoint] });
    let name = format!("{SERVICE}-1");
    merge(&slices, &name, &patch).await
}

/// A user who exports services alone finds no export of ours.
async fn exports_are_optional(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    fleet.karmada.install_crds(&[crds::exports()]).await?;
    let alone = ["--export-services=false"];
    let controller = fleet.ingress_controller_with(&alone).await?;
    fleet.serves(&MEMBERS).await?;
    fleet.place(&[Member(1)]).await?;
    let ingresses = fleet.ingresses();
    until(&ingresses, INGRESS, "in member1", |ingress| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let locations = status.and_then(|status| status.service_locations.as_ref());
        locations.is_some_and(|locations| {
            let clusters = locations
                .iter()
                .flat_map(|location| location.clusters.iter().flatten());
            clusters.count() == 1
        })
    })
    .await?;
    controller.stop().await?;
    let exports: Api<ServiceExport> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let policies: Api<PropagationPolicy> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let all = ListParams::default();
    assert_eq!(exports.list(&all).await?.items, []);
    assert_eq!(policies.list(&all).await?.items.len(), 0);
    Ok(())
}

on_both!(
    long:
    silent_gateway_delays_no_status,
    dead_gateway_delays_no_other,
    tls_secret_follows,
    load_balancers_are_served,
    node_ports_are_served,
    exports_are_optional,
);

/// Admission on a real API only: the embedded one has none.
mod admission {
    use k8s_openapi::api::admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    };
    use pipeline_tests::{fleet::isolated, test_name};

    use super::*;

    /// An ingress that admission refuses keeps no leaving cluster in.
    #[test]
    fn refused_ingress_still_blocks() {
        isolated(test_name!(), async || {
            let fleet = Fleet::with_members(ApiKind::Real, Profile::Debug, &MEMBERS).await?;
            let _remedies = fleet.remedy_controller().await?;
            let controller = fleet.ingress_controller().await?;
            fleet.serves(&MEMBERS).await?;
            refuse_ingresses(&fleet).await?;
            let tls = json!({ "spec": { "tls": [{ "hosts": ["a.example.com"] }] } });
            let ingresses = fleet.ingresses();
            merge(&ingresses, INGRESS, &tls).await?;
            fleet
                .has_event("MultiClusterIngress", INGRESS, "GatewayRefused")
                .await?;
            // A cluster that leaves: its object stays until Karmada removes the finalizer.
            let held = json!({ "metadata": { "finalizers": ["karmada.io/cluster-controller"] } });
            let clusters = fleet.clusters();
            merge(&clusters, "member1", &held).await?;
            clusters.delete("member1", &DeleteParams::default()).await?;
            fleet.serves(&[Member(2)]).await?;
            controller.stop().await
        });
    }

    /// Has the gateway's API refuse every write of an Ingress, from the next one on.
    async fn refuse_ingresses(fleet: &Fleet) -> Result<()> {
        let policy = json!({
            "metadata": { "name": "no-ingress" },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["ingresses"],
                }] },
                "validations": [{ "expression": "false", "message": "refused by the test" }],
            },
        });
        let binding = json!({
            "metadata": { "name": "no-ingress" },
            "spec": { "policyName": "no-ingress", "validationActions": ["Deny"] },
        });
        let client = fleet.gateway.client();
        let create = PostParams::default();
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
        policies
            .create(&create, &serde_json::from_value(policy)?)
            .await?;
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
        bindings
            .create(&create, &serde_json::from_value(binding)?)
            .await?;
        // The API server has a watch of its own: repeat until it refuses.
        fleet.gateway.namespace("tries").await?;
        let tries: Api<Ingress> = Api::namespaced(client, "tries");
        let ingress = json!({
            "metadata": { "name": "try" },
            "spec": { "defaultBackend": { "service": { "name": "s", "port": { "number": 80 } } } },
        });
        let ingress = serde_json::from_value(ingress)?;
        while tries.create(&create, &ingress).await.is_ok() {
            tries.delete("try", &DeleteParams::default()).await?;
        }
        Ok(())
    }
}
