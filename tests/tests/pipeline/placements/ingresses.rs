//! A MultiClusterIngress of the hub is served where placements bring its Service, but for members that a Remedy blocks.

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use karmada_api::{MultiClusterIngress, Remedy};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::create,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, maintenance},
    on_both,
    programs::Running,
    served::Served,
    wait::until,
};
use serde_json::{Value, json};

use super::{Stage, namespaces, registered};

const NAMESPACE: &str = "shop";
const SERVICE: &str = "web";
const INGRESS: &str = "shop";

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

/// Returns the slice that the controller of a member keeps of the Service, which selects no pod there.
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

/// A hub that places a Service in all members, and whose ingress is served from there.
pub(crate) struct Site {
    pub(crate) stage: Stage<Vec<Running>>,
    pub(crate) gateway: ControlPlane,
    /// The addresses that the gateway serves.
    pub(crate) served: Served,
}

impl Site {
    /// Starts one, and waits until all members serve.
    pub(crate) async fn start(server: ApiKind, members: u8) -> Result<Self> {
        let fleet = registered(server, members).await?;
        let gateway = ControlPlane::start("gateway", server).await?;
        let mut programs = vec![fleet.run_controller(&[]).await?];
        let flags = ["--collect-endpoints"];
        let agents = fleet.members();
        let agents = agents.map(|member| fleet.run_agent_with(member, &flags));
        programs.extend(try_join_all(agents).await?);
        let mut stage = Stage { fleet, programs };
        for member in stage.fleet.members() {
            stage.until_joined(member).await?;
            stage.fleet.let_collect_endpoints(member).await?;
        }
        let remedies = stage.fleet.run_remedy_controller().await?;
        let ingresses = stage.fleet.run_ingress_controller(&gateway).await?;
        stage.programs.extend([remedies, ingresses]);
        stage.fill(NAMESPACE).await?;
        create_ingress(&stage.fleet.hub).await?;
        let policy = json!({ "placementType": "PickAll" });
        stage.place(NAMESPACE, policy).await?;
        stage.until_complete(NAMESPACE).await?;
        let site = Self {
            served: Served::watch(gateway.client(), NAMESPACE),
            stage,
            gateway,
        };
        for member in site.stage.fleet.members() {
            site.run_pod(member).await?;
        }
        site.serves_everywhere().await?;
        Ok(site)
    }

    /// Stands for the controllers of a member: once the Service is there, its pod is an endpoint of it.
    pub(crate) async fn run_pod(&self, member: Member) -> Result<()> {
        let client = self.stage.fleet.member(member).client();
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        until(&services, SERVICE, "there", |service| service.is_some()).await?;
        let slices: Api<EndpointSlice> = Api::namespaced(client, NAMESPACE);
        create(&slices, slice(member)).await
    }

    /// Waits until nothing of the placement is in a member.
    pub(crate) async fn has_left(&self, member: Member) -> Result<()> {
        let namespaces = namespaces(self.stage.fleet.member(member));
        until(&namespaces, NAMESPACE, "gone", |found| found.is_none()).await?;
        Ok(())
    }

    /// Waits until all members serve.
    pub(crate) async fn serves_everywhere(&self) -> Result<()> {
        let backends: Vec<_> = self.stage.fleet.members().map(Member::backend).collect();
        self.served.becomes(&backends).await
    }

    /// Ends the programs with SIGTERM.
    pub(crate) async fn stop(self) -> Result<()> {
        for program in self.stage.programs {
            program.stop().await?;
        }
        Ok(())
    }
}

/// Case F120: the Service of an ingress is placed in two members, whose agents collect its endpoints; a Remedy blocks one
/// member for a time; in the end the placement goes.
async fn blocked_member_gets_no_request(server: ApiKind) -> Result<()> {
    let site = Site::start(server, 2).await?;
    let Site { stage, served, .. } = &site;
    let hub = &stage.fleet.hub;
    let remedies: Api<Remedy> = Api::all(hub.client());
    let remedy = json!({ "metadata": { "name": "maintenance" }, "spec": maintenance(Member(1)) });
    create(&remedies, remedy).await?;
    served.becomes(&[Member(2).backend()]).await?;
    let ingresses: Api<MultiClusterIngress> = Api::namespaced(hub.client(), NAMESPACE);
    until(&ingresses, INGRESS, "blocked in one", |ingress| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let blocked = status.and_then(|status| status.traffic_block_clusters.as_deref());
        blocked == Some(&[Member(1).name()][..])
    })
    .await?;

    let parameters = DeleteParams::default();
    remedies.delete("maintenance", &parameters).await?;
    site.serves_everywhere().await?;
    let placements = stage.fleet.placements();
    placements.delete(NAMESPACE, &parameters).await?;
    served.becomes(&[]).await?;
    site.stop().await
}

on_both!(blocked_member_gets_no_request);
