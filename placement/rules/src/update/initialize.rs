//! The beginning of a run: the clusters that it updates, and their order, are said once and for all.

use fleet_api::StagedUpdateRun;
use fleet_api::names::{DELETION_STAGE, RESOURCE_INDEX};
use fleet_api::update::{ClusterUpdate, StageStatus, UpdateRunStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::qualified_name::is_label_value;

use super::facts::UpdateFacts;
use super::messages;
use super::picked::{self, Picked, Policy};
use super::stages::stages;
use super::step::{Obstacle, Step, invalid, master};
use crate::condition::put;
use crate::snapshot::{latest_resources, whole_group};
use crate::strategy::apply_strategy;

/// The time within which the objects that a run names may come after it: those written together come one after the other.
const TOGETHER: SignedDuration = SignedDuration::from_secs(5);

/// Says the task of a run.
///
/// # Errors
/// Fails if it can never begin, or something is missing that is about to come.
pub(super) fn initialize(step: &mut Step<'_, '_>) -> Result<(), Obstacle> {
    let facts = step.facts;
    if let Some(until) = awaited(facts) {
        return Err(Obstacle::Awaited(until));
    }
    let run = &facts.run.spec;
    let placement = picked::placement(facts)?;
    let policy = Policy::latest(facts, placement)?;
    let picked = policy.picked(facts)?;
    let count = policy
        .count
        .or_else(|| i64::try_from(picked.selected.len()).ok());
    let name = facts.run.metadata.name();
    if !is_label_value(name) {
        return Err(invalid(&format!(
            "the name `{name}` of the run has more than 63 characters: the label of its approval requests takes no more"
        )));
    }
    // A run that cannot begin shows how far it came.
    step.status = UpdateRunStatus {
        policy_snapshot_index_used: policy.index.to_owned(),
        policy_observed_cluster_count: count.unwrap_or_default(),
        apply_strategy: Some(apply_strategy(placement)),
        ..UpdateRunStatus::default()
    };
    if picked.selected.is_empty() && picked.leaving.is_empty() {
        let latest = policy.snapshot.metadata.name();
        return Err(invalid(&format!(
            "no scheduled or to-be-deleted bindings found for the latest policy snapshot {latest}"
        )));
    }
    let strategy = facts.strategy.ok_or_else(|| {
        let name = &run.strategy_name;
        invalid(&format!("referenced updateStrategy not found: `{name}`"))
    })?;
    step.status.strategy = Some(strategy.spec.clone());
    let mut stages = stages(name, &strategy.spec.stages, &picked, facts.clusters)
        .map_err(|reason| invalid(&format!("updateStrategy `{}`: {reason}", run.strategy_name)))?;
    for cluster in stages.iter_mut().flat_map(|stage| &mut stage.clusters) {
        list_overrides(facts, &picked, cluster);
    }
    step.status.stages = stages;
    step.status.deletion_stage = Some(deletion(&picked));
    step.status.resource_snapshot_index_used = existing_index(facts)?;
    let dated = step.dated();
    put(
        &mut step.status.conditions,
        [messages::initialized(facts.run.scope())],
        dated,
    );
    Ok(())
}

/// Returns the time until which a run waits for its placement or its strategy, if that is not there yet.
fn awaited(facts: &UpdateFacts<'_>) -> Option<Timestamp> {
    let is_whole = facts.placement.is_some() && facts.strategy.is_some();
    let created = facts.run.metadata.creation_timestamp.as_ref()?;
    let until = created.0.saturating_add(TOGETHER).ok()?;
    (!is_whole && facts.now < until).then_some(until)
}

/// Returns the index of the snapshot that a run is about: that which it uses, or asks for, or else the latest.
pub(super) fn index<'a>(
    run: &'a StagedUpdateRun,
    snapshots: impl IntoIterator<Item = &'a ObjectMeta>,
) -> Option<&'a str> {
    let used = run.status.as_ref();
    let used = used.map_or("", |status| &status.resource_snapshot_index_used);
    let named = [used, &run.spec.resource_snapshot_index];
    if let Some(index) = named.into_iter().find(|index| !index.is_empty()) {
        return Some(index);
    }
    latest_resources(snapshots)?.label(RESOURCE_INDEX)
}

/// Returns the index of the snapshot that a run is about, if that is there.
fn existing_index(facts: &UpdateFacts<'_>) -> Result<String, Obstacle> {
    let index = index(facts.run, facts.snapshots.iter().copied()).ok_or(Obstacle::Missing)?;
    if index.parse::<u32>().is_err() {
        return Err(invalid(&format!(
            "invalid resource snapshot index `{index}` provided, expected an integer >= 0"
        )));
    }
    let placement = &facts.run.spec.placement_name;
    let name = master(placement, index);
    match whole_group(facts.snapshots.iter().copied(), &name) {
        Some(_) => Ok(index.to_owned()),
        None => Err(invalid(&format!(
            "no resourceSnapshots with index `{index}` found for placement `{placement}`"
        ))),
    }
}

fn list_overrides(facts: &UpdateFacts<'_>, picked: &Picked<'_>, cluster: &mut ClusterUpdate) {
    let binding = picked.selected.get(&*cluster.cluster_name);
    if let Some(applicable) = binding.and_then(|binding| facts.overrides.applicable(binding)) {
        let listed = applicable.clone();
        cluster.cluster_resource_override_snapshots = listed.cluster_scoped;
        cluster.resource_override_snapshots = listed.namespaced;
    }
}

fn deletion(picked: &Picked<'_>) -> StageStatus {
    let leaving = picked.leaving.iter();
    let mut clusters: Vec<_> = leaving.map(|one| &one.spec.target_cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let clusters = clusters.into_iter().map(|cluster| ClusterUpdate {
        cluster_name: cluster.clone(),
        ..ClusterUpdate::default()
    });
    StageStatus {
        stage_name: DELETION_STAGE.to_owned(),
        clusters: clusters.collect(),
        ..StageStatus::default()
    }
}
