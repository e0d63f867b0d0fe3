//! The decision about one binding.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::{
    ClusterView, Condition, GracefulEvictionTask, Placement, TargetCluster, condition, names,
};
use objects::patch::JsonPatch;
use serde::Deserialize;
use serde_json::Value;

use super::decide::{Cycle, Decision};
use super::strategy::ReplicaStrategy;
use super::write::{SpecWrite, StatusWrite};
use super::{AffinityFailure, Scheduler, evict, groups, need};
use crate::binding_ref::BindingRef;

/// The clusters of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct KnownClusters<'a> {
    /// Every cluster that can be read.
    pub clusters: &'a [&'a ClusterView],
    /// False while a cluster exists that could not be read yet.
    pub complete: bool,
}

/// The occasion of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The time.
    pub now: Timestamp,
    /// True if labels or spec of a cluster have changed that the affinity in use selects or selected.
    pub cluster_changed: bool,
}

/// The writes that a binding needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulePlan {
    /// None.
    Unchanged,
    /// None: its placement asks for what this scheduler does not do, and what runs goes on.
    LeftAlone {
        /// The reason.
        message: String,
    },
    /// The evictions that are over, as the operations of a JSON patch.
    EndEvictions(JsonPatch),
    /// The clusters, then the status.
    Write {
        /// The write of the clusters.
        spec: Option<SpecWrite>,
        /// The write of the status.
        status: Option<StatusWrite>,
    },
}

/// Plans the clusters of a binding.
pub fn plan(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    fleet: KnownClusters<'_>,
    pass: Pass,
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
    let cycle = Cycle {
        scheduler,
        binding,
        placement: &placement,
        strategy,
        fleet,
        pass,
    };
    let graceful = evict::ended(cycle)
        .or_else(|| evict::evicted(cycle))
        .or_else(|| groups::returned(cycle));
    if let Some(plan) = graceful {
        return plan;
    }
    if !need::is_due(binding, strategy, fleet.clusters) {
        return observed(binding, &placement);
    }
    match cycle.decide() {
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
    let is_known = |name: &str| {
        let mut known = fleet.clusters.iter();
        known.any(|cluster| cluster.metadata.name.as_deref() == Some(name))
    };
    let stays = |name: &str| clusters.iter().any(|target| target.name == name);
    let mut targets = binding.targets();
    !fleet.complete && targets.any(|target| !is_known(&target.name) && !stays(&target.name))
}

/// Plans the writes of a binding that needs no decision.
fn observed(binding: BindingRef<'_>, placement: &Placement) -> SchedulePlan {
    let has_groups = !placement.cluster_affinities.is_empty();
    let group = binding.observed_group().filter(|_| has_groups);
    if is_observed(binding) && group == binding.mirrored_group() {
        return SchedulePlan::Unchanged;
    }
    let group = group.map(str::to_owned);
    SchedulePlan::Write {
        spec: None,
        status: Some(StatusWrite::Observed { group }),
    }
}

/// Returns `true` if the status is of the newest generation.
fn is_observed(binding: BindingRef<'_>) -> bool {
    let status = binding.status;
    let observed = status.and_then(|status| status.scheduler_observed_generation);
    observed.is_some() && observed == binding.metadata.generation
}

/// Plans the writes of a binding that gets these clusters, and leaves others gracefully.
pub(super) fn scheduled(
    binding: BindingRef<'_>,
    decision: Decision,
    evictions: Vec<GracefulEvictionTask>,
    pass: Pass,
) -> SchedulePlan {
    let Decision { clusters, group } = decision;
    let moved = by_name(binding.targets()) != by_name(&clusters);
    let annotated = binding.annotation(names::APPLIED_PLACEMENT);
    let applied: Option<Value> = annotated.and_then(|text| serde_json::from_str(text).ok());
    let is_applied = applied == binding.spec.placement;
    // Without groups only the annotation counts: the status alone may have a name left by Karmada.
    let in_use = match &group {
        Some(_) => binding.observed_group(),
        None => binding.annotation(names::SCHEDULED_AFFINITY),
    };
    let spec = (moved || !is_applied || in_use != group.as_deref()).then(|| SpecWrite {
        clusters: moved.then_some(clusters),
        group: group.clone(),
        evictions,
    });
    let triggered = need::is_triggered(binding);
    let is_success = |condition: &Condition| {
        condition.status == condition::TRUE && condition.reason == "Success"
    };
    let settled = spec.is_none()
        && is_observed(binding)
        && !triggered
        && !pass.cluster_changed
        && binding.mirrored_group() == group.as_deref()
        && binding.condition().is_some_and(is_success);
    if settled {
        return SchedulePlan::Unchanged;
    }
    // A trigger that were later than the time of its own success would fire for ever.
    let trigger = binding.spec.reschedule_triggered_at.as_ref();
    let at = trigger.map_or(pass.now, |trigger| trigger.0.max(pass.now));
    let status = Some(StatusWrite::Scheduled { group, at });
    SchedulePlan::Write { spec, status }
}

/// Returns the replicas of each cluster. None given is as zero.
fn by_name<'a>(targets: impl IntoIterator<Item = &'a TargetCluster>) -> BTreeMap<&'a str, i32> {
    let targets = targets.into_iter();
    targets
        .map(|target| (target.name.as_str(), target.replicas.unwrap_or(0)))
        .collect()
}

/// The reason of a binding for which the clusters lack room.
pub(super) const UNSCHEDULABLE: &str = "Unschedulable";
/// The reason of a binding whose placement cannot be met otherwise, which may be for a lack of room, too.
pub(super) const SCHEDULER_ERROR: &str = "SchedulerError";

/// Plans the writes of a binding that has no result. What runs is only taken away if no cluster of any
/// group fits: the order of the groups' failures does not matter.
fn failed(binding: BindingRef<'_>, failures: &[AffinityFailure], pass: Pass) -> SchedulePlan {
    let runs = binding.targets().next().is_some();
    let is_unsupported =
        |failure: &&AffinityFailure| matches!(failure, AffinityFailure::Unsupported(_));
    if let Some(failure) = failures.iter().find(is_unsupported).filter(|_| runs) {
        let message = failure.to_string();
        return SchedulePlan::LeftAlone { message };
    }
    let unfit = failures
        .iter()
        .all(|failure| matches!(failure, AffinityFailure::Unfit(_)));
    let is_short = |failure: &AffinityFailure| {
        matches!(
            failure,
            AffinityFailure::Unfit(_) | AffinityFailure::Short(_)
        )
    };
    let reason = if unfit {
        "NoClusterFit"
    } else if failures.iter().all(is_short) {
        UNSCHEDULABLE
    } else {
        SCHEDULER_ERROR
    };
    let messages: Vec<String> = failures.iter().map(AffinityFailure::to_string).collect();
    let message = messages.join("; ");
    let spec = (unfit && runs).then(|| SpecWrite {
        clusters: Some(Vec::new()),
        group: binding
            .annotation(names::SCHEDULED_AFFINITY)
            .map(str::to_owned),
        evictions: Vec::new(),
    });
    let at = pass.now;
    let status = StatusWrite::Failed {
        reason,
        message,
        at,
    };
    let status = (!status.is_shown(binding)).then_some(status);
    if spec.is_none() && status.is_none() {
        return SchedulePlan::Unchanged;
    }
    SchedulePlan::Write { spec, status }
}

#[cfg(test)]
mod tests;
