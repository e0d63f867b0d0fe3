//! The requests to schedule workloads anew, served as Karmada serves them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::rebalancer::{
    BINDING_NOT_FOUND, FAILED, ObservedWorkload, RebalancedWorkload, SUCCESSFUL,
    WorkloadRebalancerStatus,
};
use karmada_api::{ResourceBindingSpec, WorkloadRebalancer};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

/// Returns the workloads of the request with their results so far, sorted. One that was dropped from the request stays
/// only if it was scheduled anew.
pub fn observed(rebalancer: &WorkloadRebalancer) -> Vec<ObservedWorkload> {
    let workloads = rebalancer.spec.workloads.iter();
    let mut observed: BTreeMap<&RebalancedWorkload, ObservedWorkload> = workloads
        .map(|workload| {
            let new = ObservedWorkload {
                workload: workload.clone(),
                ..ObservedWorkload::default()
            };
            (workload, new)
        })
        .collect();
    for item in &rebalancer.status.observed_workloads {
        let is_served = item.result.as_deref() == Some(SUCCESSFUL);
        if is_served || observed.contains_key(&item.workload) {
            observed.insert(&item.workload, item.clone());
        }
    }
    observed.into_values().collect()
}

/// Notes whether the workload had a binding, which is to be scheduled anew then.
pub fn settle(item: &mut ObservedWorkload, has_binding: bool) {
    let result = if has_binding { SUCCESSFUL } else { FAILED };
    item.result = Some(result.to_owned());
    item.reason = (!has_binding).then(|| BINDING_NOT_FOUND.to_owned());
}

/// Returns `true` if the binding was asked to be scheduled anew at `at`, or later.
pub fn is_triggered(binding: &ResourceBindingSpec, at: &Time) -> bool {
    let triggered = binding.reschedule_triggered_at.as_ref();
    triggered.is_some_and(|triggered| triggered.0 >= at.0)
}

/// Returns the write that asks for a binding, which is this object with this raw spec, to be scheduled anew, or `None` if
/// it is that of another workload.
pub fn trigger(
    spec: &Value,
    object: ObjectRef,
    workload: &RebalancedWorkload,
    at: &Time,
) -> Option<Write> {
    let resource = &spec["resource"];
    let is_own = resource["kind"] == *workload.kind && resource["name"] == *workload.name;
    let body = json!({ "spec": { "rescheduleTriggeredAt": at } });
    is_own.then(|| Write::merge("trigger", object, body).guarded(Guard::Version))
}

/// Returns the status of the request with these results, or `None` if it has that already.
pub fn status(
    rebalancer: &WorkloadRebalancer,
    observed: Vec<ObservedWorkload>,
    now: Timestamp,
) -> Option<WorkloadRebalancerStatus> {
    let current = &rebalancer.status;
    let is_done = observed.iter().all(|item| item.result.is_some());
    let mut status = WorkloadRebalancerStatus {
        observed_generation: rebalancer.metadata.generation,
        observed_workloads: observed,
        finish_time: current.finish_time.clone(),
    };
    if status == *current && (status.finish_time.is_some() || !is_done) {
        return None;
    }
    if is_done {
        status.finish_time = Some(Time(now));
    }
    Some(status)
}

/// Returns the time at which the request is to be deleted, if it is done and does not stay.
pub fn expires(rebalancer: &WorkloadRebalancer) -> Option<Timestamp> {
    let finished = rebalancer.status.finish_time.as_ref()?;
    let stays = rebalancer.spec.ttl_seconds_after_finished?;
    let end = finished
        .0
        .saturating_add(SignedDuration::from_secs(stays.max(0)));
    Some(end.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    const NOW: &str = "2026-11-22T08:00:00Z";

    fn workload(name: &str) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name })
    }

    fn rebalancer(names: &[&str], status: &Value) -> WorkloadRebalancer {
        let workloads: Vec<_> = names.iter().map(|name| workload(name)).collect();
        from_value(json!({
            "metadata": { "name": "anew", "generation": 2 },
            "spec": { "workloads": workloads, "ttlSecondsAfterFinished": 60 }, "status": status,
        }))
        .unwrap()
    }

    fn served(name: &str, result: &str) -> Value {
        json!({ "workload": workload(name), "result": result })
    }

    /// An edited request serves new workloads, forgets those that failed and are gone, and keeps those that
    /// succeeded. Case I97.
    #[test]
    fn edits_keep_what_succeeded() {
        let done = [
            served("a", "Successful"),
            served("b", "Failed"),
            served("c", "Successful"),
        ];
        let edited = rebalancer(&["d", "c", "d"], &json!({ "observedWorkloads": done }));
        let now = observed(&edited);
        let results: Vec<_> = now
            .iter()
            .map(|item| (&*item.workload.name, item.result.as_deref()))
            .collect();
        let successful = Some("Successful");
        assert_eq!(results, [("a", successful), ("c", successful), ("d", None)]);
    }

    /// A request ends with its last workload, once, and is deleted after its time. Case I97.
    #[test]
    fn request_ends_once() {
        let now: Timestamp = NOW.parse().unwrap();
        let new = rebalancer(&["a", "b"], &Value::Null);
        let mut items = observed(&new);
        settle(&mut items[0], true);
        let half = status(&new, items.clone(), now).unwrap();
        assert_eq!(
            (half.observed_generation, &half.finish_time),
            (Some(2), &None)
        );
        settle(&mut items[1], false);
        let end = status(&new, items.clone(), now).unwrap();
        assert_eq!(
            json!(end),
            json!({
                "observedGeneration": 2, "finishTime": NOW, "observedWorkloads": [
                    { "workload": workload("a"), "result": "Successful" },
                    { "workload": workload("b"), "result": "Failed", "reason": "ReferencedBindingNotFound" },
                ],
            })
        );
        let mut done = new;
        assert_eq!(expires(&done), None);
        done.status = end;
        assert_eq!(status(&done, items, now), None);
        assert_eq!(expires(&done), "2026-11-22T08:01:00Z".parse().ok());
        done.spec.ttl_seconds_after_finished = None;
        assert_eq!(expires(&done), None);
    }

    /// A later request of another is not taken back. Case I97.
    #[test]
    fn later_trigger_stays() {
        let at = Time(NOW.parse().unwrap());
        for (triggered, expected) in [
            (None, false),
            (Some("2026-11-22T07:59:59Z"), false),
            (Some(NOW), true),
            (Some("2026-11-22T08:00:01Z"), true),
        ] {
            let spec = json!({ "resource": workload("a"), "rescheduleTriggeredAt": triggered });
            let binding: ResourceBindingSpec = from_value(spec).unwrap();
            assert_eq!(is_triggered(&binding, &at), expected);
        }
    }
}
