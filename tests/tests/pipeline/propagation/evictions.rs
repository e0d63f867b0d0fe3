//! Workloads that leave clusters for their taints, and return.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::{ClusterView, ResourceBinding, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    programs::Binary,
    propagation::{PropagationFleet, PropagationPrograms, create},
    wait::{until, until_event},
};
use serde_json::{Value, json};

use super::{WEB, deployment, deployments, has_image, maps};

/// The replicas of the deployment.
const REPLICAS: i32 = 4;

/// Starts a fleet of two members with the deployment, which is to run in the first of two groups that fits.
async fn placed(server: ApiKind) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = PropagationFleet::start(server, 2).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    let selected = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB }]);
    let policy = json!({ "resourceSelectors": selected, "placement": primary_or_backup() });
    fleet.create_policy(WEB, policy).await?;
    let programs = fleet.run().await?;
    Ok((fleet, programs))
}

/// Returns a placement in the first of two groups of clusters that fits.
fn primary_or_backup() -> Value {
    let groups = ["primary", "backup"].map(|name| {
        json!({ "affinityName": name, "labelSelector": { "matchLabels": { "group": name } } })
    });
    json!({ "clusterAffinities": groups })
}

async fn label(fleet: &PropagationFleet, member: Member, group: &str) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "group": group } } }));
    let parameters = PatchParams::default();
    clusters.patch(&member.name(), &parameters, &labels).await?;
    Ok(())
}

/// Waits until the binding has all replicas in this member, and the name of its group in its status.
async fn runs_in(fleet: &PropagationFleet, member: Member, group: &str) -> Result<()> {
    let name = names::binding("Deployment", WEB);
    let what = format!("in {} of {group}", member.name());
    until(&fleet.bindings(), &name, &what, |binding| {
        binding.is_some_and(|binding| is_in(binding, member, group))
    })
    .await?;
    has_image(fleet, member, "web:1").await
}

fn is_in(binding: &ResourceBinding, member: Member, group: &str) -> bool {
    let status = binding.status.as_ref();
    let named = status.and_then(|status| status.scheduler_observed_affinity_name.as_deref());
    let targets = binding.spec.clusters.as_deref().unwrap_or_default();
    let is_whole =
        matches!(targets, [only] if only.name == member.name() && only.replicas == Some(REPLICAS));
    is_whole && named == Some(group)
}

/// Waits until the copy in a member is gone.
async fn leaves(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let copies = deployments(fleet.member(member));
    until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
    Ok(())
}

async fn taint(fleet: &PropagationFleet, member: Member, taints: Value) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    let parameters = PatchParams::default();
    clusters.patch(&member.name(), &parameters, &patch).await?;
    Ok(())
}

fn no_execute() -> Value {
    json!([{ "key": "dns", "effect": "NoExecute" }])
}

/// Makes the copy in a member healthy, as a member's own controllers do.
async fn is_well(fleet: &PropagationFleet, member: Member) -> Result<()> {
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
    let (fleet, programs) = placed(server).await?;
    let (primary, backup) = (Member(1), Member(2));
    label(&fleet, primary, "primary").await?;
    runs_in(&fleet, primary, "primary").await?;
    label(&fleet, backup, "backup").await?;
    programs.scheduler.stop().await?;
    let _evicting = fleet
        .start_program(Binary::Scheduler, &["--evict-untolerated"])
        .await?;

    let dns = json!([{ "key": "dns", "effect": "NoExecute", "timeAdded": "2026-11-22T08:00:00Z" }]);
    taint(&fleet, primary, dns).await?;
    runs_in(&fleet, backup, "backup").await?;
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
    runs_in(&fleet, primary, "primary").await
}

/// A workload stays in the backup group until it may return, and keeps its copy there until that in the primary
/// group is healthy.
async fn fail_back_is_optional(server: ApiKind) -> Result<()> {
    let (fleet, programs) = placed(server).await?;
    let (primary, backup) = (Member(1), Member(2));
    let (queue, passes) = (
        "karmada_scheduler_queue_length",
        "karmada_scheduler_reconciles_total",
    );
    label(&fleet, backup, "backup").await?;
    runs_in(&fleet, backup, "backup").await?;
    programs.rest().await?;
    let before = programs.scheduler.metric(passes).await?;
    label(&fleet, primary, "primary").await?;
    let scheduler = programs.scheduler;
    scheduler
        .until_metric(passes, |count| count > before)
        .await?;
    scheduler
        .until_metric(queue, |length| length == 0.0)
        .await?;
    runs_in(&fleet, backup, "backup").await?;
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
        runs_in(&fleet, primary, "primary").await?;
        has_image(&fleet, backup, "web:1").await?;
        is_well(&fleet, primary).await?;
        leaves(&fleet, backup).await?;

        taint(&fleet, primary, no_execute()).await?;
        runs_in(&fleet, backup, "backup").await?;
        is_well(&fleet, backup).await?;
        leaves(&fleet, primary).await?;
        taint(&fleet, primary, json!([])).await?;
    }
    let note = "Evict from cluster member2: the group primary fits again";
    let name = names::binding("Deployment", WEB);
    until_event(&fleet.karmada.client(), "ResourceBinding", &name, note).await
}

on_both!(
    long:
    taint_moves_to_backup,
    fail_back_is_optional,
);
