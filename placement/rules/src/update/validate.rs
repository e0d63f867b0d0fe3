//! Whether a run can go on: the facts with which it began must still be so.

use fleet_api::update::{StageStatus, UpdateRunStatus};
use objects::Metadata;

use super::facts::UpdateFacts;
use super::picked::{self, Picked, Policy};
use super::stages::stages;
use super::step::{Obstacle, invalid};
use crate::strategy::apply_strategy;

/// Returns the clusters of a run that has begun: those that it began with.
///
/// # Errors
/// Fails if one of them is picked no more, or they get something else.
pub(super) fn validate<'a>(
    facts: &UpdateFacts<'a>,
    status: &UpdateRunStatus,
) -> Result<Picked<'a>, Obstacle> {
    let placement = picked::placement(facts)?;
    let latest = apply_strategy(placement);
    if status.apply_strategy.as_ref() != Some(&latest) {
        return Err(invalid(
            "the applyStrategy in the updateRun is outdated: the placement has another one by now",
        ));
    }
    let policy = Policy::latest(facts, placement)?;
    let (latest, recorded) = (policy.index, &status.policy_snapshot_index_used);
    if latest != recorded {
        return Err(invalid(&format!(
            "the policy snapshot index used in the updateRun is outdated, latest: {latest}, recorded: {recorded}"
        )));
    }
    let recorded = status.policy_observed_cluster_count;
    if let Some(latest) = policy.count.filter(|count| *count != recorded) {
        return Err(invalid(&format!(
            "the cluster count initialized in the updateRun is outdated, latest: {latest}, recorded: {recorded}"
        )));
    }
    let mut picked = policy.picked(facts)?;
    // A decision since then is for the next run.
    picked
        .selected
        .retain(|name, _| status.stages.iter().any(|stage| has(stage, name)));
    let deletion = status.deletion_stage.as_ref();
    picked
        .leaving
        .retain(|one| deletion.is_some_and(|stage| has(stage, &one.spec.target_cluster)));
    let strategy = status.strategy.clone().unwrap_or_default();
    let name = facts.run.metadata.name();
    let now = stages(name, &strategy.stages, &picked, facts.clusters);
    let now = now.map_err(|reason| invalid(&reason))?;
    same(&status.stages, &now).map_err(|reason| invalid(&reason))?;
    Ok(picked)
}

fn has(stage: &StageStatus, cluster: &str) -> bool {
    let mut clusters = stage.clusters.iter();
    clusters.any(|one| one.cluster_name == cluster)
}

/// Compares the stages of a run with those that it would have now.
fn same(recorded: &[StageStatus], now: &[StageStatus]) -> Result<(), String> {
    if recorded.len() != now.len() {
        let (now, recorded) = (now.len(), recorded.len());
        return Err(format!(
            "the number of stages in the updateRun has changed, new: {now}, existing: {recorded}"
        ));
    }
    for (place, (recorded, now)) in recorded.iter().zip(now).enumerate() {
        let (old, new) = (&recorded.stage_name, &now.stage_name);
        if old != new {
            return Err(format!(
                "index `{place}` stage name in the updateRun has changed, new: {new}, existing: {old}"
            ));
        }
        let (old, new) = (recorded.clusters.len(), now.clusters.len());
        if old != new {
            return Err(format!(
                "the number of clusters in index `{place}` stage has changed, new: {new}, existing: {old}"
            ));
        }
        let clusters = recorded.clusters.iter().zip(&now.clusters);
        for (at, (recorded, now)) in clusters.enumerate() {
            let (old, new) = (&recorded.cluster_name, &now.cluster_name);
            if old != new {
                return Err(format!(
                    "the `{at}` cluster in the `{place}` stage has changed, new: {new}, existing: {old}"
                ));
            }
        }
    }
    Ok(())
}
