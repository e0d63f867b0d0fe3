//! The endpoints of each other's Services that members have, while a cluster is blocked.

use anyhow::Result;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use karmada_api::{ClusterView, ServiceExport, names::collected_slice};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use pipeline_tests::{
    api::{create, create_of, merge_status},
    control_plane::ApiKind,
    crds,
    fleet::{Member, NAMESPACE, SERVICE},
    manifests, on_both,
    programs::{Binary, Running},
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::json;

const PROVIDERS: [Member; 2] = [Member(1), Member(2)];
const CONSUMER: Member = Member(3);

/// Writes the actions of a cluster, as a remedy-controller does.
async fn require(fleet: &PropagationFleet, provider: Member, actions: &[&str]) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let patch = json!({ "remedyActions": actions });
    let name = provider.name();
    merge_status(&clusters, &name, &patch).await
}

/// Waits until the consumer has this slice, or has it no longer.
async fn has_slice(fleet: &PropagationFleet, name: &str, is_there: bool) -> Result<()> {
    let slices: Api<EndpointSlice> = namespaced(fleet.member(CONSUMER).client());
    let what = if is_there { "there" } else { "gone" };
    until(&slices, name, what, |slice| slice.is_some() == is_there).await?;
    Ok(())
}

const IMPORTS: &str = "multicluster.x-k8s.io";

/// Starts a fleet without Karmada in which the Service of two providers is exported, and imported into the consumer.
async fn imported(server: ApiKind) -> Result<(PropagationFleet, [Running; 3])> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let client = fleet.karmada.client();
    fleet.karmada.install_crds(&[crds::exports()]).await?;
    for rights in ["collect-endpoints", "east-west"] {
        manifests::apply(&client, &format!("propagation/{rights}/rights.yaml")).await?;
    }
    let ports = json!({ "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let fields = json!({ "type": { "type": "string" }, "ports": ports });
    let mut definition = crds::definition(IMPORTS, "ServiceImport", "serviceimports", &fields)?;
    definition.data["spec"]["versions"][0]["name"] = "v1alpha1".into();
    for api in [&fleet.karmada, fleet.member(CONSUMER)] {
        crds::apply(&api.client(), std::slice::from_ref(&definition)).await?;
    }
    let version = format!("{IMPORTS}/v1alpha1");
    let enablements = [
        (&*version, "ServiceImport", "serviceimports"),
        ("v1", "Service", "services"),
        ("v1", "Namespace", "namespaces"),
        ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    ];
    fleet.enable(CONSUMER, enablements).await?;
    let both = ["--collect-endpoints", "--block-multicluster-services"];
    let programs = [
        fleet
            .start_program(Binary::PropagationController, &[])
            .await?,
        fleet.start_program(Binary::Scheduler, &[]).await?,
        fleet
            .start_program(Binary::ExecutionController, &both)
            .await?,
    ];
    export(&fleet).await?;
    import(&fleet).await?;
    Ok((fleet, programs))
}

/// Propagates the Service to the providers, with pods in each, and exports it.
async fn export(fleet: &PropagationFleet) -> Result<()> {
    let client = fleet.karmada.client();
    let ports = json!({ "ports": [{ "name": "http", "port": 80 }] });
    let service = json!({ "metadata": { "name": SERVICE }, "spec": ports });
    let services: Api<Service> = namespaced(client.clone());
    create(&services, service).await?;
    place(fleet, "v1", "Service", &PROVIDERS).await?;
    let exports: Api<ServiceExport> = namespaced(client);
    create(&exports, json!({ "metadata": { "name": SERVICE } })).await?;
    for provider in PROVIDERS {
        let client = fleet.member(provider).client();
        let services: Api<Service> = namespaced(client.clone());
        until(&services, SERVICE, "there", |service| service.is_some()).await?;
        let slices: Api<EndpointSlice> = namespaced(client);
        let labels = json!({ "kubernetes.io/service-name": SERVICE,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" });
        let slice = json!({
            "metadata": { "name": SERVICE, "labels": labels },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": [provider.backend().ip()], "conditions": { "ready": true } }],
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        });
        create(&slices, slice).await?;
    }
    Ok(())
}

/// Imports the Service into the consumer.
async fn import(fleet: &PropagationFleet) -> Result<()> {
    let client = fleet.karmada.client();
    let ports = json!([{ "name": "http", "port": 80 }]);
    let kind = GroupVersionKind::gvk(IMPORTS, "v1alpha1", "ServiceImport");
    let kind = ApiResource::from_gvk_with_plural(&kind, "serviceimports");
    let imports: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind);
    let import = json!({ "metadata": { "name": SERVICE },
        "spec": { "type": "ClusterSetIP", "ports": ports } });
    create_of(&imports, &kind, import).await?;
    let version = format!("{IMPORTS}/v1alpha1");
    place(fleet, &version, "ServiceImport", &[CONSUMER]).await
}

/// Creates a policy that takes the object of the Service's name and its dependencies to these members.
async fn place(
    fleet: &PropagationFleet,
    version: &str,
    kind: &str,
    members: &[Member],
) -> Result<()> {
    let names: Vec<String> = members.iter().map(|member| member.name()).collect();
    let selector = json!({ "apiVersion": version, "kind": kind, "name": SERVICE });
    let spec = json!({ "resourceSelectors": [selector], "propagateDeps": true,
        "placement": { "clusterAffinity": { "clusterNames": names } } });
    fleet.create_policy(&kind.to_lowercase(), spec).await
}

/// In a fleet without Karmada, an import has the endpoints of the providers that are admitted.
async fn import_has_admitted_providers(server: ApiKind) -> Result<()> {
    let (fleet, programs) = imported(server).await?;
    let [first, second] =
        PROVIDERS.map(|provider| collected_slice(&provider.name(), SERVICE, "IPv4"));
    let blocked = PROVIDERS[0];
    for actions in [&[][..], &["TrafficControl"], &[]] {
        require(&fleet, blocked, actions).await?;
        has_slice(&fleet, &first, actions.is_empty()).await?;
        has_slice(&fleet, &second, true).await?;
    }
    let services: Api<Service> = namespaced(fleet.member(CONSUMER).client());
    let derived = format!("derived-{SERVICE}");
    until(&services, &derived, "there", |service| service.is_some()).await?;
    for program in programs {
        program.stop().await?;
    }
    Ok(())
}

on_both!(long: import_has_admitted_providers);
