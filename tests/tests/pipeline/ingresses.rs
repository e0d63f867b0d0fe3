//! The life of a MultiClusterIngress and of its objects in the gateway.

use anyhow::Result;
use karmada_api::MultiClusterIngress;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member, maintenance},
    on_both,
    programs::Profile,
    refusals::Refusals,
    wait::until,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const FINALIZER: &str = "karmada-rs.io/ingress-controller";
const MEMBERS: [Member; 2] = [Member(1), Member(2)];

async fn patch(fleet: &Fleet, patch: Value) -> Result<()> {
    let patch = Patch::Merge(patch);
    fleet
        .ingresses()
        .patch(INGRESS, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

fn carries_finalizer(ingress: Option<&MultiClusterIngress>) -> bool {
    ingress.is_some_and(|ingress| ingress.finalizers().iter().any(|f| f == FINALIZER))
}

/// An ingress moved to another class is cleaned and comes back with its class.
async fn class_change_moves_ingress(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let controller = fleet.ingress_controller().await?;
    fleet.serves(&MEMBERS).await?;
    assert!(carries_finalizer(Some(
        &fleet.ingresses().get(INGRESS).await?
    )));

    // Only a class that exists names another controller.
    fleet
        .create_class("other", "example.com/ingress-controller")
        .await?;
    patch(&fleet, json!({ "spec": { "ingressClassName": "other" } })).await?;
    until(&fleet.ingresses(), INGRESS, "let go", |ingress| {
        !carries_finalizer(ingress)
    })
    .await?;
    assert_eq!(fleet.left_in_gateway().await?, Vec::<String>::new());
    let status = fleet
        .ingresses()
        .get(INGRESS)
        .await?
        .status
        .unwrap_or_default();
    assert_eq!(
        (status.service_locations, status.traffic_block_clusters),
        (None, None)
    );

    patch(
        &fleet,
        json!({ "spec": { "ingressClassName": "karmada-rs" } }),
    )
    .await?;
    fleet.serves(&MEMBERS).await?;
    controller.stop().await
}

/// A deleted ingress leaves nothing behind.
async fn deletion_leaves_nothing(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let controller = fleet.ingress_controller().await?;
    fleet.serves(&MEMBERS).await?;
    assert!(!fleet.left_in_gateway().await?.is_empty());
    fleet
        .ingresses()
        .delete(INGRESS, &DeleteParams::default())
        .await?;
    until(&fleet.ingresses(), INGRESS, "gone", |ingress| {
        ingress.is_none()
    })
    .await?;
    assert_eq!(fleet.left_in_gateway().await?, Vec::<String>::new());
    controller.stop().await
}

/// An ingress deleted while the controller is down is cleaned when it returns.
async fn missed_deletion_is_cleaned(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let controller = fleet.ingress_controller().await?;
    fleet.serves(&MEMBERS).await?;
    controller.stop().await?;
    fleet
        .ingresses()
        .delete(INGRESS, &DeleteParams::default())
        .await?;
    // Somebody removes the finalizer by force, too.
    patch(&fleet, json!({ "metadata": { "finalizers": null } })).await?;
    until(&fleet.ingresses(), INGRESS, "gone", |ingress| {
        ingress.is_none()
    })
    .await?;
    let _returned = fleet.ingress_controller().await?;
    fleet.serves(&[]).await
}

/// A service newly placed on a blocked cluster gets no traffic there.
async fn new_placement_stays_blocked(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    for member in MEMBERS {
        fleet.join(member).await?;
    }
    fleet.place(&[Member(2)]).await?;
    fleet.create_ingress(INGRESS, "karmada-rs").await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    let _controllers = (
        fleet.remedy_controller().await?,
        fleet.ingress_controller().await?,
    );
    fleet.serves(&[Member(2)]).await?;
    fleet.place(&MEMBERS).await?;
    fleet.has_blocked(&[Member(1)]).await?;
    let released = Instant::now();
    fleet.delete_remedy("maintenance").await?;
    fleet.serves(&MEMBERS).await?;
    fleet.served.never(Member(1).backend(), released)
}

/// An object of somebody else in the gateway is never touched.
async fn foreign_objects_stay_untouched(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let foreign = fleet.create_foreign_ingress(INGRESS).await?;
    let controller = fleet.ingress_controller().await?;
    fleet.serves(&MEMBERS).await?;
    fleet
        .has_event("MultiClusterIngress", INGRESS, "Clash")
        .await?;
    assert_eq!(fleet.gateway_ingress(INGRESS).await?, foreign);
    fleet
        .ingresses()
        .delete(INGRESS, &DeleteParams::default())
        .await?;
    until(&fleet.ingresses(), INGRESS, "gone", |ingress| {
        ingress.is_none()
    })
    .await?;
    assert_eq!(fleet.gateway_ingress(INGRESS).await?, foreign);
    controller.stop().await
}

/// Karmada's API refuses every status, and then the gateway's API refuses what takes a cluster out: Events tell what becomes of
/// the traffic all the same, and the metrics how far it has come.
async fn refused_status_hides_nothing(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let karmada = Refusals::before(&fleet.karmada).await?;
    let gateway = Refusals::before(&fleet.gateway).await?;
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet.ingress_controller_behind(&karmada, &gateway).await?;
    fleet.serves(&MEMBERS).await?;
    let told = async |events: &[&str]| {
        for event in events {
            fleet
                .has_event("MultiClusterIngress", INGRESS, event)
                .await?;
        }
        anyhow::Ok(())
    };

    karmada.refuse(Some("/status"));
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.serves(&[Member(2)]).await?;
    told(&[
        "WriteRefused the API refuses every write to status.serviceLocations and status.trafficBlockClusters",
        "TrafficBlocked A Remedy takes the traffic of cluster member1 away",
    ])
    .await?;
    let acknowledged = "karmada_ingress_controller_load_balancer_delay_seconds_count";
    controller
        .until_metric(acknowledged, |count| count > 0.5)
        .await?;
    let shown = "karmada_ingress_controller_status_delay_seconds_count";
    assert!(controller.metric(shown).await? < 0.5);

    // Single slices: they can still be watched.
    gateway.refuse(Some("/endpointslices/"));
    fleet
        .create_remedy("maintenance-2", maintenance(Member(2)))
        .await?;
    told(&[
        "TrafficBlocked A Remedy takes the traffic of cluster member2 away",
        "AllClustersBlocked every cluster of Service web is blocked or has no ready endpoints, and none may be readmitted",
        "GatewayRefused the gateway cluster refuses EndpointSlice",
    ])
    .await?;
    let lagging = r#"karmada_ingress_controller_lagging_ingresses{reason="GatewayRefused"}"#;
    controller
        .until_metric(lagging, |count| count > 0.5)
        .await?;
    gateway.refuse(None);
    fleet.serves(&[]).await?;
    controller
        .until_metric(lagging, |count| count < 0.5)
        .await?;

    fleet.delete_remedy("maintenance").await?;
    fleet.serves(&[Member(1)]).await?;
    told(&["TrafficUnblocked Cluster member1 is no longer blocked"]).await?;
    karmada.refuse(None);
    fleet.has_blocked(&[Member(2)]).await?;
    controller.until_metric(shown, |count| count > 0.5).await?;
    controller.stop().await
}

on_both!(
    class_change_moves_ingress,
    deletion_leaves_nothing,
    missed_deletion_is_cleaned,
    new_placement_stays_blocked,
    foreign_objects_stay_untouched,
    refused_status_hides_nothing,
);
