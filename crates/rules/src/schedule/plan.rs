//! The decision about one binding.

use karmada_api::{Placement, TargetCluster};
use serde::Deserialize;
use serde_json::Value;

use super::facts::{Facts, KnownClusters, Pass, Scheduler};
use super::failure::AffinityFailure;
use super::outcome::{SchedulePlan, failed, observed, scheduled};
use super::strategy::ReplicaStrategy;
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
        return SchedulePlan::Unchanged;
    }
    let placement = binding.spec.placement.as_ref();
    let placement = match Placement::deserialize(placement.unwrap_or(&Value::Null)) {
        Ok(placement) => placement,
        Err(error) => {
            let message = format!("the placement cannot be read: {error}");
            return failed(binding, &[AffinityFailure::Unsupported(message)], pass);
        }
    };
    let strategy = match ReplicaStrategy::of(binding.spec, &placement) {
        Ok(strategy) => strategy,
        Err(failure) => return failed(binding, &[failure], pass),
    };
    let facts = Facts {
        scheduler,
        binding,
        placement: &placement,
        strategy,
        fleet,
        pass,
    };
    let graceful = eviction::finished_evictions(facts)
        .or_else(|| eviction::evicted(facts))
        .or_else(|| failback::returned(facts));
    if let Some(plan) = graceful {
        return plan;
    }
    if !trigger::is_due(facts) {
        return observed(binding, &placement);
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
