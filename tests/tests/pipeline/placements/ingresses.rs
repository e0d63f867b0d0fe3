//! A MultiClusterIngress of the hub is served where placements bring its Service, but for members that a Remedy blocks.

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use karmada_api::{MultiClusterIngress, Remedy};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane, ControlPlaneOptions},
    fleet::{Member, maintenance},
    on_both,
    propagation::create,
    served::Served,
    wait::until,
};
use serde_json::{Value, json};

use super::{Stage, registered};

const NAMESPACE: &str = "shop";
const SERVICE: &str = "web";
const INGRESS: &str = "shop";
const MEMBERS: [Member; 2] = [Member(1), Member(2)];

/// Creates the Service, and an ingress of it, in the namespace on the hub.
async fn create_ingress(hub: &ControlPlane) -> Result<()> {
    let services: Api<Service> = Api::namespaced(hub.client(), NAMESPACE);
    let ports = json!([{ "name": "http", "port": 80 }]);
    let service = json!({ "metadata": { "name": SERVICE }, "spec": { "ports": ports } });
    create(&services, service).await?;
    let backend = json!({ "service": { "name": SERVICE, "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let rule = json!({ "host": "shop.example.com", "http": { "paths": [path] } });
    let spec = json!({ "ingressClassName": "karmada-rs", "rules": [rule] });
    let ingresses: Api<MultiClusterIngress> = Api::namespaced(hub.client(), NAMESPACE);
    create(
        &ingresses,
        json!({ "metadata": { "name": INGRESS }, "spec": spec }),
    )
    .await
}

/// Returns what the controller of a member keeps of the Service, which selects no pod there.
fn slice(member: Member) -> Value {
    let labels = json!({
        "kubernetes.io/service-name": SERVICE,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    let address = member.backend().ip();
    json!({
        "metadata": { "name": "web-1", "labels": labels },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    })
}

/// Case F120: the Service of an ingress is placed in two members, whose agents collect its endpoints; a Remedy blocks one
/// member for a time; in the end the placement goes.
async fn blocked_member_gets_no_request(server: ApiKind) -> Result<()> {
    let fleet = registered(server, 2).await?;
    let gateway = ControlPlane::start(ControlPlaneOptions::named("gateway").on(server)).await?;
    let controller = fleet.run_controller(&[]).await?;
    let agents = MEMBERS.map(|member| fleet.run_agent_with(member, &["--collect-endpoints"]));
    let agents = try_join_all(agents).await?;
    let stage = Stage {
        fleet,
        programs: (),
    };
    for member in MEMBERS {
        stage.until_joined(member).await?;
        stage.fleet.let_collect_endpoints(member).await?;
    }
    let hub = &stage.fleet.hub;
    let remedy_controller = stage.fleet.run_remedy_controller().await?;
    let ingress_controller = stage.fleet.run_ingress_controller(&gateway).await?;
    stage.fill(NAMESPACE).await?;
    create_ingress(hub).await?;
    let policy = json!({ "placementType": "PickAll" });
    stage.place(NAMESPACE, policy).await?;
    stage.until_complete(NAMESPACE).await?;
    for member in MEMBERS {
        let slices: Api<EndpointSlice> =
            Api::namespaced(stage.fleet.member(member).client(), NAMESPACE);
        create(&slices, slice(member)).await?;
    }
    let backends = Served::watch(gateway.client(), NAMESPACE);
    backends.becomes(&MEMBERS.map(Member::backend)).await?;

    let remedies: Api<Remedy> = Api::all(hub.client());
    let remedy = json!({ "metadata": { "name": "maintenance" }, "spec": maintenance(Member(1)) });
    create(&remedies, remedy).await?;
    backends.becomes(&[Member(2).backend()]).await?;
    let ingresses: Api<MultiClusterIngress> = Api::namespaced(hub.client(), NAMESPACE);
    until(&ingresses, INGRESS, "blocked in one", |ingress| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let blocked = status.and_then(|status| status.traffic_block_clusters.as_deref());
        blocked == Some(&[Member(1).name()][..])
    })
    .await?;

    let parameters = DeleteParams::default();
    remedies.delete("maintenance", &parameters).await?;
    backends.becomes(&MEMBERS.map(Member::backend)).await?;
    stage
        .fleet
        .placements()
        .delete(NAMESPACE, &parameters)
        .await?;
    backends.becomes(&[]).await?;
    for program in [controller, remedy_controller, ingress_controller] {
        program.stop().await?;
    }
    for agent in agents {
        agent.stop().await?;
    }
    Ok(())
}

on_both!(blocked_member_gets_no_request);
