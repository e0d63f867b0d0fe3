//! A placement that changes while dispatching is suspended: no copy goes before the resume.

use anyhow::Result;
use karmada_api::ClusterView;
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    control_plane::ApiKind, fleet::Member, on_both, propagation::PropagationFleet, wait::until,
};
use serde_json::{Value, json};

use super::{WEB, change, data, has_data, holds, maps, suspend, until_work, with_settings};

const HELD: &str = "karmada_propagation_controller_held_works";

/// Places the `ConfigMap` in one member.
async fn place(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let placement = json!({ "clusterAffinity": { "clusterNames": [member.name()] } });
    change(fleet, WEB, json!({ "placement": placement })).await
}

/// Waits until the `ConfigMap` is gone from a member, with its Work.
async fn leaves(fleet: &PropagationFleet, member: Member) -> Result<()> {
    until_work(fleet, member, "ConfigMap", "gone", |work| work.is_none()).await?;
    until(&maps(fleet.member(member)), WEB, "gone", |copy| {
        copy.is_none()
    })
    .await?;
    Ok(())
}

/// Fails unless the one member has the `ConfigMap`, and the other one has not.
async fn is_only_in(fleet: &PropagationFleet, one: Member, other: Member) -> Result<()> {
    assert_eq!(
        maps(fleet.member(one)).get(WEB).await?.data,
        Some(data(&[("a", "1")]))
    );
    assert_eq!(maps(fleet.member(other)).get_opt(WEB).await?, None);
    Ok(())
}

/// Case P27: a copy that moves while the cluster it goes to is paused, alone or with all others, stays where it
/// is until the resume.
async fn copy_awaits_paused_cluster(server: ApiKind) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    let only_first = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    let (fleet, programs) = with_settings(server, 2, only_first).await?;
    for suspension in [
        json!({ "dispatching": true }),
        json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } }),
    ] {
        has_data(&fleet, first, &[("a", "1")]).await?;
        suspend(&fleet, suspension).await?;
        place(&fleet, next).await?;
        holds(&fleet, next, "1").await?;
        let controller = &programs.propagation_controller;
        controller.until_metric(HELD, |held| held > 0.0).await?;
        is_only_in(&fleet, first, next).await?;

        suspend(&fleet, Value::Null).await?;
        has_data(&fleet, next, &[("a", "1")]).await?;
        leaves(&fleet, first).await?;
        place(&fleet, first).await?;
        leaves(&fleet, next).await?;
    }
    Ok(())
}

/// Case P27: a cluster that is lost while paused has its replacement at the resume; what runs in it is not
/// deleted.
async fn lost_cluster_is_replaced(server: ApiKind) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    let one_of_two = json!({ "placement": {
        "clusterAffinity": { "clusterNames": ["member1", "member2"] },
        "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
    } });
    let (fleet, _programs) = with_settings(server, 2, one_of_two).await?;
    has_data(&fleet, first, &[("a", "1")]).await?;
    suspend(&fleet, json!({ "dispatching": true })).await?;
    holds(&fleet, first, "1").await?;
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    clusters
        .delete(&first.name(), &DeleteParams::default())
        .await?;
    holds(&fleet, next, "1").await?;
    is_only_in(&fleet, first, next).await?;

    suspend(&fleet, Value::Null).await?;
    has_data(&fleet, next, &[("a", "1")]).await?;
    has_data(&fleet, first, &[("a", "1")]).await
}

on_both!(long: copy_awaits_paused_cluster, lost_cluster_is_replaced);
