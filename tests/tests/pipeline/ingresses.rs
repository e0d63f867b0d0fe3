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

async fn an_ingress_moved_to_another_class_is_cleaned_and_comes_back_with_its_class(
    server: ApiKind,
) -> Result<()> {
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

async fn a_deleted_ingress_leaves_nothing_behind(server: ApiKind) -> Result<()> {
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

async fn an_ingress_deleted_while_the_controller_is_down_is_cleaned_when_it_returns(
    server: ApiKind,
) -> Result<()> {
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

async fn a_service_newly_placed_on_a_blocked_cluster_gets_no_traffic_there(
    server: ApiKind,
) -> Result<()> {
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

async fn an_object_of_somebody_else_in_the_gateway_is_never_touched(server: ApiKind) -> Result<()> {
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

on_both!(
    an_ingress_moved_to_another_class_is_cleaned_and_comes_back_with_its_class,
    a_deleted_ingress_leaves_nothing_behind,
    an_ingress_deleted_while_the_controller_is_down_is_cleaned_when_it_returns,
    a_service_newly_placed_on_a_blocked_cluster_gets_no_traffic_there,
    an_object_of_somebody_else_in_the_gateway_is_never_touched,
);
