//! The decision about one binding.

use karmada_api::{ClusterView, Placement, TargetCluster};
use serde::Deserialize;
use serde_json::Value;

use super::estimator_targets::{is_candidate, needs_room};
use super::facts::{Facts, KnownClusters, Pass, Scheduler};
use super::failure::AffinityFailure;
use super::outcome::{SchedulePlan, failed, observed, scheduled};
use super::{cycle, eviction, failback, trigger};
use crate::binding_ref::BindingRef;

/// Plans the clusters of a binding.
pub fn plan(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    fleet: KnownClusters<'_>,
    pass: Pass<'_>,
) -> SchedulePlan {
    if !scheduler.schedules(binding) {
        // A suspended binding begins nothing, and ends the evictions that have begun.
        let ended = scheduler
            .has(binding)
            .then(|| eviction::finished_evictions(scheduler, binding, pass.now));
        return ended.flatten().unwrap_or(SchedulePlan::Unchanged);
    }
    let placement = match placement(binding) {
        Ok(placement) => placement,
        Err(error) => {
            let message = format!("the placement cannot be read: {error}");
            return failed(binding, &[AffinityFailure::Unsupported(message)], pass);
        }
    };
    let facts = match Facts::new(scheduler, binding, &placement, fleet, pass) {
        Ok(facts) => facts,
        Err(failure) => return failed(binding, &[failure], pass),
    };
    decided(facts)
}

/// Returns the clusters whose estimators are to be asked before this binding is decided, on the same facts but without
/// their estimates. Those only take room away: a binding that stays as it is without them needs none.
pub fn clusters_to_ask<'a>(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    fleet: KnownClusters<'a>,
    pass: Pass<'_>,
) -> Vec<&'a ClusterView> {
    let Ok(placement) = placement(binding) else {
        return Vec::new();
    };
    let Ok(facts) = Facts::new(scheduler, binding, &placement, fleet, pass) else {
        return Vec::new();
    };
    let is_decided = scheduler.schedules(binding)
        && needs_room(facts)
        && matches!(decided(facts), SchedulePlan::Write { .. });
    if !is_decided {
        return Vec::new();
    }
    let clusters = fleet.clusters.iter().copied();
    let clusters = clusters.filter(|cluster| is_candidate(facts, cluster));
    clusters.collect()
}

/// Decides about a binding that is to be scheduled.
fn decided(facts: Facts<'_>) -> SchedulePlan {
    let Facts {
        binding,
        placement,
        fleet,
        pass,
        ..
    } = facts;
    let graceful = eviction::finished_evictions(facts.scheduler, binding, pass.now)
        .or_else(|| eviction::evicted(facts))
        .or_else(|| failback::returned(facts));
    if let Some(plan) = graceful {
        return plan;
    }
    if !trigger::is_due(facts) {
        return observed(binding, placement);
    }
    match cycle::decide(facts) {
        Ok(decision) if takes_unread_away(binding, &decision.clusters, fleet) => {
            SchedulePlan::Unchanged
        }
        Ok(decision) => scheduled(binding, decision, Vec::new(), pass),
        Err(_) if !fleet.complete => SchedulePlan::Unchanged,
        Err(failures) => failed(binding, &failures, pass),
    }
}

fn placement(binding: BindingRef<'_>) -> Result<Placement, serde_json::Error> {
    let placement = binding.spec.placement.as_ref();
    Placement::deserialize(placement.unwrap_or(&Value::Null))
}

/// Returns `true` if a target would go that may exist, though it could not be read.
fn takes_unread_away(
    binding: BindingRef<'_>,
    clusters: &[TargetCluster],
    fleet: KnownClusters<'_>,
) -> bool {
    !fleet.complete
        && binding.targets().any(|target| {
            let stays = clusters.iter().any(|one| one.name == target.name);
            !stays && fleet.get(&target.name).is_none()
        })
}

#[cfg(test)]
mod tests;
