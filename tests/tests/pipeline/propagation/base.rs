//! A workload travels from a policy to its members, and its status back.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{ClusterResourceBinding, names};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::PropagationFleet,
    wait::{until, until_event},
};
use serde_json::json;

use super::{
    ROLE, WEB, deployed, deployment, deployments, divided, has_image, is_fully_applied, set_image,
    until_work,
};

/// Case P1: a Deployment and a policy lead to a binding, Works, objects in the members with their share of
/// the replicas, and a status back.
async fn deployment_travels_and_reports(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let members = [Member(1), Member(2)];
    let templates = deployments(&fleet.karmada);
    create(&templates, deployment("web:1")).await?;
    let _programs = fleet.run().await?;
    fleet.create_policy(WEB, divided(&members)).await?;

    for member in members {
        has_image(&fleet, member, "web:1").await?;
        let deployments = deployments(fleet.member(member));
        let copy = deployments.get(WEB).await?;
        assert_eq!(copy.spec.as_ref().unwrap().replicas, Some(2));
        assert_eq!(
            copy.metadata.labels.as_ref().unwrap()[names::MANAGED],
            "true"
        );
        // In place of the member's own controllers.
        let status = json!({ "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "availableReplicas": 2, "observedGeneration": copy.metadata.generation });
        merge_status(&deployments, WEB, &status).await?;
    }
    is_fully_applied(&fleet, &names::binding("Deployment", WEB)).await?;
    until(&templates, WEB, "ready everywhere", |template| {
        let status = template.and_then(|template| template.status.as_ref());
        status.is_some_and(|status| status.ready_replicas == Some(4))
    })
    .await?;
    Ok(())
}

/// Case P2: a cluster-scoped template has a `ClusterResourceBinding`.
async fn cluster_role_travels(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let templates: Api<ClusterRole> = Api::all(fleet.karmada.client());
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    create(
        &templates,
        json!({ "metadata": { "name": ROLE }, "rules": rules }),
    )
    .await?;
    let selector = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": ROLE });
    let placement = json!({ "clusterAffinities": [
        { "affinityName": "first", "clusterNames": ["nowhere"] },
        { "affinityName": "second", "clusterNames": ["member1"] },
    ] });
    let spec = json!({ "resourceSelectors": [selector], "placement": placement });
    fleet.create_cluster_policy("reader", spec).await?;

    let copies: Api<ClusterRole> = Api::all(fleet.member(Member(1)).client());
    until(&copies, ROLE, "there", |role| role.is_some()).await?;
    let bindings: Api<ClusterResourceBinding> = Api::all(fleet.karmada.client());
    let name = names::binding("ClusterRole", ROLE);
    until(&bindings, &name, "in the second group", |binding| {
        let status = binding.and_then(|binding| binding.status.as_ref());
        let group = status.and_then(|status| status.scheduler_observed_affinity_name.as_deref());
        group == Some("second")
    })
    .await?;
    // No Event may have the name of the role, and one about it is recorded all the same.
    let client = fleet.karmada.client();
    until_event(&client, "ClusterRole", ROLE, "ApplyPolicySucceed").await
}

/// Cases P4 and P7: an edit reaches the members; changed and deleted copies are put right.
async fn edits_arrive_and_drift_goes(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1)]).await?;
    set_image(&fleet, "web:2").await?;
    has_image(&fleet, Member(1), "web:2").await?;

    let copies = deployments(fleet.member(Member(1)));
    let drift = json!({ "spec": { "paused": true, "replicas": 1 } });
    merge(&copies, WEB, &drift).await?;
    until(&copies, WEB, "as before", |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(4))
    })
    .await?;
    let first = copies.get(WEB).await?.metadata.uid;
    copies.delete(WEB, &DeleteParams::default()).await?;
    until(&copies, WEB, "created again", |copy| {
        copy.is_some_and(|copy| copy.metadata.uid != first)
    })
    .await?;
    Ok(())
}

/// Case P4: with a template go its binding, its Works and its copies, and nothing else.
async fn deleted_template_takes_copies(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (mut fleet, _programs) = deployed(server, &members).await?;
    fleet.karmada.start_controllers().await?;
    let templates = deployments(&fleet.karmada);
    templates.delete(WEB, &DeleteParams::default()).await?;
    let binding = names::binding("Deployment", WEB);
    until(&fleet.bindings(), &binding, "gone", |found| found.is_none()).await?;
    for member in members {
        until_work(&fleet, member, "Deployment", "gone", |work| work.is_none()).await?;
        let copies = deployments(fleet.member(member));
        assert!(copies.get_opt(WEB).await?.is_none());
    }
    assert!(templates.get_opt(WEB).await?.is_none());
    fleet.policies().get(WEB).await?;
    Ok(())
}

/// A start on a fleet where nothing changed writes nothing but leases, neither here nor in a member.
async fn a_second_start_writes_nothing(server: ApiKind) -> Result<()> {
    let (fleet, programs) = deployed(server, &[Member(1)]).await?;
    is_fully_applied(&fleet, &names::binding("Deployment", WEB)).await?;
    programs.settled().await?;
    programs.stop().await?;
    let member = fleet.member(Member(1));
    let (before, there) = (
        fleet.karmada.successful_writes().await?,
        member.successful_writes().await?,
    );
    let programs = fleet.run().await?;
    programs.settled().await?;
    programs.stop().await?;
    let written = fleet.karmada.successful_writes().await?.since(&before);
    assert_eq!(written.to_string(), "no writes");
    let written = member.successful_writes().await?.since(&there);
    assert_eq!(written.to_string(), "no writes");
    Ok(())
}

on_both!(
    deployment_travels_and_reports,
    cluster_role_travels,
    edits_arrive_and_drift_goes,
    deleted_template_takes_copies,
    a_second_start_writes_nothing,
);
