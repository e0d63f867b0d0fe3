//! The life of a MultiClusterIngress and of its objects in the gateway.

use anyhow::Result;
use kube::api::DeleteParams;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member},
    on_both,
    programs::Profile,
    wait::until,
};

const MEMBERS: [Member; 2] = [Member(1), Member(2)];

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

on_both!(deletion_leaves_nothing);
