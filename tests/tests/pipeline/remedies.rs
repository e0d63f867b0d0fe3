//! The effect of Remedies on clusters and traffic.

mod with_tools;

use anyhow::Result;
use karmada_api::TRAFFIC_CONTROL;
use kube::api::{Patch, PatchParams};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane, ControlPlaneOptions},
    crds,
    fleet::{Fleet, Member, maintenance},
    on_both,
    programs::{Binary, Profile, Running},
};
use serde_json::json;

/// Starts a fleet with one cluster that a Remedy blocks, and the controller that applied it.
async fn under_maintenance(server: ApiKind) -> Result<(Fleet, Running)> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(Member(1)).await?;
    let controller = fleet.remedy_controller().await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    Ok((fleet, controller))
}

/// A Remedy without matches blocks at once and its deletion restores.
async fn unconditional_remedy_blocks_at_once(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &[Member(1), Member(2)]).await?;
    let remedies = fleet.remedy_controller().await?;
    let ingresses = fleet.ingress_controller().await?;
    fleet.serves(&[Member(1), Member(2)]).await?;

    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;

    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(1), Member(2)]).await?;
    remedies.stop().await?;
    ingresses.stop().await
}

/// Starts an API whose definition of Remedy is Karmada's own, and the controller.
async fn on_karmadas_definition(server: ApiKind) -> Result<(Fleet, Running)> {
    let mut fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.karmada = ControlPlane::start(ControlPlaneOptions::named("karmada").on(server)).await?;
    crds::install_as_karmadas(&fleet.karmada.client()).await?;
    fleet.karmada.namespace("karmada-system").await?;
    fleet.join(Member(1)).await?;
    let kubeconfig = format!("--kubeconfig={}", fleet.karmada.kubeconfig_path().display());
    let controller = Running::start(Binary::RemedyController, Profile::Debug, [kubeconfig]).await?;
    Ok((fleet, controller))
}

/// On Karmada's definition, an emptied list blocks nothing and has an event.
async fn emptied_list_blocks_nothing(server: ApiKind) -> Result<()> {
    let (fleet, controller) = on_karmadas_definition(server).await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    let emptied = json!({ "spec": { "clusterAffinity": { "clusterNames": [] } } });
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(emptied));
    let remedies = fleet.remedies();
    remedies.patch("maintenance", &parameters, &patch).await?;
    fleet.has_actions(Member(1), &[]).await?;
    let event = "SelectsNoCluster clusterAffinity has no clusterNames";
    fleet.has_event("Remedy", "maintenance", event).await?;
    let never = json!({ "decisionMatches": [], "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("never", never).await?;
    let event = "NeverMatches decisionMatches is empty";
    fleet.has_event("Remedy", "never", event).await?;
    controller
        .until_output("Remedies get no status, but everything else works")
        .await?;
    controller.stop().await
}

/// A controller outlives an outage of the API.
async fn controller_outlives_api_outage(server: ApiKind) -> Result<()> {
    let (mut fleet, controller) = under_maintenance(server).await?;
    fleet.karmada.stop_api().await?;
    controller.until_output("Watch failed").await?;
    fleet.karmada.start_api().await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    controller.stop().await
}

on_both!(
    long:
    unconditional_remedy_blocks_at_once,
    emptied_list_blocks_nothing,
    controller_outlives_api_outage,
);
