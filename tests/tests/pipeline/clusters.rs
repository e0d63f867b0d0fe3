//! A cluster joins a fleet without Karmada, and leaves it.

mod with_tools;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use karmada_api::{ClusterView, execution_namespace};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::{create, merge_status},
    control_plane::ApiKind,
    fleet::Member,
    manifests, on_both,
    programs::{Binary, Profile, Running},
    propagation::{PropagationFleet, PropagationPrograms, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use crate::propagation::{WEB, deployment, deployments};

/// The programs of a fleet without Karmada.
pub(crate) struct Programs {
    _clusters: Running,
    _propagation: PropagationPrograms,
}

/// Starts a fleet and its programs, and has the members join.
async fn joined(server: ApiKind, members: u8) -> Result<(PropagationFleet, Programs)> {
    let (fleet, programs) = unjoined(server, members).await?;
    for member in fleet.members() {
        fleet.register(member).await?;
    }
    Ok((fleet, programs))
}

/// Starts a fleet without clusters, and its programs.
pub(crate) async fn unjoined(server: ApiKind, members: u8) -> Result<(PropagationFleet, Programs)> {
    let mut fleet =
        PropagationFleet::start_unjoined([server, server], members, Profile::Debug).await?;
    fleet.karmada.start_controllers().await?;
    let rights = "propagation/cluster/cluster-controller.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    fleet.karmada.guard(["admission/clusters.yaml"]).await?;
    let programs = Programs {
        _propagation: fleet.run().await?,
        _clusters: fleet.start_program(Binary::ClusterController, &[]).await?,
    };
    Ok((fleet, programs))
}

/// Creates a Deployment, and a policy that sends it to every cluster.
pub(crate) async fn deploy(fleet: &PropagationFleet) -> Result<()> {
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy(WEB, spec).await
}

pub(crate) async fn runs(fleet: &PropagationFleet, member: Member, there: bool) -> Result<()> {
    let deployments = deployments(fleet.member(member));
    let what = if there { "there" } else { "gone" };
    until(&deployments, WEB, what, |found| found.is_some() == there).await?;
    Ok(())
}

pub(crate) fn is_ready(cluster: &ClusterView) -> bool {
    let mut conditions = cluster.status.conditions.iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A Cluster with only a spec and a Secret gets its namespace, its health, its kinds and its capacity, and
/// then the objects that a policy sends to it.
async fn spec_and_secret_join(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = joined(server, 1).await?;
    let member = Member(1);
    deploy(&fleet).await?;
    runs(&fleet, member, true).await?;

    let (name, api) = (member.name(), fleet.member(member).client());
    let node = json!({ "metadata": { "name": "n1" } });
    create::<Node>(&Api::all(api.clone()), node).await?;
    let status = json!({ "allocatable": { "cpu": "4", "pods": "110" } });
    let nodes: Api<Node> = Api::all(api.clone());
    merge_status(&nodes, "n1", &status).await?;
    let requests = json!({ "requests": { "cpu": "250m" } });
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n1",
        "containers": [{ "name": "c", "image": "i", "resources": requests }] } });
    create(&namespaced::<Pod>(api), pod).await?;

    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    until(&clusters, &name, "full", |cluster| {
        cluster.is_some_and(|cluster| {
            let summary = cluster.status.resource_summary.clone().unwrap_or_default();
            let amount = |part: &Value| part["cpu"].clone();
            let (allocatable, allocated) = (json!(summary.allocatable), json!(summary.allocated));
            is_ready(cluster)
                && cluster.spec.taints.is_empty()
                && cluster.serves("apps/v1", "Deployment")
                && (amount(&allocatable), amount(&allocated)) == (json!("4"), json!("250m"))
        })
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(fleet.karmada.client());
    let namespace = namespaces.get(&execution_namespace(&name)).await?;
    let labels = namespace.metadata.labels.unwrap_or_default();
    ensure!(
        labels
            .get("karmada.io/system")
            .is_some_and(|value| value == "true")
    );
    Ok(())
}

/// Case P11: a cluster that is deleted gives up its copies; then its namespace goes, and the Cluster last.
async fn leaving_cluster_goes_last(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = joined(server, 2).await?;
    let (stays, leaves) = (Member(1), Member(2));
    deploy(&fleet).await?;
    for member in [stays, leaves] {
        runs(&fleet, member, true).await?;
    }
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let name = leaves.name();
    clusters.delete(&name, &DeleteParams::default()).await?;
    runs(&fleet, leaves, false).await?;
    until(&clusters, &name, "gone", |cluster| cluster.is_none()).await?;

    let namespaces: Api<Namespace> = Api::all(fleet.karmada.client());
    let namespace = namespaces.get_opt(&execution_namespace(&name)).await?;
    ensure!(namespace.is_none(), "its namespace is left: {namespace:?}");
    let binding = fleet.bindings().get("web-deployment").await?;
    let targets = binding.spec.clusters.context("no clusters")?;
    let targets: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
    ensure!(targets == [stays.name()], "{targets:?}");
    runs(&fleet, stays, true).await
}

on_both!(spec_and_secret_join, leaving_cluster_goes_last,);
