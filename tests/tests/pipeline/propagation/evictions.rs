//! Workloads that leave clusters for their taints, and return.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::{ClusterView, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    programs::Binary,
    propagation::{PropagationFleet, create},
    wait::{until, until_event},
};
use serde_json::{Value, json};

use super::groups::{REPLICAS, groups, label, leaves, placed, runs_in, until_binding};
use super::{WEB, change, deployments, has_image, maps, until_work};

pub(super) async fn taint(fleet: &PropagationFleet, member: Member, taints: Value) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    let parameters = PatchParams::default();
    clusters.patch(&member.name(), &parameters, &patch).await?;
    Ok(())
}

pub(super) fn no_execute() -> Value {
    json!([{ "key": "dns", "effect": "NoExecute" }])
}

/// Makes the copy in a member healthy, as a member's own controllers do.
pub(super) async fn is_well(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let copies = deployments(fleet.member(member));
    let generation = copies.get(WEB).await?.metadata.generation;
    let status = json!({ "status": {
        "observedGeneration": generation, "replicas": REPLICAS, "updatedReplicas": REPLICAS,
        "readyReplicas": REPLICAS, "availableReplicas": REPLICAS,
    } });
    let (status, parameters) = (Patch::Merge(status), PatchParams::default());
    copies.patch_status(WEB, &parameters, &status).await?;
    Ok(())
}

/// Asks the scheduler to decide about the deployment anew.
pub(super) async fn reschedule(fleet: &PropagationFleet) -> Result<()> {
    let asked = json!({ "spec": { "rescheduleTriggeredAt": "2099-01-01T00:00:00Z" } });
    let (asked, parameters) = (Patch::Merge(asked), PatchParams::default());
    let name = names::binding("Deployment", WEB);
    fleet.bindings().patch(&name, &parameters, &asked).await?;
    Ok(())
}

/// Waits until the scheduler gives new workloads to the member. A trigger that overtook the news of its taint would be
/// spent in vain: nothing orders the two watches.
pub(super) async fn takes_workloads(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let canary = "canary";
    create(
        &maps(&fleet.karmada),
        json!({ "metadata": { "name": canary } }),
    )
    .await?;
    let policy = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": canary }],
        "placement": { "clusterAffinity": { "clusterNames": [member.name()] } },
    });
    fleet.create_policy(canary, policy).await?;
    let has = |copy: Option<&ConfigMap>| copy.is_some();
    until(&maps(fleet.member(member)), canary, "there", has).await?;
    Ok(())
}

/// Case P53, the second story of the proposal: a taint on the primary cluster moves the workload to the backup; its
/// copy in the primary one goes once that in the backup is healthy. It goes back only when asked.
async fn taint_moves_to_backup(server: ApiKind) -> Result<()> {
    let placement = json!({ "clusterAffinities": groups(&["primary", "backup"]) });
    let (fleet, programs) = placed(server, placement).await?;
    let (primary, backup) = (Member(1), Member(2));
    label(&fleet, primary, Some("primary")).await?;
    runs_in(&fleet, &[(primary, REPLICAS)], Some("primary")).await?;
    label(&fleet, backup, Some("backup")).await?;
    programs.scheduler.stop().await?;
    let _evicting = fleet
        .start_program(Binary::Scheduler, &["--evict-untolerated"])
        .await?;

    let dns = json!([{ "key": "dns", "effect": "NoExecute", "timeAdded": "2026-11-22T08:00:00Z" }]);
    taint(&fleet, primary, dns).await?;
    runs_in(&fleet, &[(backup, REPLICAS)], Some("backup")).await?;
    until_event(
        &fleet.karmada.client(),
        "ResourceBinding",
        &names::binding("Deployment", WEB),
        "EvictWorkloadFromClusterSucceed",
    )
    .await?;
    has_image(&fleet, primary, "web:1").await?;
    is_well(&fleet, backup).await?;
    leaves(&fleet, primary).await?;

    taint(&fleet, primary, json!([])).await?;
    takes_workloads(&fleet, primary).await?;
    let name = names::binding("Deployment", WEB);
    let before = fleet.bindings().get(&name).await?.spec.clusters;
    assert_eq!(before.unwrap_or_default()[0].name, backup.name());
    reschedule(&fleet).await?;
    runs_in(&fleet, &[(primary, REPLICAS)], Some("primary")).await
}

/// A workload stays in the backup group until it may return, and keeps its copy there until that in the primary
/// group is healthy.
async fn fail_back_is_optional(server: ApiKind) -> Result<()> {
    let placement = json!({ "clusterAffinities": groups(&["primary", "backup"]) });
    let (fleet, programs) = placed(server, placement).await?;
    let (primary, backup) = (Member(1), Member(2));
    let (queue, passes) = (
        "karmada_scheduler_queue_length",
        "karmada_scheduler_reconciles_total",
    );
    label(&fleet, backup, Some("backup")).await?;
    runs_in(&fleet, &[(backup, REPLICAS)], Some("backup")).await?;
    programs.rest().await?;
    let before = programs.scheduler.metric(passes).await?;
    label(&fleet, primary, Some("primary")).await?;
    let scheduler = programs.scheduler;
    scheduler
        .until_metric(passes, |count| count > before)
        .await?;
    scheduler
        .until_metric(queue, |length| length == 0.0)
        .await?;
    runs_in(&fleet, &[(backup, REPLICAS)], Some("backup")).await?;
    assert!(
        deployments(fleet.member(primary))
            .get_opt(WEB)
            .await?
            .is_none()
    );
    scheduler.stop().await?;

    let flags = ["--evict-untolerated", "--affinity-fail-back"];
    let _returning = fleet.start_program(Binary::Scheduler, &flags).await?;
    for _ in 0..2 {
        runs_in(&fleet, &[(primary, REPLICAS)], Some("primary")).await?;
        has_image(&fleet, backup, "web:1").await?;
        is_well(&fleet, primary).await?;
        leaves(&fleet, backup).await?;

        taint(&fleet, primary, no_execute()).await?;
        runs_in(&fleet, &[(backup, REPLICAS)], Some("backup")).await?;
        is_well(&fleet, backup).await?;
        leaves(&fleet, primary).await?;
        taint(&fleet, primary, json!([])).await?;
    }
    let note = "Evict from cluster member2: the group primary fits again";
    let name = names::binding("Deployment", WEB);
    until_event(&fleet.karmada.client(), "ResourceBinding", &name, note).await
}

/// With `purgeMode: Directly` a copy is gone before another is made, whoever deletes it late.
async fn direct_eviction_deletes_first(server: ApiKind) -> Result<()> {
    let placement = json!({ "clusterAffinities": groups(&["primary", "backup"]) });
    let (fleet, programs) = placed(server, placement).await?;
    let (primary, backup) = (Member(1), Member(2));
    let directly = json!({ "cluster": { "purgeMode": "Directly" } });
    change(&fleet, WEB, json!({ "failover": &directly })).await?;
    until_binding(&fleet, "evicts directly", |binding| {
        binding.spec.failover.as_ref() == Some(&directly)
    })
    .await?;
    label(&fleet, primary, Some("primary")).await?;
    runs_in(&fleet, &[(primary, REPLICAS)], Some("primary")).await?;
    label(&fleet, backup, Some("backup")).await?;
    programs.scheduler.stop().await?;
    programs.execution_controller.stop().await?;
    let _evicting = fleet
        .start_program(Binary::Scheduler, &["--evict-untolerated"])
        .await?;
    taint(&fleet, primary, no_execute()).await?;
    until_work(&fleet, primary, "Deployment", "leaving", |work| {
        work.is_some_and(|work| work.metadata.deletion_timestamp.is_some())
    })
    .await?;
    until_binding(&fleet, "in the backup", |binding| {
        let targets = binding.spec.clusters.as_deref().unwrap_or_default();
        targets.iter().any(|target| target.name == backup.name())
    })
    .await?;
    let queue = "karmada_propagation_controller_queue_length";
    let dispatching = &programs.propagation_controller;
    dispatching
        .until_metric(queue, |length| length == 0.0)
        .await?;
    let work = PropagationFleet::work_name("Deployment", WEB);
    assert_eq!(fleet.works(backup).get_opt(&work).await?, None);

    let _executing = fleet
        .start_program(Binary::ExecutionController, &[])
        .await?;
    leaves(&fleet, primary).await?;
    runs_in(&fleet, &[(backup, REPLICAS)], Some("backup")).await
}

on_both!(
    long:
    taint_moves_to_backup,
    fail_back_is_optional,
    direct_eviction_deletes_first,
);
