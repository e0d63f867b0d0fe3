//! A probe that is wrong everywhere must not leave the gateway without a backend.

use anyhow::Result;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member, maintenance, on_dns},
    on_both,
    programs::Profile,
};

const MEMBERS: [Member; 2] = [Member(1), Member(2)];

/// Clusters that a condition blocked are readmitted when no other serves.
async fn last_clusters_are_readmitted(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    fleet.create_remedy("dns", on_dns()).await?;
    let _remedies = fleet.remedy_controller().await?;
    let ingresses = fleet.ingress_controller().await?;
    fleet.serves(&MEMBERS).await?;
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

    // The block of a person stays.
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

on_both!(long: last_clusters_are_readmitted);
