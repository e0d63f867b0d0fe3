//! The parts of templates that leave something out.

use super::*;

/// Returns the parts of a template with this spec.
fn parts(api_version: &str, kind: &str, spec: &Value) -> Value {
    let template = object(api_version, kind, &json!({ "spec": spec }));
    json!(components(&template))
}

fn part(name: &str, replicas: i32) -> Value {
    json!({ "name": name, "replicas": replicas })
}

/// Who gives a part no name finds it by its place, and one of each runs unless it is said otherwise.
#[test]
fn gaps_have_defaults() {
    for (api_version, kind, spec, expected) in [
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            json!({ "tasks": [{ "name": "a" }, { "name": "", "minAvailable": 3 }, {}] }),
            json!([part("a", 1), part("task-1", 3), part("task-2", 1)]),
        ),
        ("batch.volcano.sh/v1alpha1", "Job", json!({}), json!([])),
        (
            "ray.io/v1",
            "RayCluster",
            json!({ "headGroupSpec": {}, "workerGroupSpecs": [{ "replicas": 2 }, { "groupName": "b" }] }),
            json!([part("worker-1", 2), part("b", 0)]),
        ),
        (
            "ray.io/v1",
            "RayJob",
            json!({ "rayClusterSpec": { "headGroupSpec": { "template": {} } } }),
            json!([part("ray-head", 1)]),
        ),
        (
            "flink.apache.org/v1beta1",
            "FlinkDeployment",
            json!({ "taskManager": { "replicas": 4 } }),
            json!([part("jobmanager", 1), part("taskmanager", 4)]),
        ),
        (
            "kubeflow.org/v1",
            "TFJob",
            json!({ "tfReplicaSpecs": { "Evaluator": {}, "Chief": { "replicas": 2 }, "Worker": null, "Other": {} } }),
            json!([part("chief", 2), part("evaluator", 1)]),
        ),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            json!({ "mpiReplicaSpecs": {
                "Launcher": { "template": {} }, "Worker": { "template": {} }, "Other": {},
            } }),
            json!([part("Launcher", 1), part("Worker", 0)]),
        ),
    ] {
        assert_eq!(parts(api_version, kind, &spec), expected, "{kind} {spec}");
    }
}

/// Returns the requirements of the driver and the executors of a Spark application with this spec, and their numbers.
fn spark(spec: &Value) -> (Value, Value, Value) {
    let parts = parts("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec);
    let [driver, executor] = [0_usize, 1].map(|index| parts[index]["replicaRequirements"].clone());
    (driver, executor, parts[1]["replicas"].clone())
}

/// Spark takes a part of its memory besides, and more for programs that are not written in Java.
#[test]
fn spark_memory_has_overhead() {
    for (kind, driver, factor, expected) in [
        ("Java", json!({}), Value::Null, "1408Mi"),
        (
            "Scala",
            json!({ "memory": "8g" }),
            Value::Null,
            "9448928051200m",
        ),
        ("Python", json!({}), Value::Null, "1503238553600m"),
        ("Python", json!({ "memory": "10g" }), Value::Null, "14Gi"),
        ("Java", json!({ "memory": "10g" }), json!("0.5"), "15Gi"),
        (
            "Java",
            json!({ "memory": "1G", "memoryOverhead": "512m" }),
            json!("0.5"),
            "1536Mi",
        ),
        ("Java", json!({ "memory": "2048" }), Value::Null, "2432Mi"),
        (
            "Java",
            json!({ "memory": "512k", "memoryOverhead": "1b" }),
            Value::Null,
            "524289",
        ),
        ("Java", json!({ "memory": "much" }), Value::Null, "1408Mi"),
    ] {
        let spec = json!({ "type": kind, "driver": driver, "memoryOverheadFactor": factor });
        let (needs, _, _) = spark(&spec);
        assert_eq!(needs["resourceRequest"]["memory"], expected, "{spec}");
    }
}

/// Executors that come and go are counted as they start; GPUs, nodes and the priority class are heeded.
#[test]
fn spark_parts_are_read() {
    let node = json!({ "nodeSelectorTerms": [] });
    let affinity = json!({ "requiredDuringSchedulingIgnoredDuringExecution": node });
    let spec = json!({
        "type": "Java",
        "dynamicAllocation": { "enabled": true, "initialExecutors": 2, "minExecutors": 3 },
        "driver": { "cores": "2", "gpu": { "name": "nvidia.com/gpu", "quantity": 2 }, "priorityClassName": "high" },
        "executor": { "instances": 1, "affinity": { "nodeAffinity": affinity }, "gpu": { "name": "", "quantity": 1 } },
    });
    let (driver, executor, executors) = spark(&spec);
    assert_eq!(
        driver,
        json!({
            "priorityClassName": "high",
            "resourceRequest": { "cpu": "2", "memory": "1408Mi", "nvidia.com/gpu": "2" },
        })
    );
    assert_eq!(
        executor,
        json!({
            "nodeClaim": { "hardNodeAffinity": node },
            "resourceRequest": { "cpu": "1", "memory": "1408Mi" },
        })
    );
    assert_eq!(executors, 3);
    let fixed = json!({ "dynamicAllocation": { "enabled": false, "initialExecutors": 9 } });
    assert_eq!(spark(&fixed).2, 1);
}
