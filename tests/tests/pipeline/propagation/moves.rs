//! A placement that changes while dispatching is suspended: no copy goes before the resume.

use anyhow::Result;
use karmada_api::{ClusterView, names};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    control_plane::ApiKind, fleet::Member, on_both, programs::Binary,
    propagation::PropagationFleet, wait::until,
};
use serde_json::{Value, json};

use super::evictions::{no_execute, taint};
use super::groups::until_observed;
use super::{WEB, change, data, has_data, holds, maps, suspend, until_work, with_settings};

const HELD: &str = "karmada_propagation_controller_held_works";

/// Places the `ConfigMap` in one member.
pub(super) async fn place(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let placement = json!({ "clusterAffinity": { "clusterNames": [member.name()] } });
    change(fleet, WEB, json!({ "placement": placement })).await
}

/// Waits until the `ConfigMap` is gone from a member, with its Work.
pub(super) async fn leaves(fleet: &PropagationFleet, member: Member) -> Result<()> {
    until_work(fleet, member, "ConfigMap", "gone", |work| work.is_none()).await?;
    until(&maps(fleet.member(member)), WEB, "gone", |copy| {
        copy.is_none()
    })
    .await?;
    Ok(())
}

/// Case P27: a copy that moves while the cluster it goes to is paused, alone or with all others, stays where it
/// is until the resume.
async fn copy_awaits_paused_cluster(server: ApiKind) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    let only_first = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    let (fleet, programs) = with_settings(server, 2, only_first).await?;
    for suspension in [wholly(), at(next)] {
        let held = programs
            .propagation_controller
            .until_metric(HELD, |held| held > 0.0);
        move_while_paused(&fleet, suspension, held).await?;
        place(&fleet, first).await?;
        leaves(&fleet, next).await?;
    }
    Ok(())
}

/// Returns a suspension of dispatching to all members.
pub(super) fn wholly() -> Value {
    json!({ "dispatching": true })
}

/// Returns a suspension of dispatching to one member.
pub(super) fn at(member: Member) -> Value {
    json!({ "dispatchingOnClusters": { "clusterNames": [member.name()] } })
}

/// Moves the `ConfigMap` from member 1 to member 2 during a suspension of this kind, once `held` is over.
pub(super) async fn move_while_paused(
    fleet: &PropagationFleet,
    suspension: Value,
    held: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    has_data(fleet, first, &[("a", "1")]).await?;
    suspend(fleet, suspension).await?;
    place(fleet, next).await?;
    holds(fleet, next, "1").await?;
    held.await?;
    is_only_in(fleet, first, next).await?;

    suspend(fleet, Value::Null).await?;
    has_data(fleet, next, &[("a", "1")]).await?;
    leaves(fleet, first).await
}

/// Case P27: a copy that moves while the cluster it leaves is paused stays there, too.
async fn copy_stays_in_paused_cluster(server: ApiKind) -> Result<()> {
    let only_first = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    let (fleet, programs) = with_settings(server, 2, only_first).await?;
    let held = programs
        .propagation_controller
        .until_metric(HELD, |held| held > 0.0);
    move_from_paused(&fleet, held).await
}

/// Moves the `ConfigMap` to member 2 from member 1, which is paused, and resumes once `held` is over.
pub(super) async fn move_from_paused(
    fleet: &PropagationFleet,
    held: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    has_data(fleet, first, &[("a", "1")]).await?;
    suspend(fleet, at(first)).await?;
    holds(fleet, first, "1").await?;
    place(fleet, next).await?;
    has_data(fleet, next, &[("a", "1")]).await?;
    held.await?;
    has_data(fleet, first, &[("a", "1")]).await?;

    suspend(fleet, Value::Null).await?;
    leaves(fleet, first).await?;
    has_data(fleet, next, &[("a", "1")]).await
}

/// Case P27: a cluster that is lost while paused has its replacement at the resume; what runs in it is not
/// deleted.
async fn lost_cluster_is_replaced(server: ApiKind) -> Result<()> {
    let placement = json!({ "placement": one_of_two() });
    let (fleet, _programs) = with_settings(server, 2, placement).await?;
    lose_a_cluster_while_paused(&fleet).await
}

/// Deletes the Cluster of member 1, which has the `ConfigMap`, while all are paused, and resumes.
pub(super) async fn lose_a_cluster_while_paused(fleet: &PropagationFleet) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    has_data(fleet, first, &[("a", "1")]).await?;
    suspend(fleet, wholly()).await?;
    holds(fleet, first, "1").await?;
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    clusters
        .delete(&first.name(), &DeleteParams::default())
        .await?;
    holds(fleet, next, "1").await?;
    is_only_in(fleet, first, next).await?;

    suspend(fleet, Value::Null).await?;
    has_data(fleet, next, &[("a", "1")]).await?;
    has_data(fleet, first, &[("a", "1")]).await
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

/// Returns a placement in one of two members, of which the first comes first.
pub(super) fn one_of_two() -> Value {
    json!({
        "clusterAffinity": { "clusterNames": ["member1", "member2"] },
        "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
    })
}

/// Case P27: a workload leaves no paused cluster for its taints before the resume, whether all are paused or this one.
async fn eviction_waits_for_resume(server: ApiKind) -> Result<()> {
    let placement = json!({ "placement": one_of_two() });
    let (fleet, programs) = with_settings(server, 2, placement).await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    programs.scheduler.stop().await?;
    let _evicting = fleet
        .start_program(Binary::Scheduler, &["--evict-untolerated"])
        .await?;
    let (one, two) = (Member(1), Member(2));
    evict_from_paused(&fleet, one, two, wholly()).await?;
    evict_from_paused(&fleet, two, one, at(two)).await
}

/// Taints the one of two members that has the `ConfigMap` during a suspension of this kind, and resumes.
pub(super) async fn evict_from_paused(
    fleet: &PropagationFleet,
    from: Member,
    to: Member,
    suspension: Value,
) -> Result<()> {
    suspend(fleet, suspension).await?;
    holds(fleet, from, "1").await?;
    until_paused(fleet, from).await?;
    taint(fleet, from, no_execute()).await?;
    // A placement that changes later is decided about with the taint.
    let tolerations = json!([{ "key": from.name(), "operator": "Exists" }]);
    let placement = json!({ "clusterTolerations": &tolerations });
    change(fleet, WEB, json!({ "placement": placement })).await?;
    until_observed(fleet, "ConfigMap", "/clusterTolerations", &tolerations).await?;
    let name = names::binding("ConfigMap", WEB);
    let spec = fleet.bindings().get(&name).await?.spec;
    assert_eq!(spec.clusters.unwrap()[0].name, from.name());
    assert_eq!(spec.graceful_eviction_tasks.unwrap_or_default(), []);
    is_only_in(fleet, from, to).await?;

    suspend(fleet, Value::Null).await?;
    has_data(fleet, to, &[("a", "1")]).await?;
    leaves(fleet, from).await?;
    taint(fleet, from, json!([])).await
}

/// Waits until the pause of a member is in the binding, which is all that the scheduler reads. Works heed that of
/// the policy at once.
async fn until_paused(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let name = names::binding("ConfigMap", WEB);
    until(&fleet.bindings(), &name, "paused", |binding| {
        let suspension = binding.and_then(|binding| binding.spec.suspension.as_ref());
        suspension.is_some_and(|suspension| suspension.dispatching.suspends(&member.name()))
    })
    .await?;
    Ok(())
}

/// Case P27: a workload leaves a cluster for its taints, and its copy stays there until the one that is paused may
/// have it.
async fn evicted_copy_awaits_paused_cluster(server: ApiKind) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    let placement = json!({ "placement": one_of_two() });
    let (fleet, programs) = with_settings(server, 2, placement).await?;
    has_data(&fleet, first, &[("a", "1")]).await?;
    programs.scheduler.stop().await?;
    let _evicting = fleet
        .start_program(Binary::Scheduler, &["--evict-untolerated"])
        .await?;
    evict_to_paused(&fleet, first, next).await
}

/// Taints the one of two members that has the `ConfigMap` while the other one is paused, and resumes.
pub(super) async fn evict_to_paused(
    fleet: &PropagationFleet,
    from: Member,
    to: Member,
) -> Result<()> {
    suspend(fleet, at(to)).await?;
    until_paused(fleet, to).await?;
    taint(fleet, from, no_execute()).await?;
    holds(fleet, to, "1").await?;
    is_only_in(fleet, from, to).await?;

    suspend(fleet, Value::Null).await?;
    has_data(fleet, to, &[("a", "1")]).await?;
    leaves(fleet, from).await?;
    taint(fleet, from, json!([])).await
}

on_both!(
    long:
    eviction_waits_for_resume,
    evicted_copy_awaits_paused_cluster,
    copy_awaits_paused_cluster,
    copy_stays_in_paused_cluster,
    lost_cluster_is_replaced,
);
