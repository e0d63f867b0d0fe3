use karmada_api::{ResourceBinding, names};
use serde_json::{Value, from_value, json};

use super::*;
use crate::schedule::facts::{KnownClusters, Pass};
use crate::schedule::plan::plan;
use crate::schedule::strategy::ReplicaStrategy;
use crate::schedule::wake::next_due;

const NOW: &str = "2026-11-22T08:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn scheduler() -> Scheduler {
    Scheduler {
        name: "default-scheduler".to_owned(),
        evicts: true,
        ..Scheduler::default()
    }
}

/// Returns a binding that runs in m1.
fn binding(tolerations: &Value, tasks: &Value) -> ResourceBinding {
    from_value(json!({
        "metadata": {
            "name": "web", "generation": 3, "resourceVersion": "7",
            "labels": { names::POLICY_ID: "1" },
        },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "clusters": [{ "name": "m1", "replicas": 2 }],
            "placement": { "clusterTolerations": tolerations },
            "gracefulEvictionTasks": tasks,
        },
    }))
    .unwrap()
}

fn cluster(taints: &Value) -> ClusterView {
    from_value(json!({ "metadata": { "name": "m1" }, "spec": { "taints": taints } })).unwrap()
}

/// Returns the task that begins, and the time of the next one, for a workload with these tolerations in a cluster
/// with this taint.
fn begun(taint: &Value, tolerations: &Value) -> (Option<GracefulEvictionTask>, Option<Timestamp>) {
    let cluster = cluster(&json!([taint]));
    let binding = binding(tolerations, &Value::Null);
    let binding = BindingRef::from(&binding);
    let facts = Facts {
        scheduler: &scheduler(),
        binding,
        placement: &binding.placement().unwrap(),
        strategy: ReplicaStrategy::None,
        fleet: KnownClusters {
            clusters: &[&cluster],
            complete: true,
        },
        pass: Pass {
            now: at(NOW),
            cluster_changed: false,
            affinity_groups: None,
            assumed: None,
            estimates: None,
        },
    };
    let tasks = new_evictions(facts);
    let next = next_due(&scheduler(), binding, &[&cluster], at(NOW));
    (tasks.into_iter().next(), next)
}

/// A workload leaves when a taint is not tolerated any longer.
#[test]
fn untolerated_taint_begins_task() {
    let taint = json!({ "key": "dns", "effect": "NoExecute", "timeAdded": "2026-11-22T07:58:00Z" });
    let tolerated = |seconds: Value| json!([{ "key": "dns", "operator": "Exists", "tolerationSeconds": seconds }]);
    let cases = [
        (json!([]), true, None),
        (tolerated(Value::Null), false, None),
        (
            tolerated(json!(300)),
            false,
            Some(at("2026-11-22T08:03:00Z")),
        ),
        (tolerated(json!(60)), true, None),
        (tolerated(json!(-1)), true, None),
    ];
    for (tolerations, leaves, next) in cases {
        let (task, at) = begun(&taint, &tolerations);
        assert_eq!((task.is_some(), at), (leaves, next), "{tolerations}");
    }
    let no_schedule = json!({ "key": "dns", "effect": "NoSchedule" });
    assert_eq!(begun(&no_schedule, &json!([])), (None, None));
    // As `kubectl patch` leaves it, until the cluster-controller dates it.
    let undated = json!({ "key": "dns", "effect": "NoExecute" });
    assert_eq!(begun(&undated, &tolerated(json!(300))), (None, None));
    let task = begun(&undated, &json!([])).0.unwrap();
    assert_eq!((&*task.from_cluster, task.replicas), ("m1", Some(2)));
    assert_eq!(task.purge_mode, "Gracefully");
    assert_eq!(task.creation_timestamp, Some(Time(at(NOW))));
}

/// Returns the last operation on a binding with this task, which runs in this health in a cluster.
fn ended(more: &Value, health: &str, observed: i64) -> Option<Value> {
    let mut task = json!({ "fromCluster": "m0", "creationTimestamp": "2026-11-22T07:55:00Z" });
    json_patch::merge(&mut task, more);
    let mut binding = binding(&json!([]), &json!([task]));
    let items = json!([{ "clusterName": "m1", "health": health }]);
    let status = json!({ "schedulerObservedGeneration": observed, "aggregatedStatus": items });
    binding.status = from_value(status).unwrap();
    let patch = removals((&binding).into(), at(NOW))?;
    json!(patch).as_array()?.last().cloned()
}

/// A task ends once the copies elsewhere are healthy, or its time is over.
#[test]
fn healthy_copies_end_tasks() {
    let removal = Some(json!({ "op": "remove", "path": "/spec/gracefulEvictionTasks/0" }));
    let (plain, kept) = (json!({}), json!({ "suppressDeletion": true }));
    assert_eq!(ended(&plain, "Unhealthy", 3), None);
    assert_eq!(ended(&plain, "Healthy", 3), removal);
    assert_eq!(ended(&plain, "Healthy", 2), None, "of an older generation");
    assert_eq!(
        ended(&json!({ "gracePeriodSeconds": 60 }), "Unhealthy", 3),
        removal
    );
    assert_eq!(ended(&kept, "Healthy", 3), None);
    assert_eq!(
        ended(&json!({ "suppressDeletion": false }), "Unhealthy", 3),
        removal
    );
    let path = "/spec/gracefulEvictionTasks/0/creationTimestamp";
    let dated = json!({ "op": "add", "path": path, "value": NOW });
    let new = json!({ "creationTimestamp": null });
    assert_eq!(ended(&new, "Healthy", 3), Some(dated));
}

/// A task that purges directly does not end before the copy is gone.
#[test]
fn direct_purge_awaits_removal() {
    // `m1` reports a copy.
    for (mode, cluster, ends) in [
        ("Directly", "m1", false),
        ("Immediately", "m1", false),
        ("Directly", "m0", true),
        ("Immediately", "m0", true),
        ("Gracefully", "m1", true),
    ] {
        let task = json!({ "purgeMode": mode, "fromCluster": cluster });
        assert_eq!(ended(&task, "Healthy", 3).is_some(), ends, "{task}");
    }
}

/// A task purges in the way that the policy asks for.
#[test]
fn policy_chooses_purge_mode() {
    let modes = [
        ("Directly", "Directly"),
        ("Immediately", "Directly"),
        ("Gracefully", "Gracefully"),
        ("Graciously", "Gracefully"),
        ("newer", "Gracefully"),
    ];
    for (asked, mode) in modes {
        let mut binding = binding(&json!([]), &json!([]));
        binding.spec.failover = Some(json!({ "cluster": { "purgeMode": asked } }));
        let target = &binding.spec.clusters.as_ref().unwrap()[0];
        assert_eq!(task((&binding).into(), target, at(NOW)).purge_mode, mode);
    }
}

fn stored_task(cluster: &str, seconds: i64) -> Value {
    json!({ "fromCluster": cluster, "gracePeriodSeconds": seconds,
    "creationTimestamp": "2026-11-22T07:55:00Z", "newer": true })
}

/// The tasks that are over go, and the others keep their places and unknown fields.
#[test]
fn removals_keep_other_tasks() {
    let tasks = json!([
        stored_task("a", 60),
        stored_task("b", 900),
        stored_task("c", 60)
    ]);
    let binding = binding(&json!([]), &tasks);
    let mut stored = serde_json::to_value(&binding).unwrap();
    stored["spec"]["gracefulEvictionTasks"] = tasks.clone();
    let patch = removals((&binding).into(), at(NOW)).unwrap();
    json_patch::patch(&mut stored, patch.operations()).unwrap();
    assert_eq!(stored["spec"]["gracefulEvictionTasks"], json!([tasks[1]]));
    let next = next_due(&scheduler(), (&binding).into(), &[], at(NOW));
    assert_eq!(next, Some(at("2026-11-22T08:10:00Z")));
}

/// While too much of the fleet is not ready, a move for that is put off, and looked at again.
#[test]
fn halted_move_is_put_off() {
    let taint = json!({ "key": "cluster.karmada.io/unreachable", "effect": "NoExecute" });
    let (task, next) = begun(&taint, &json!([]));
    assert_eq!(task, None);
    assert_eq!(next, Some(at("2026-11-22T08:05:00Z")));
}

/// A workload that would leave is held: not one that tolerates the taint, or still does, or is suspended, nor for a taint of
/// another key.
#[test]
fn halted_moves_are_held() {
    let taint = |key: &str| json!([{ "key": key, "effect": "NoExecute", "timeAdded": "2026-11-22T07:59:00Z" }]);
    let unready = cluster(&taint("cluster.karmada.io/not-ready"));
    let halted = halted_clusters(&scheduler(), vec![&unready]);
    assert_eq!(halted.len(), 1);
    for (seconds, expected) in [(json!(60), true), (json!(61), false), (Value::Null, false)] {
        let tolerations = json!([{ "operator": "Exists", "tolerationSeconds": seconds }]);
        let binding = binding(&tolerations, &Value::Null);
        let is_held = is_held((&binding).into(), &halted, at(NOW));
        assert_eq!(is_held, expected, "{seconds}");
    }
    let mut moving = binding(&json!([]), &Value::Null);
    assert!(is_held((&moving).into(), &halted, at(NOW)));
    moving.spec.suspension = from_value(json!({ "dispatching": true })).unwrap();
    assert!(!is_held((&moving).into(), &halted, at(NOW)));

    let mut other = cluster(&taint("dns"));
    other.metadata.name = Some("m2".to_owned());
    let halted = halted_clusters(&scheduler(), vec![&unready, &other, &unready]);
    assert_eq!(halted, [&unready, &unready], "two of three are not ready");
    let halted = halted_clusters(&scheduler(), vec![&unready, &other]);
    assert_eq!(halted, [] as [&ClusterView; 0]);
}

/// A binding that is suspended in the middle of a move ends that: its old copy does not stay beside the new one for good.
#[test]
fn suspended_move_ends() {
    let tasks = json!([{ "fromCluster": "a", "gracePeriodSeconds": 60,
        "creationTimestamp": "2026-11-22T07:59:30Z" }]);
    let mut binding = binding(&json!([]), &tasks);
    binding.spec.suspension = from_value(json!({ "scheduling": true })).unwrap();
    let end = at("2026-11-22T08:00:30Z");
    let due = next_due(&scheduler(), (&binding).into(), &[], at(NOW));
    assert_eq!(due, Some(end));
    let fleet = KnownClusters {
        clusters: &[],
        complete: true,
    };
    let planned = |now| {
        let pass = Pass {
            now,
            cluster_changed: false,
            affinity_groups: None,
            assumed: None,
            estimates: None,
        };
        plan(&scheduler(), (&binding).into(), fleet, pass)
    };
    assert_eq!(planned(at(NOW)), SchedulePlan::Unchanged);
    assert!(matches!(planned(end), SchedulePlan::EndEvictions(_)));
}

fn due(scheduler: &Scheduler, status: &str, seconds: u32) -> Option<Timestamp> {
    let toleration = json!([{ "key": "k", "operator": "Exists", "tolerationSeconds": seconds }]);
    let mut binding = binding(&toleration, &Value::Null);
    binding.spec.clusters = None;
    let taint = json!([{ "key": "k", "effect": "NoExecute", "timeAdded": NOW }]);
    let cluster = cluster(&taint);
    let condition = json!({ "type": "Scheduled", "status": status, "reason": "NoClusterFit" });
    binding.status = from_value(json!({ "conditions": [condition] })).unwrap();
    next_due(scheduler, (&binding).into(), &[&cluster], at(NOW))
}

/// An unscheduled binding is due when its reason changes, and within five minutes.
#[test]
fn unscheduled_binding_is_retried() {
    let (of_taint, retry) = (at("2026-11-22T08:01:00Z"), at("2026-11-22T08:05:00Z"));
    for (status, seconds, expected) in [
        ("True", 60, None),
        ("False", 60, Some(of_taint)),
        ("False", 600, Some(retry)),
    ] {
        let next = due(&scheduler(), status, seconds);
        assert_eq!(next, expected, "{status}, {seconds}");
    }
    let other = Scheduler::default();
    assert_eq!(due(&other, "False", 600), None, "another scheduler's");
}
