//! The operator of Apache Flink.

use objects::amounts::Amounts;
use objects::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{count, needs, status_part, text};
use crate::interpret::components::{Component, with_requirements};
use crate::interpret::replicas::{Replicas, node_claim};

pub(super) const KINDS: &[Known] = &[(
    "flink.apache.org/v1beta1",
    "FlinkDeployment",
    Interpreter {
        replicas: Some(replicas),
        components: Some(components),
        is_healthy: Some(is_healthy),
        reflect: Some(|object| status_part(object, &STATUS).into()),
        aggregate: Some(aggregate),
        ..Interpreter::NONE
    },
)];

const STATUS: [&str; 8] = [
    "clusterInfo",
    "error",
    "jobManagerDeploymentStatus",
    "jobStatus",
    "lifecycleState",
    "observedGeneration",
    "reconciliationStatus",
    "taskManager",
];

/// The Pods of both kinds, each with the most that one of either needs: a binding has no room for more.
fn replicas(template: &Value) -> Replicas {
    let replicas = managers(template).saturating_add(workers(template));
    Replicas::new(replicas, requirements(template, &[WORKER, MANAGER]))
}

fn components(template: &Value) -> Vec<Component> {
    let parts = [
        ("jobmanager", managers(template), MANAGER),
        ("taskmanager", workers(template), WORKER),
    ];
    let parts = parts.map(|(name, replicas, resource)| {
        with_requirements(name, replicas, requirements(template, &[resource]))
    });
    parts.into()
}

const MANAGER: &str = "/spec/jobManager/resource";
const WORKER: &str = "/spec/taskManager/resource";

fn managers(template: &Value) -> i64 {
    count(template, "/spec/jobManager/replicas").unwrap_or(1)
}

fn workers(template: &Value) -> i64 {
    let workers = count(template, "/spec/taskManager/replicas");
    let workers = workers.or_else(|| workers_for_parallelism(template));
    workers.unwrap_or(1)
}

/// Returns the number of workers that have a slot for each part of the job.
fn workers_for_parallelism(template: &Value) -> Option<i64> {
    let parallelism = count(template, "/spec/job/parallelism")?;
    let slots = "/spec/flinkConfiguration/taskmanager.numberOfTaskSlots";
    let slots = count(template, slots).filter(|slots| *slots > 0)?;
    let rest = i64::from(parallelism % slots > 0);
    Some(parallelism / slots + rest)
}

/// Returns the most that is needed by one of the Pods whose resources are at these paths.
fn requirements(template: &Value, resources: &[&str]) -> Option<Value> {
    let resources = resources.iter().filter_map(|path| template.pointer(path));
    let mut request = Map::new();
    let mut cpu = Amounts::default();
    for resource in resources.clone() {
        cpu.raise(&Amounts::read(Some(&json!({ "cpu": resource.get("cpu") }))));
    }
    for (name, amount) in cpu.texts() {
        request.insert(name, amount.into());
    }
    // Flink means mebibytes by `2048m`; Karmada takes the text as it is, which either of us must leave to the other.
    let memory = resources.filter_map(|resource| {
        let memory = match resource.get("memory")? {
            Value::String(text) => text.clone(),
            memory => memory.to_string(),
        };
        Some((Quantity::parse(&memory)?, memory))
    });
    if let Some((_, memory)) =
        memory.reduce(|most, other| if other.0 > most.0 { other } else { most })
    {
        request.insert("memory".to_owned(), memory.into());
    }
    let pod = template.pointer("/spec/podTemplate/spec");
    let pod = pod.unwrap_or(&Value::Null);
    let claim = node_claim(&without_affinity(pod));
    needs(claim, pod.get("priorityClassName"), request)
}

/// Karmada does not look at the affinity of the common template.
fn without_affinity(pod: &Value) -> Value {
    json!({ "nodeSelector": pod.get("nodeSelector"), "tolerations": pod.get("tolerations") })
}

/// A job that starts may have to move, unless it fails for a reason that it would meet anywhere.
fn is_healthy(object: &Value) -> bool {
    match text(object, "/status/jobStatus/state") {
        "" => {
            text(object, "/status/jobManagerDeploymentStatus") == "READY"
                && text(object, "/status/lifecycleState") == "STABLE"
        }
        "CREATED" | "INITIALIZING" | "RECONCILING" => {
            let error = text(object, "/status/error");
            let anywhere = ["ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"];
            anywhere.iter().any(|reason| error.contains(reason))
        }
        "CANCELED" | "CANCELLING" | "FAILED" | "FAILING" | "FINISHED" | "RESTARTING"
        | "RUNNING" | "SUSPENDED" => true,
        _ => false,
    }
}

/// A job runs in one cluster at a time: the last report counts, whole.
fn aggregate(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    if all.copies() == 0 {
        return None;
    }
    let last = all.statuses().last().unwrap_or(&Value::Null);
    let fields = STATUS.map(|name| {
        let value = last.get(name).cloned().unwrap_or_default();
        (name.to_owned(), value)
    });
    Some(all.keeping(Map::from_iter(fields)))
}
