//! The clusters that a workload leaves gracefully, and the time at which it has left them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::{
    ClusterView, GracefulEvictionTask, Placement, ResourceBindingSpec, TargetCluster,
};
use objects::patch::JsonPatch;
use serde_json::json;

use super::Scheduler;
use super::decide::{Cycle, Decision};
use super::filter::{show, tolerates};
use super::need::is_unscheduled;
use super::plan::{SchedulePlan, scheduled};
use crate::binding_ref::BindingRef;

/// The time that a copy gets until its replacement is healthy, as Karmada's is by default.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// The time after which a binding that fits nowhere is tried again, whatever has changed.
const RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Plans the writes of a binding that leaves clusters for their taints. There are none without another place
/// for it: a copy in a cluster with a taint is better than none.
pub(super) fn evicted(cycle: Cycle<'_>) -> Option<SchedulePlan> {
    let binding = cycle.binding;
    let tasks = begun(cycle);
    if tasks.is_empty() || !cycle.fleet.complete {
        return None;
    }
    let spec = without(binding, tasks.clone());
    let decision = cycle.of(&spec).decide().ok()?;
    Some(scheduled(binding, decision, tasks, cycle.pass))
}

/// Returns the tasks that begin: one for each target with a `NoExecute` taint that is not tolerated, or not any
/// longer.
fn begun(cycle: Cycle<'_>) -> Vec<GracefulEvictionTask> {
    let (binding, placement, clusters) = (cycle.binding, cycle.placement, cycle.fleet.clusters);
    if !cycle.scheduler.evicts {
        return Vec::new();
    }
    let mut tasks = Vec::new();
    for target in binding.targets() {
        let due = due(&target.name, placement, clusters);
        let due = due.filter(|(_, at)| *at <= cycle.pass.now);
        if let Some((taint, _)) = due.filter(|_| !is_suspended(binding, &target.name)) {
            tasks.push(GracefulEvictionTask {
                reason: Some("TaintUntolerated".to_owned()),
                message: Some(format!("the taint {{{}}} is not tolerated", show(taint))),
                producer: Some("TaintManager".to_owned()),
                ..task(binding, target, cycle.pass.now)
            });
        }
    }
    tasks
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
            let mut targets = binding.targets();
            targets.any(|target| due(&target.name, &placement, clusters).is_some())
        })
}

/// Returns the tasks of a binding that returns to an earlier group: one for each target that it leaves. `None`
/// while one of them has to wait.
pub(super) fn left(cycle: Cycle<'_>, decision: &Decision) -> Option<Vec<GracefulEvictionTask>> {
    let stays = |target: &TargetCluster| {
        let mut clusters = decision.clusters.iter();
        clusters.any(|cluster| cluster.name == target.name)
    };
    let group = decision.group.as_deref().unwrap_or_default();
    let targets = cycle.binding.targets();
    let left = targets.filter(|target| !stays(target)).map(|target| {
        (!is_suspended(cycle.binding, &target.name)).then(|| GracefulEvictionTask {
            reason: Some("AffinityFailBack".to_owned()),
            message: Some(format!("the group {group} fits again")),
            producer: Some("Scheduler".to_owned()),
            ..task(cycle.binding, target, cycle.pass.now)
        })
    });
    left.collect()
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
fn is_suspended(binding: BindingRef<'_>, cluster: &str) -> bool {
    let suspension = binding.spec.suspension.as_ref();
    suspension.is_some_and(|suspension| suspension.dispatching.suspends(cluster))
}

/// Returns the spec of a binding as it decides about a graceful move: it has left the clusters of these tasks,
/// and comes to none that it is still leaving.
pub(super) fn without(
    binding: BindingRef<'_>,
    tasks: Vec<GracefulEvictionTask>,
) -> ResourceBindingSpec {
    let mut spec = binding.spec.clone();
    if let Some(clusters) = &mut spec.clusters {
        clusters.retain(|target| !tasks.iter().any(|task| task.from_cluster == target.name));
    }
    // The health of a former copy would be taken for that of the new one, for which others go.
    let items = binding.status.map(|status| &status.aggregated_status);
    let items = items.into_iter().flatten().flatten();
    let required = binding.spec.required_by.iter().flatten();
    let required = required.flat_map(|snapshot| snapshot.clusters.iter().flatten());
    let wanted: BTreeSet<&str> = binding
        .targets()
        .chain(required)
        .map(|target| target.name.as_str())
        .collect();
    let former = items.filter(|item| !wanted.contains(item.cluster_name.as_str()));
    let former = former.map(|item| GracefulEvictionTask {
        from_cluster: item.cluster_name.clone(),
        ..GracefulEvictionTask::default()
    });
    let leaving = spec.graceful_eviction_tasks.get_or_insert_default();
    leaving.extend(former.chain(tasks));
    spec
}

/// Returns the taint for which a workload has to leave the cluster, and the time at which it has to.
fn due<'a>(
    name: &str,
    placement: &Placement,
    clusters: &[&'a ClusterView],
) -> Option<(&'a Taint, Timestamp)> {
    let mut clusters = clusters.iter();
    let cluster = clusters.find(|cluster| cluster.metadata.name.as_deref() == Some(name))?;
    let taints = cluster.spec.taints.iter();
    let taints = taints.filter(|taint| taint.effect == "NoExecute");
    let due = taints.filter_map(|taint| {
        Some((
            taint,
            tolerated_until(taint, &placement.cluster_tolerations)?,
        ))
    });
    due.min_by_key(|(_, at)| *at)
}

/// Returns the time until which the taint is tolerated: the earliest of all tolerations of it, and `None` for
/// ever.
pub(super) fn tolerated_until(taint: &Taint, tolerations: &[Toleration]) -> Option<Timestamp> {
    let mut used = tolerations
        .iter()
        .filter(|toleration| tolerates(toleration, taint))
        .peekable();
    if used.peek().is_none() {
        return Some(Timestamp::UNIX_EPOCH);
    }
    // A taint of unknown age counts as an old one.
    let added = taint.time_added.as_ref();
    let added = added.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let seconds = used
        .filter_map(|toleration| toleration.toleration_seconds)
        .min()?;
    Some(after(added, SignedDuration::from_secs(seconds.max(0))))
}

fn after(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Plans the end of the evictions that are over.
pub(super) fn ended(cycle: Cycle<'_>) -> Option<SchedulePlan> {
    let patch = cycle
        .scheduler
        .ends_evictions()
        .then(|| end(cycle.binding, cycle.pass.now));
    patch.flatten().map(SchedulePlan::EndEvictions)
}

/// Returns the patch that removes the tasks that are over, and dates those of others that have no date;
/// `None` if there are no such tasks.
fn end(binding: BindingRef<'_>, now: Timestamp) -> Option<JsonPatch> {
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
                is_left || last(task, began) <= now
            }
            (_, None) => false,
        };
        let is_undated = task.creation_timestamp.is_none();
        if is_over || is_undated {
            // An element that cannot be read is not counted; the test catches the shift.
            let of = place.into_iter().chain(["fromCluster"]);
            patch.test(of, json!(task.from_cluster));
        }
        if is_over {
            patch.remove(place);
        } else if is_undated {
            let date = place.into_iter().chain(["creationTimestamp"]);
            patch.add(date, json!(Time(now)));
        }
    }
    let version = binding.metadata.resource_version.as_deref();
    (!patch.is_empty()).then(|| patch.guarded(version))
}

/// Returns the time at which a task is over in any case.
fn last(task: &GracefulEvictionTask, began: &Time) -> Timestamp {
    let grace = task.grace_period_seconds.map(SignedDuration::from_secs);
    after(began.0, grace.unwrap_or(GRACE))
}

/// Returns `true` if the template is healthy in every cluster that it has now.
fn is_replaced(binding: BindingRef<'_>) -> bool {
    let Some(status) = binding.status else {
        return false;
    };
    let is_healthy = |name: &str| {
        let mut items = status.aggregated_status.iter().flatten();
        let item = items.find(|item| item.cluster_name == name);
        item.is_some_and(|item| item.health.as_deref() == Some("Healthy"))
    };
    status.scheduler_observed_generation == binding.metadata.generation
        && binding.targets().next().is_some()
        && binding.targets().all(|target| is_healthy(&target.name))
}

/// Returns `true` if the copy that the task is about is not gone yet.
fn has_copy(binding: BindingRef<'_>, task: &GracefulEvictionTask) -> bool {
    let items = binding.status.map(|status| &status.aggregated_status);
    let mut items = items.into_iter().flatten().flatten();
    items.any(|item| item.cluster_name == task.from_cluster)
}

/// Returns the next time after `now` at which the binding is due by itself: an eviction begins or ends, a taint is
/// tolerated no longer that the reason of an unscheduled one then counts, or that one is tried again.
pub fn next_due(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    clusters: &[&ClusterView],
    now: Timestamp,
) -> Option<Timestamp> {
    let placement = binding
        .placement()
        .filter(|_| scheduler.schedules(binding))?;
    let targets = binding.targets().filter(|_| scheduler.evicts);
    let targets = targets.filter(|target| !is_suspended(binding, &target.name));
    let others = clusters.iter().filter(|_| is_unscheduled(binding));
    let names = targets
        .map(|target| Some(target.name.as_str()))
        .chain(others.map(|cluster| cluster.metadata.name.as_deref()));
    let begins = names.filter_map(|name| {
        let (_, at) = due(name?, &placement, clusters)?;
        Some(at)
    });
    let tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    let tasks = tasks.filter(|task| scheduler.ends_evictions() && task.suppress_deletion.is_none());
    let ends = tasks.filter_map(|task| Some(last(task, task.creation_timestamp.as_ref()?)));
    let retry = is_unscheduled(binding).then(|| after(now, RETRY));
    let due = begins.chain(ends).chain(retry);
    due.filter(|at| *at > now).min()
}

#[cfg(test)]
mod tests;
