//! The decision about one binding.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::placement::ClusterSelector;
use karmada_api::{ClusterProfile, Condition, Placement, TargetCluster, condition, names};
use serde::Deserialize;
use serde_json::Value;

use super::strategy::ReplicaStrategy;
use super::write::{SpecWrite, StatusWrite};
use super::{Failure, Scheduler, divide, evict, filter, groups, need, select};
use crate::binding_ref::BindingRef;

/// The clusters of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct Fleet<'a> {
    /// Every cluster that can be read.
    pub clusters: &'a [&'a ClusterProfile],
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
pub enum Plan {
    /// None.
    Unchanged,
    /// None: its placement asks for what this scheduler does not do, and what runs goes on.
    LeftAlone {
        /// The reason.
        message: String,
    },
    /// The evictions that are over, as the operations of a JSON patch.
    EndEvictions(Value),
    /// The clusters, then the status.
    Write {
        /// The write of the clusters.
        spec: Option<SpecWrite>,
        /// The write of the status.
        status: Option<StatusWrite>,
    },
}

/// Plans the clusters of a binding.
pub fn plan(scheduler: &Scheduler, binding: BindingRef<'_>, fleet: Fleet<'_>, pass: Pass) -> Plan {
    if !scheduler.schedules(binding) {
        return Plan::Unchanged;
    }
    let placement = binding.spec.placement.as_ref();
    let placement = match Placement::deserialize(placement.unwrap_or(&Value::Null)) {
        Ok(placement) => placement,
        Err(error) => {
            let message = format!("the placement cannot be read: {error}");
            return failed(binding, &[Failure::Unsupported(message)], pass);
        }
    };
    let strategy = match ReplicaStrategy::of(binding.spec, &placement) {
        Ok(strategy) => strategy,
        Err(failure) => return failed(binding, &[failure], pass),
    };
    if scheduler.evicts {
        if let Some(operations) = evict::end(binding, pass.now) {
            return Plan::EndEvictions(operations);
        }
        if let Some(plan) = evicted(scheduler, binding, &placement, strategy, fleet, pass) {
            return plan;
        }
    }
    if !need::is_due(binding, strategy, fleet.clusters) {
        return observed(binding, &placement);
    }
    match decide(scheduler, binding, &placement, strategy, fleet) {
        Ok(decision) if takes_unread_away(binding, &decision.clusters, fleet) => Plan::Unchanged,
        Ok(decision) => scheduled(binding, decision, pass),
        Err(_) if !fleet.complete => Plan::Unchanged,
        Err(failures) => failed(binding, &failures, pass),
    }
}

/// Plans the writes of a binding that leaves clusters for their taints. There are none without another place
/// for it: a copy in a cluster with a taint is better than none.
fn evicted(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    placement: &Placement,
    strategy: ReplicaStrategy<'_>,
    fleet: Fleet<'_>,
    pass: Pass,
) -> Option<Plan> {
    let tasks = evict::begin(binding, placement, fleet.clusters, pass.now);
    if tasks.is_empty() || !fleet.complete {
        return None;
    }
    let mut spec = binding.spec.clone();
    let leaves = |name: &str| tasks.iter().any(|task| task.from_cluster == name);
    if let Some(clusters) = &mut spec.clusters {
        clusters.retain(|target| !leaves(&target.name));
    }
    let known = spec.graceful_eviction_tasks.get_or_insert_default();
    known.extend(tasks.iter().cloned());
    let without = BindingRef {
        spec: &spec,
        ..binding
    };
    let decision = decide(scheduler, without, placement, strategy, fleet).ok()?;
    match scheduled(binding, decision, pass) {
        Plan::Write {
            spec: Some(spec),
            status,
        } => {
            let evictions = tasks;
            let spec = Some(SpecWrite { evictions, ..spec });
            Some(Plan::Write { spec, status })
        }
        _ => None,
    }
}

/// The clusters of a binding, and the group they are of.
struct Decision {
    clusters: Vec<TargetCluster>,
    group: Option<String>,
}

fn decide(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    placement: &Placement,
    strategy: ReplicaStrategy<'_>,
    fleet: Fleet<'_>,
) -> Result<Decision, Vec<Failure>> {
    let spec = binding.spec;
    if let Some(failure) = unsupported(placement) {
        return Err(vec![failure]);
    }
    // A list without a cluster is rather a fault of the API than the end of every workload.
    if fleet.clusters.is_empty() {
        let message = "0/0 clusters are available: no cluster exists.";
        return Err(vec![Failure::Error(message.to_owned())]);
    }
    let anew = need::is_triggered(binding);
    let attempt = |affinity: Option<&ClusterSelector>| {
        let fitting = filter::fitting(spec, placement, affinity, fleet.clusters);
        let fitting = fitting.map_err(Failure::Unfit)?;
        let selected = select::select(spec, placement, strategy, &fitting)?;
        divide::divide(spec, strategy, &selected, anew, scheduler.keeps_empty)
    };
    let affinities = &placement.cluster_affinities;
    if affinities.is_empty() {
        let clusters = attempt(placement.cluster_affinity.as_ref());
        return clusters
            .map(|clusters| Decision {
                clusters,
                group: None,
            })
            .map_err(|failure| vec![failure]);
    }
    let start = groups::start(affinities, binding.observed_group(), anew);
    let (group, clusters) =
        groups::first_fit(affinities, start, |group| attempt(Some(&group.affinity)))?;
    let group = Some(group.affinity_name.clone());
    Ok(Decision { clusters, group })
}

/// Returns what the placement asks for and this scheduler does not do.
fn unsupported(placement: &Placement) -> Option<Failure> {
    let has_overflow =
        |group: &karmada_api::placement::ClusterAffinityTerm| group.overflow_affinities.is_some();
    let what = if placement.workload_affinity.is_some() {
        "workloadAffinity"
    } else if placement.cluster_affinities.iter().any(has_overflow) {
        "overflowAffinities"
    } else {
        return None;
    };
    Some(Failure::Unsupported(what.to_owned()))
}

/// Returns `true` if a target would go that may exist, though it could not be read.
fn takes_unread_away(
    binding: BindingRef<'_>,
    clusters: &[TargetCluster],
    fleet: Fleet<'_>,
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
fn observed(binding: BindingRef<'_>, placement: &Placement) -> Plan {
    let has_groups = !placement.cluster_affinities.is_empty();
    let group = binding.observed_group().filter(|_| has_groups);
    if is_observed(binding) && group == binding.mirrored_group() {
        return Plan::Unchanged;
    }
    let group = group.map(str::to_owned);
    Plan::Write {
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

fn scheduled(binding: BindingRef<'_>, decision: Decision, pass: Pass) -> Plan {
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
        evictions: Vec::new(),
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
        return Plan::Unchanged;
    }
    // A trigger that were later than the time of its own success would fire for ever.
    let trigger = binding.spec.reschedule_triggered_at.as_ref();
    let at = trigger.map_or(pass.now, |trigger| trigger.0.max(pass.now));
    let status = Some(StatusWrite::Scheduled { group, at });
    Plan::Write { spec, status }
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
fn failed(binding: BindingRef<'_>, failures: &[Failure], pass: Pass) -> Plan {
    let runs = binding.targets().next().is_some();
    let is_unsupported = |failure: &&Failure| matches!(failure, Failure::Unsupported(_));
    if let Some(failure) = failures.iter().find(is_unsupported).filter(|_| runs) {
        let message = failure.to_string();
        return Plan::LeftAlone { message };
    }
    let unfit = failures
        .iter()
        .all(|failure| matches!(failure, Failure::Unfit(_)));
    let is_short = |failure: &Failure| matches!(failure, Failure::Unfit(_) | Failure::Short(_));
    let reason = if unfit {
        "NoClusterFit"
    } else if failures.iter().all(is_short) {
        UNSCHEDULABLE
    } else {
        SCHEDULER_ERROR
    };
    let messages: Vec<String> = failures.iter().map(Failure::to_string).collect();
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
        return Plan::Unchanged;
    }
    Plan::Write { spec, status }
}

#[cfg(test)]
mod tests;
