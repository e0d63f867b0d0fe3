//! A fleet without Karmada: its members have APIs of their own, into which our programs bring the Service, and from
//! which they collect its endpoints.

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use karmada_api::execution_namespace;
use kube::Api;
use serde_json::json;

use crate::{
    api::apply,
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Fleet, INGRESS, Member, NAMESPACE, SERVICE},
    manifests,
    programs::{Binary, Profile, Running},
    propagation::{install, register, start_program},
    wait::until,
};

/// The programs of such a fleet, each with its flags there.
const PROGRAMS: [(Binary, &[&str]); 4] = [
    (Binary::ClusterController, &[]),
    (Binary::PropagationController, &[]),
    (Binary::Scheduler, &[]),
    (Binary::ExecutionController, &["--collect-endpoints"]),
];

/// The members of a fleet without Karmada. Dropping it ends them.
#[derive(Default)]
pub struct OwnMembers {
    /// The programs that bring workloads there and endpoints back, with their names.
    pub programs: Vec<(String, Running)>,
    /// The members' APIs.
    pub apis: Vec<ControlPlane>,
}

impl OwnMembers {
    /// Starts a fleet like [`Fleet::with_members`], but without a Karmada.
    pub async fn start(
        server: ApiKind,
        profile: Profile,
        members: &[Member],
    ) -> Result<(Fleet, Self)> {
        let mut fleet = Fleet::start(server, profile).await?;
        let names = members.iter().map(|member| member.name());
        let starting = names.map(async |name| ControlPlane::start(&name, server).await);
        let apis = try_join_all(starting).await?;
        let programs = propagate(&mut fleet.karmada, profile).await?;
        for (member, api) in members.iter().zip(&apis) {
            join(&fleet, *member, api).await?;
        }
        for sample in ["shop/web", "export/web"] {
            let file = format!("samples/{sample}.yaml");
            manifests::apply(&fleet.karmada.client(), &file).await?;
        }
        for (member, api) in members.iter().zip(&apis) {
            run_pods(*member, api).await?;
        }
        fleet.create_ingress(INGRESS, "karmada-rs").await?;
        Ok((fleet, Self { programs, apis }))
    }
}

/// Makes the API that of a fleet without Karmada, and starts the programs that bring workloads to members.
async fn propagate(karmada: &mut ControlPlane, profile: Profile) -> Result<Vec<(String, Running)>> {
    karmada.install_crds(&[crds::exports()]).await?;
    karmada.start_controllers().await?;
    install(karmada).await?;
    for rights in ["cluster/cluster-controller", "collect-endpoints/rights"] {
        let file = format!("propagation/{rights}.yaml");
        manifests::apply(&karmada.client(), &file).await?;
    }
    karmada.guard(["admission/clusters.yaml"]).await?;
    let mut programs = Vec::new();
    for (program, flags) in PROGRAMS {
        let running = start_program(karmada, profile, program, flags).await?;
        programs.push((program.name().to_owned(), running));
    }
    Ok(programs)
}

/// Lets a member join, and gives its agents their rights.
async fn join(fleet: &Fleet, member: Member, api: &ControlPlane) -> Result<()> {
    register(&fleet.karmada, member, api).await?;
    let name = member.name();
    let namespaces: Api<Namespace> = Api::all(fleet.karmada.client());
    let namespace = execution_namespace(&name);
    until(&namespaces, &namespace, "made", |found| found.is_some()).await?;
    fleet.grant_agents(&name).await
}

/// Stands for the controllers of a member: once the Service is there, its pods run at the member's backend.
async fn run_pods(member: Member, api: &ControlPlane) -> Result<()> {
    let services: Api<Service> = Api::namespaced(api.client(), NAMESPACE);
    until(&services, SERVICE, "there", |service| service.is_some()).await?;
    let backend = member.backend();
    let slices: Api<EndpointSlice> = Api::namespaced(api.client(), NAMESPACE);
    let slice = json!({
        "metadata": { "labels": {
            "kubernetes.io/service-name": SERVICE,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [backend.ip()], "conditions": { "ready": true } }],
        "ports": [{ "name": "http", "port": backend.port(), "protocol": "TCP" }],
    });
    apply(&slices, &format!("{SERVICE}-1"), slice).await
}
