//! The clusters that a workload leaves gracefully, and the time at which it has left them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::{
    ClusterView, GracefulEvictionTask, Placement, ResourceBindingSpec, TargetCluster,
};
use objects::patch::JsonPatch;
use objects::taint::{first_untolerated, show};
use objects::write::{Guard, Write};
use serde_json::json;

use super::cycle::{Decision, decide};
use super::facts::{Facts, Scheduler, named};
use super::outcome::{SchedulePlan, scheduled};
use crate::binding_ref::BindingRef;
use crate::cluster::{NOT_READY, UNREACHABLE};

/// The time that a copy gets until its replacement is healthy, as Karmada's is by default.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// Plans the writes of a binding that leaves clusters for their taints. There are none without another place
/// for it: a copy in a cluster with a taint is better than none.
pub(super) fn evicted(facts: Facts<'_>) -> Option<SchedulePlan> {
    let tasks = new_evictions(facts);
    if tasks.is_empty() || !facts.fleet.complete {
        return None;
    }
    let spec = spec_after_eviction(facts.binding, &tasks);
    let decision = decide(facts.with_spec(&spec)).ok()?;
    Some(scheduled(facts.binding, decision, tasks, facts.pass))
}

/// Returns the tasks that begin: one for each target with a `NoExecute` taint that is not tolerated, or not any
/// longer.
pub(super) fn new_evictions(facts: Facts<'_>) -> Vec<GracefulEvictionTask> {
    let (binding, now) = (facts.binding, facts.pass.now);
    if !facts.scheduler.evicts {
        return Vec::new();
    }
    let leaving = Leaving::of(facts.scheduler, facts.fleet.clusters);
    let mut tasks = Vec::new();
    for target in binding.targets() {
        let Some(cluster) = facts.fleet.get(&target.name) else {
            continue;
        };
        let due = leaving.due(cluster, facts.placement);
        if let Some((taint, at)) = due
            && at <= now
            && !is_suspended(binding, &target.name)
        {
            tasks.push(GracefulEvictionTask {
                reason: Some("TaintUntolerated".to_owned()),
                message: Some(format!("the taint {{{}}} is not tolerated", show(taint))),
                producer: Some("TaintManager".to_owned()),
                ..task(binding, target, now)
            });
        }
    }
    tasks
}

/// The taints for which workloads leave clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// True if so much of the fleet is not ready that no workload leaves a cluster because of that.
    pub(super) is_halted: bool,
}

impl Leaving {
    pub(super) fn of(scheduler: &Scheduler, clusters: &[&ClusterView]) -> Self {
        let unready = clusters.iter();
        let unready = unready.filter(|cluster| cluster.spec.taints.iter().any(is_of_health));
        let threshold = scheduler.unhealthy_threshold;
        Self {
            is_halted: threshold.is_exceeded(unready.count(), clusters.len()),
        }
    }

    fn counts(self, taint: &Taint) -> bool {
        !(self.is_halted && is_of_health(taint))
    }

    /// Returns the taint for which workloads of this placement have to leave a cluster first, and the time at which they
    /// have to.
    pub(super) fn due<'a>(
        self,
        cluster: &'a ClusterView,
        placement: &Placement,
    ) -> Option<(&'a Taint, Timestamp)> {
        let taints = cluster.spec.taints.iter();
        let counted = taints.filter(|taint| self.counts(taint));
        first_untolerated(counted, &placement.cluster_tolerations)
    }
}

/// Returns those of the clusters that workloads may have to leave.
pub fn left_clusters<'a>(
    scheduler: &Scheduler,
    mut all: Vec<&'a ClusterView>,
) -> Vec<&'a ClusterView> {
    let leaving = Leaving::of(scheduler, &all);
    all.retain(|cluster| cluster.spec.taints.iter().any(|one| leaving.counts(one)));
    all
}

fn is_of_health(taint: &Taint) -> bool {
    [NOT_READY, UNREACHABLE].contains(&&*taint.key)
}

/// Returns `true` if the binding has to leave one of these clusters, now or once it is tolerated no longer.
pub(super) fn has_to_leave(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    clusters: &[&ClusterView],
) -> bool {
    scheduler.evicts
        && !clusters.is_empty()
        && binding.placement().is_some_and(|placement| {
            let mut targets = binding
                .targets()
                .filter_map(|target| named(clusters, &target.name));
            targets.any(|cluster| {
                first_untolerated(&cluster.spec.taints, &placement.cluster_tolerations).is_some()
            })
        })
}

/// Returns those of the clusters that workloads would have to leave, but that too much of the fleet is not ready.
pub fn halted_clusters<'a>(
    scheduler: &Scheduler,
    mut all: Vec<&'a ClusterView>,
) -> Vec<&'a ClusterView> {
    let is_halted = scheduler.evicts && Leaving::of(scheduler, &all).is_halted;
    all.retain(|cluster| is_halted && cluster.spec.taints.iter().any(is_of_health));
    all
}

/// Returns `true` if the binding would leave one of these `halted` clusters by now.
pub fn is_held(binding: BindingRef<'_>, halted: &[&ClusterView], now: Timestamp) -> bool {
    let targets = binding
        .targets()
        .filter(|target| !is_suspended(binding, &target.name));
    let clusters: Vec<_> = targets
        .filter_map(|target| named(halted, &target.name))
        .collect();
    // A placement is a text: few bindings need it read.
    !clusters.is_empty()
        && binding.placement().is_some_and(|placement| {
            clusters.iter().any(|cluster| {
                let taints = cluster.spec.taints.iter();
                let of_health = taints.filter(|taint| is_of_health(taint));
                let due = first_untolerated(of_health, &placement.cluster_tolerations);
                due.is_some_and(|(_, at)| at <= now)
            })
        })
}

/// Returns the tasks of a binding that returns to an earlier group: one for each target that it leaves. `None`
/// while one of them has to wait.
pub(super) fn failback_evictions(
    facts: Facts<'_>,
    decision: &Decision,
) -> Option<Vec<GracefulEvictionTask>> {
    let group = decision.group.as_deref().unwrap_or_default();
    let mut tasks = Vec::new();
    for target in facts.binding.targets() {
        if decision.clusters.iter().any(|one| one.name == target.name) {
            continue;
        }
        if is_suspended(facts.binding, &target.name) {
            return None;
        }
        tasks.push(GracefulEvictionTask {
            reason: Some("AffinityFailBack".to_owned()),
            message: Some(format!("the group {group} fits again")),
            producer: Some("Scheduler".to_owned()),
            ..task(facts.binding, target, facts.pass.now)
        });
    }
    Some(tasks)
}

/// Returns a task without a reason, in the way that the policy asks for.
fn task(binding: BindingRef<'_>, target: &TargetCluster, now: Timestamp) -> GracefulEvictionTask {
    let failover = binding.spec.failover.as_ref();
    let mode = failover.and_then(|failover| failover.pointer("/cluster/purgeMode")?.as_str());
    // The second is how older versions of Karmada write the first.
    let purge_mode = match mode {
        Some("Directly" | "Immediately") => "Directly",
        _ => "Gracefully",
    };
    GracefulEvictionTask {
        from_cluster: target.name.clone(),
        purge_mode: purge_mode.to_owned(),
        replicas: target.replicas.filter(|replicas| *replicas > 0),
        creation_timestamp: Some(Time(now)),
        ..GracefulEvictionTask::default()
    }
}

/// Returns `true` if dispatching to the cluster is suspended: no workload leaves it then.
pub(super) fn is_suspended(binding: BindingRef<'_>, cluster: &str) -> bool {
    let suspension = binding.spec.suspension.as_ref();
    suspension.is_some_and(|suspension| suspension.dispatching.suspends(cluster))
}

/// Returns the spec of a binding as it decides about a graceful move: it has left the clusters of these tasks,
/// and comes to none that it is still leaving.
pub(super) fn spec_after_eviction(
    binding: BindingRef<'_>,
    tasks: &[GracefulEvictionTask],
) -> ResourceBindingSpec {
    let mut spec = binding.spec.clone();
    if let Some(clusters) = &mut spec.clusters {
        clusters.retain(|target| !tasks.iter().any(|task| task.from_cluster == target.name));
    }
    // The health of a former copy would be taken for that of the new one, for which others go.
    let wanted: BTreeSet<&str> = binding
        .spec
        .all_targets()
        .map(|target| target.name.as_str())
        .collect();
    let former = binding
        .reports()
        .filter(|report| !wanted.contains(report.cluster_name.as_str()))
        .map(|report| GracefulEvictionTask {
            from_cluster: report.cluster_name.clone(),
            ..GracefulEvictionTask::default()
        });
    let leaving = spec.graceful_eviction_tasks.get_or_insert_default();
    leaving.extend(former.chain(tasks.iter().cloned()));
    spec
}

/// Plans the end of the evictions that are over.
pub(super) fn finished_evictions(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    now: Timestamp,
) -> Option<SchedulePlan> {
    if !scheduler.ends_evictions() {
        return None;
    }
    let patch = removals(binding, now)?;
    let write = Write::json("evictions", binding.object(), patch);
    Some(SchedulePlan::EndEvictions(write.guarded(Guard::Version)))
}

/// Returns the patch that removes the tasks that are over, and dates those of others that have no date;
/// `None` if there are no such tasks.
fn removals(binding: BindingRef<'_>, now: Timestamp) -> Option<JsonPatch> {
    let tasks = binding.spec.graceful_eviction_tasks.as_ref()?;
    let is_replaced = is_replaced(binding);
    let mut patch = JsonPatch::default();
    // From the end, so that the places of the others stay.
    for (index, task) in tasks.iter().enumerate().rev() {
        let index = index.to_string();
        let place = ["spec", "gracefulEvictionTasks", &index];
        let is_over = match (task.suppress_deletion, &task.creation_timestamp) {
            (Some(is_kept), Some(_)) => !is_kept,
            (None, Some(began)) => {
                let is_left = is_replaced && !(task.purges_directly() && has_copy(binding, task));
                is_left || end_of(task, began) <= now
            }
            (_, None) => false,
        };
        let is_undated = task.creation_timestamp.is_none();
        if is_over || is_undated {
            let of = place.into_iter().chain(["fromCluster"]);
            patch.test_name(of, &task.from_cluster);
        }
        if is_over {
            patch.remove(place);
        } else if is_undated {
            let date = place.into_iter().chain(["creationTimestamp"]);
            patch.add(date, json!(Time(now)));
        }
    }
    (!patch.is_empty()).then_some(patch)
}

/// Returns the time at which a task is over in any case.
pub(super) fn end_of(task: &GracefulEvictionTask, began: &Time) -> Timestamp {
    let grace = task.grace_period_seconds.map(SignedDuration::from_secs);
    let end = began.0.saturating_add(grace.unwrap_or(GRACE));
    end.unwrap_or(Timestamp::MAX)
}

/// Returns `true` if the template is healthy in every cluster that it has now.
fn is_replaced(binding: BindingRef<'_>) -> bool {
    // Reports of an older generation may be of clusters that it has left since.
    let healthy: BTreeSet<&str> = binding.healthy_clusters().collect();
    binding.is_observed()
        && binding.targets().next().is_some()
        && binding
            .targets()
            .all(|target| healthy.contains(target.name.as_str()))
}

/// Returns `true` if the copy that the task is about is not gone yet.
fn has_copy(binding: BindingRef<'_>, task: &GracefulEvictionTask) -> bool {
    let mut reports = binding.reports();
    reports.any(|report| report.cluster_name == task.from_cluster)
}

#[cfg(test)]
mod tests;
