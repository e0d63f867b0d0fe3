//! A probe that is wrong everywhere must not leave the gateway without a backend.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member, maintenance, on_dns},
    on_both,
    programs::{Profile, Running},
};
use serde_json::{Value, json};

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const ANNOTATION: &str = "networking.karmada-rs.io/when-all-blocked";

/// Starts a fleet that serves both members and has a Remedy on DNS.
async fn fleet(server: ApiKind) -> Result<(Fleet, [Running; 2])> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    fleet.create_remedy("dns", on_dns()).await?;
    let controllers = [
        fleet.remedy_controller().await?,
        fleet.ingress_controller().await?,
    ];
    fleet.serves(&MEMBERS).await?;
    Ok((fleet, controllers))
}

async fn annotate(fleet: &Fleet, value: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { ANNOTATION: value } } }));
    let ingresses = fleet.ingresses();
    ingresses
        .patch(INGRESS, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Clusters that a condition blocked are readmitted when no other serves.
async fn last_clusters_are_readmitted(server: ApiKind) -> Result<()> {
    let (fleet, [_remedies, ingresses]) = fleet(server).await?;
    fleet.set_dns(Member(1), "False").await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;
    fleet.set_dns(Member(2), "False").await?;
    fleet.has_blocked(&MEMBERS).await?;
    fleet.serves(&MEMBERS).await?;
    let event = "TrafficReadmitted every cluster of Service web is blocked";
    fleet
        .has_event("MultiClusterIngress", INGRESS, event)
        .await?;
    let metric = "karmada_ingress_controller_readmitted_services";
    ingresses.until_metric(metric, |total| total > 0.0).await?;

    // What a person blocked stays blocked.
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.serves(&[Member(2)]).await?;
    fleet
        .create_remedy("maintenance-2", maintenance(Member(2)))
        .await?;
    fleet.serves(&[]).await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.serves(&[Member(1)]).await?;

    fleet.delete_remedy("maintenance-2").await?;
    fleet.set_dns(Member(2), "True").await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;
    ingresses.until_metric(metric, |total| total == 0.0).await?;
    ingresses.stop().await
}

/// An ingress may fail open where the flag says fail closed.
async fn annotation_fails_open(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    fleet.create_remedy("dns", on_dns()).await?;
    let _remedies = fleet.remedy_controller().await?;
    let closed = ["--when-all-blocked=fail-closed"];
    let _ingresses = fleet.ingress_controller_with(&closed).await?;
    fleet.serves(&MEMBERS).await?;
    for member in MEMBERS {
        fleet.set_dns(member, "False").await?;
    }
    fleet.serves(&[]).await?;
    annotate(&fleet, json!("fail-open")).await?;
    fleet.serves(&MEMBERS).await
}

on_both!(
    long:
    last_clusters_are_readmitted,
    annotation_fails_open,
);
