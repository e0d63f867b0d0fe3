//! The endpoints of each other's Services that members have, while a cluster is blocked.

use anyhow::{Result, ensure};
use k8s_openapi::api::{core::v1::ConfigMap, discovery::v1::EndpointSlice};
use karmada_api::{ClusterView, Work, execution_namespace, work::WITHHELD};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE, SERVICE},
    manifests, on_both,
    programs::{Binary, Running},
    propagation::{PropagationFleet, create, namespaced},
    wait::until,
};
use serde_json::{Value, json};

const PROVIDERS: [Member; 2] = [Member(1), Member(2)];
const CONSUMER: Member = Member(3);
/// The name of a Work that brings no slice, and of its object.
const SETTINGS: &str = "settings";

/// Returns the name of the Work that brings the slice of a provider, and of that.
fn slice_name(provider: Member) -> String {
    format!("{}-{SERVICE}", provider.name())
}

/// Creates a Work for the consumer with this manifest, with the marks that Karmada puts on both.
async fn dispatch(fleet: &PropagationFleet, name: &str, mut manifest: Value) -> Result<()> {
    let namespace = execution_namespace(&CONSUMER.name());
    let metadata = &mut manifest["metadata"];
    metadata["name"] = name.into();
    metadata["namespace"] = NAMESPACE.into();
    metadata["labels"]["karmada.io/managed"] = "true".into();
    metadata["annotations"]["work.karmada.io/namespace"] = namespace.into();
    metadata["annotations"]["work.karmada.io/name"] = name.into();
    let work = json!({
        "metadata": { "name": name, "finalizers": ["karmada.io/execution-controller"] },
        "spec": { "workload": { "manifests": [manifest] } },
    });
    create(&fleet.works(CONSUMER), work).await
}

/// Dispatches a slice of the Service as Karmada's endpointslice-dispatch-controller does.
async fn dispatch_slice(fleet: &PropagationFleet, provider: Member) -> Result<()> {
    let address = provider.backend().ip();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "labels": { "kubernetes.io/service-name": SERVICE,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io" },
            "annotations": { "endpointslice.karmada.io/provision-cluster": provider.name() } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    dispatch(fleet, &slice_name(provider), slice).await
}

/// Starts a fleet with two providers of a Service and a consumer, whose slices are dispatched, and the program.
async fn dispatched(server: ApiKind) -> Result<(PropagationFleet, Running)> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let rights = "propagation/east-west/rights.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    fleet.member(CONSUMER).namespace(NAMESPACE).await?;
    for provider in PROVIDERS {
        dispatch_slice(&fleet, provider).await?;
    }
    let settings =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": { "a": "b" } });
    dispatch(&fleet, SETTINGS, settings).await?;
    let program = start(&fleet).await?;
    has_slices_of(&fleet, &PROVIDERS).await?;
    Ok((fleet, program))
}

async fn start(fleet: &PropagationFleet) -> Result<Running> {
    let flags = ["--block-multicluster-services"];
    let program = fleet.start_program(Binary::ExecutionController, &flags);
    program.await
}

/// Writes the actions of a cluster, as a remedy-controller does.
async fn require(fleet: &PropagationFleet, provider: Member, actions: &[&str]) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let patch = Patch::Merge(json!({ "status": { "remedyActions": actions } }));
    let name = provider.name();
    clusters
        .patch_status(&name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until the consumer has the slices of exactly these providers.
async fn has_slices_of(fleet: &PropagationFleet, providers: &[Member]) -> Result<()> {
    let slices: Api<EndpointSlice> = namespaced(fleet.member(CONSUMER).client());
    for provider in PROVIDERS {
        let is_wanted = providers.contains(&provider);
        let what = if is_wanted { "there" } else { "gone" };
        until(&slices, &slice_name(provider), what, |slice| {
            slice.is_some() == is_wanted
        })
        .await?;
    }
    Ok(())
}

/// Waits until the Work of a provider's slice says this of it.
async fn says(fleet: &PropagationFleet, provider: Member, reason: &str) -> Result<()> {
    let has_reason = |work: Option<&Work>| {
        let condition = work.and_then(|work| work.condition(WITHHELD));
        condition.is_some_and(|condition| condition.reason == reason)
    };
    let works = fleet.works(CONSUMER);
    until(&works, &slice_name(provider), reason, has_reason).await?;
    Ok(())
}

/// Ends the program and starts it anew, which writes nothing anywhere.
async fn restart(fleet: &PropagationFleet, program: Running) -> Result<Running> {
    let apis = [&fleet.karmada, fleet.member(CONSUMER)];
    program.rests("karmada_execution_controller").await?;
    program.stop().await?;
    let before = [
        apis[0].successful_writes().await?,
        apis[1].successful_writes().await?,
    ];
    let program = start(fleet).await?;
    let reconciles = "karmada_execution_controller_reconciles_total";
    program
        .until_metric(reconciles, |count| count > 2.0)
        .await?;
    program.rests("karmada_execution_controller").await?;
    for (api, before) in apis.into_iter().zip(&before) {
        let written = api.successful_writes().await?.since(before);
        ensure!(written.to_string() == "no writes", "{written}");
    }
    Ok(program)
}

/// The slices of a blocked provider leave the consumer, and are back when it is released; when both are blocked, both stay.
/// The Works say so, other Works are left as they are, and a restart writes nothing.
async fn blocked_slices_leave_and_return(server: ApiKind) -> Result<()> {
    let (fleet, program) = dispatched(server).await?;
    let [first, second] = PROVIDERS;
    let settings: Api<ConfigMap> = namespaced(fleet.member(CONSUMER).client());
    until(&settings, SETTINGS, "there", |map| map.is_some()).await?;
    let before = settings.get(SETTINGS).await?;

    require(&fleet, first, &["TrafficControl"]).await?;
    has_slices_of(&fleet, &[second]).await?;
    says(&fleet, first, "TrafficControl").await?;
    let program = restart(&fleet, program).await?;
    has_slices_of(&fleet, &[second]).await?;

    require(&fleet, second, &["TrafficControl"]).await?;
    has_slices_of(&fleet, &PROVIDERS).await?;
    for provider in PROVIDERS {
        says(&fleet, provider, "AllProvidersBlocked").await?;
    }
    require(&fleet, second, &[]).await?;
    has_slices_of(&fleet, &[second]).await?;
    require(&fleet, first, &[]).await?;
    has_slices_of(&fleet, &PROVIDERS).await?;
    for provider in PROVIDERS {
        says(&fleet, provider, "Released").await?;
    }
    let program = restart(&fleet, program).await?;
    let settings = settings.get(SETTINGS).await?;
    ensure!(settings.metadata.resource_version == before.metadata.resource_version);
    program.stop().await
}

on_both!(long: blocked_slices_leave_and_return);
