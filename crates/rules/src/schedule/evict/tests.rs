use karmada_api::ResourceBinding;
use serde_json::{from_value, json};

use super::*;

const NOW: &str = "2026-11-22T08:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn scheduler() -> Scheduler {
    Scheduler {
        name: "default-scheduler".to_owned(),
        keeps_empty: false,
        evicts: true,
    }
}

/// Returns a binding that runs in m1.
fn binding(tolerations: &Value, tasks: &Value) -> ResourceBinding {
    from_value(json!({
        "metadata": { "name": "web", "generation": 3, "resourceVersion": "7" },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "clusters": [{ "name": "m1", "replicas": 2 }],
            "placement": { "clusterTolerations": tolerations },
            "gracefulEvictionTasks": tasks,
        },
    }))
    .unwrap()
}

fn cluster(taints: &Value) -> ClusterProfile {
    from_value(json!({ "metadata": { "name": "m1" }, "spec": { "taints": taints } })).unwrap()
}

#[test]
fn a_workload_leaves_when_a_taint_is_not_tolerated_any_longer() {
    let taint = |effect: &str| json!({ "key": "dns", "effect": effect, "timeAdded": "2026-11-22T07:58:00Z" });
    let tolerated = |seconds: Value| json!([{ "key": "dns", "operator": "Exists", "tolerationSeconds": seconds }]);
    let later = Some("2026-11-22T08:03:00Z");
    let cases = [
        ("not tolerated", taint("NoExecute"), json!([]), true, None),
        (
            "of another effect",
            taint("NoSchedule"),
            json!([]),
            false,
            None,
        ),
        (
            "for ever",
            taint("NoExecute"),
            tolerated(Value::Null),
            false,
            None,
        ),
        (
            "for a while",
            taint("NoExecute"),
            tolerated(json!(300)),
            false,
            later,
        ),
        (
            "no longer",
            taint("NoExecute"),
            tolerated(json!(60)),
            true,
            None,
        ),
        (
            "not at all",
            taint("NoExecute"),
            tolerated(json!(-1)),
            true,
            None,
        ),
        (
            "of unknown age",
            json!({ "key": "dns", "effect": "NoExecute" }),
            tolerated(json!(300)),
            true,
            None,
        ),
    ];
    for (sentence, taint, tolerations, leaves, next_at) in cases {
        let cluster = cluster(&json!([taint]));
        let binding = binding(&tolerations, &Value::Null);
        let binding = BindingRef::from(&binding);
        let placement = binding.placement().unwrap();
        let tasks = begin(binding, &placement, &[&cluster], at(NOW));
        assert_eq!(!tasks.is_empty(), leaves, "{sentence}");
        let next = next(&scheduler(), binding, &[&cluster], at(NOW));
        assert_eq!(next, next_at.map(at), "{sentence}");
        for task in tasks {
            assert_eq!((&*task.from_cluster, task.replicas), ("m1", Some(2)));
            assert_eq!(task.purge_mode, "Gracefully");
            assert_eq!(task.creation_timestamp, Some(Time(at(NOW))));
        }
    }
}

#[test]
fn a_task_ends_once_the_copies_elsewhere_are_healthy_or_its_time_is_over() {
    let task = |more: Value| {
        let mut task = json!({ "fromCluster": "m0", "creationTimestamp": "2026-11-22T07:55:00Z" });
        json_patch::merge(&mut task, &more);
        task
    };
    let remove = |index: usize| {
        let path = format!("/spec/gracefulEvictionTasks/{index}");
        json!({ "op": "remove", "path": path })
    };
    let cases = [
        ("it waits", task(json!({})), "Unhealthy", 3, None),
        (
            "they are healthy",
            task(json!({})),
            "Healthy",
            3,
            Some(remove(0)),
        ),
        (
            "nobody knows of the newest",
            task(json!({})),
            "Healthy",
            2,
            None,
        ),
        (
            "its time is over",
            task(json!({ "gracePeriodSeconds": 60 })),
            "Unhealthy",
            3,
            Some(remove(0)),
        ),
        (
            "it is kept",
            task(json!({ "suppressDeletion": true })),
            "Healthy",
            3,
            None,
        ),
        (
            "it has to go",
            task(json!({ "suppressDeletion": false })),
            "Unhealthy",
            3,
            Some(remove(0)),
        ),
        (
            "it is new",
            task(json!({ "creationTimestamp": null })),
            "Healthy",
            3,
            Some(
                json!({ "op": "add", "path": "/spec/gracefulEvictionTasks/0/creationTimestamp", "value": NOW }),
            ),
        ),
    ];
    for (sentence, task, health, observed, expected) in cases {
        let mut binding = binding(&json!([]), &json!([task]));
        let items = json!([{ "clusterName": "m1", "health": health }]);
        let status = json!({ "schedulerObservedGeneration": observed, "aggregatedStatus": items });
        binding.status = from_value(status).unwrap();
        let operations = end((&binding).into(), at(NOW));
        let last = operations
            .as_ref()
            .and_then(|all| all.as_array()?.last().cloned());
        assert_eq!(last, expected, "{sentence}");
    }
}

#[test]
fn the_tasks_that_are_over_go_and_the_others_keep_their_places() {
    let task = |cluster: &str, seconds: i64| {
        json!({ "fromCluster": cluster, "gracePeriodSeconds": seconds,
        "creationTimestamp": "2026-11-22T07:55:00Z", "newer": true })
    };
    let tasks = json!([task("a", 60), task("b", 900), task("c", 60)]);
    let binding = binding(&json!([]), &tasks);
    let mut stored = serde_json::to_value(&binding).unwrap();
    stored["spec"]["gracefulEvictionTasks"] = tasks.clone();
    let operations: json_patch::Patch =
        from_value(end((&binding).into(), at(NOW)).unwrap()).unwrap();
    json_patch::patch(&mut stored, &operations).unwrap();
    assert_eq!(stored["spec"]["gracefulEvictionTasks"], json!([tasks[1]]));
    let next = next(&scheduler(), (&binding).into(), &[], at(NOW));
    assert_eq!(next, Some(at("2026-11-22T08:10:00Z")));
}
