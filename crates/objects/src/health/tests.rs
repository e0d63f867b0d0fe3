use serde_json::json;

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn health_is_judged_by_kind() {
    let workload = |kind: &str, status: Value| {
        json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "generation": 2 },
            "spec": { "replicas": 2 }, "status": status })
    };
    let of = |version: &str, kind: &str, spec: Value, status: Value| json!({ "apiVersion": version, "kind": kind, "spec": spec, "status": status });
    let ready = json!({ "observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2 });
    let starting = json!({ "observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 1 });
    let stale = json!({ "observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2 });
    let address = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    let balanced = json!({ "type": "LoadBalancer" });
    let running = |ready: &str| json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] });
    // A rollout to the second of two replicas.
    let partitioned = |updated: u8, available: u8| {
        let status = json!({ "observedGeneration": 2, "updatedReplicas": updated, "availableReplicas": available });
        let mut set = workload("StatefulSet", status);
        set["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 1 } });
        set
    };
    let with_spec = |mut workload: Value, spec: Value| {
        json_patch::merge(&mut workload["spec"], &spec);
        workload
    };
    // Nothing of a new version runs.
    let old = json!({ "observedGeneration": 2, "availableReplicas": 2 });
    let on_delete = json!({ "updateStrategy": { "type": "OnDelete" } });
    let cases = [
        (workload("Deployment", ready.clone()), true),
        (workload("Deployment", starting.clone()), false),
        (workload("Deployment", stale.clone()), false),
        (workload("Deployment", json!({})), false),
        (workload("StatefulSet", ready.clone()), true),
        (workload("StatefulSet", starting.clone()), false),
        (partitioned(1, 2), true),
        (partitioned(0, 2), false),
        (partitioned(1, 1), false),
        (
            with_spec(workload("StatefulSet", old.clone()), on_delete),
            true,
        ),
        (workload("StatefulSet", old.clone()), false),
        (
            with_spec(
                workload("Deployment", old.clone()),
                json!({ "paused": true }),
            ),
            true,
        ),
        (workload("Deployment", old), false),
        (workload("ReplicaSet", ready), true),
        (workload("ReplicaSet", starting), false),
        (
            workload(
                "DaemonSet",
                json!({ "observedGeneration": 2, "desiredNumberScheduled": 3,
            "updatedNumberScheduled": 3, "numberAvailable": 3 }),
            ),
            true,
        ),
        (
            workload(
                "DaemonSet",
                json!({ "observedGeneration": 2, "desiredNumberScheduled": 3,
            "updatedNumberScheduled": 2, "numberAvailable": 2 }),
            ),
            false,
        ),
        (of("v1", "Service", json!({}), json!({})), true),
        (of("v1", "Service", balanced.clone(), json!({})), false),
        (of("v1", "Service", balanced, address.clone()), true),
        (
            of("networking.k8s.io/v1", "Ingress", json!({}), json!({})),
            false,
        ),
        (
            of("networking.k8s.io/v1", "Ingress", json!({}), address),
            true,
        ),
        (of("v1", "Pod", json!({}), running("True")), true),
        (of("v1", "Pod", json!({}), running("False")), false),
        (
            of("v1", "Pod", json!({}), json!({ "phase": "Succeeded" })),
            true,
        ),
        (
            of("v1", "Pod", json!({}), json!({ "phase": "Failed" })),
            false,
        ),
        (
            of(
                "v1",
                "PersistentVolumeClaim",
                json!({}),
                json!({ "phase": "Bound" }),
            ),
            true,
        ),
        (
            of(
                "v1",
                "PersistentVolumeClaim",
                json!({}),
                json!({ "phase": "Pending" }),
            ),
            false,
        ),
        (
            of(
                "policy/v1",
                "PodDisruptionBudget",
                json!({}),
                json!({ "currentHealthy": 1, "desiredHealthy": 2 }),
            ),
            false,
        ),
        (
            of("batch/v1", "Job", json!({}), json!({ "failed": 7 })),
            true,
        ),
        (
            of("example.com/v1", "Deployment", json!({}), json!({})),
            true,
        ),
        (json!([]), true),
    ];
    for (object, healthy) in cases {
        let expected = if healthy {
            Health::Healthy
        } else {
            Health::Unhealthy
        };
        assert_eq!(health(&object), expected, "{object}");
    }
}
