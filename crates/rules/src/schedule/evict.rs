//! The clusters that a workload leaves for their taints, and the time at which it has left them.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::{ClusterProfile, GracefulEvictionTask, Placement};
use serde_json::{Value, json};

use super::Scheduler;
use super::filter::{show, tolerates};
use super::write::guarded;
use crate::binding_ref::BindingRef;

/// The time that a copy gets until its replacement is healthy, as Karmada's is by default.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// Returns the tasks that begin: one for each target with a `NoExecute` taint that is not tolerated, or not any
/// longer.
pub(super) fn begin(
    binding: BindingRef<'_>,
    placement: &Placement,
    clusters: &[&ClusterProfile],
    now: Timestamp,
) -> Vec<GracefulEvictionTask> {
    let purge_mode = binding.spec.failover.as_ref();
    let purge_mode = purge_mode.and_then(|failover| failover.pointer("/cluster/purgeMode"));
    let purge_mode = purge_mode.and_then(Value::as_str).unwrap_or("Gracefully");
    let mut tasks = Vec::new();
    for target in binding.targets() {
        let due = due(&target.name, placement, clusters);
        if let Some((taint, _)) = due.filter(|(_, at)| *at <= now) {
            tasks.push(GracefulEvictionTask {
                from_cluster: target.name.clone(),
                purge_mode: purge_mode.to_owned(),
                replicas: target.replicas.filter(|replicas| *replicas > 0),
                reason: Some("TaintUntolerated".to_owned()),
                message: Some(format!("the taint {{{}}} is not tolerated", show(taint))),
                producer: Some("TaintManager".to_owned()),
                creation_timestamp: Some(Time(now)),
                ..GracefulEvictionTask::default()
            });
        }
    }
    tasks
}

/// Returns the taint for which a workload has to leave the cluster, and the time at which it has to.
fn due<'a>(
    name: &str,
    placement: &Placement,
    clusters: &[&'a ClusterProfile],
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
fn tolerated_until(taint: &Taint, tolerations: &[Toleration]) -> Option<Timestamp> {
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

/// Returns the operations that remove the tasks that are over, and date those of others that have no date;
/// `None` if there are no such tasks.
pub(super) fn end(binding: BindingRef<'_>, now: Timestamp) -> Option<Value> {
    let tasks = binding.spec.graceful_eviction_tasks.as_ref()?;
    let is_replaced = is_replaced(binding);
    let mut operations = Vec::new();
    // From the end, so that the places of the others stay.
    for (index, task) in tasks.iter().enumerate().rev() {
        let path = format!("/spec/gracefulEvictionTasks/{index}");
        let is_over = match (task.suppress_deletion, &task.creation_timestamp) {
            (Some(is_kept), Some(_)) => !is_kept,
            (None, Some(began)) => is_replaced || last(task, began) <= now,
            (_, None) => false,
        };
        let operation = if is_over {
            json!({ "op": "remove", "path": path })
        } else if task.creation_timestamp.is_none() {
            let path = format!("{path}/creationTimestamp");
            json!({ "op": "add", "path": path, "value": Time(now) })
        } else {
            continue;
        };
        // An element that cannot be read is not counted; the test catches the shift.
        let of = format!("{path}/fromCluster");
        operations.push(json!({ "op": "test", "path": of, "value": task.from_cluster }));
        operations.push(operation);
    }
    if operations.is_empty() {
        return None;
    }
    let mut guarded = guarded(binding.metadata.resource_version.as_deref());
    guarded.append(&mut operations);
    Some(Value::Array(guarded))
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

/// Returns the next time after `now` at which an eviction of the binding begins or ends by itself.
pub fn next(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    clusters: &[&ClusterProfile],
    now: Timestamp,
) -> Option<Timestamp> {
    if !scheduler.evicts {
        return None;
    }
    let placement = binding.placement()?;
    let begins = binding.targets().filter_map(|target| {
        let (_, at) = due(&target.name, &placement, clusters)?;
        Some(at)
    });
    let tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    let tasks = tasks.filter(|task| task.suppress_deletion.is_none());
    let ends = tasks.filter_map(|task| Some(last(task, task.creation_timestamp.as_ref()?)));
    begins.chain(ends).filter(|at| *at > now).min()
}

#[cfg(test)]
mod tests;
