//! The operator of Apache Flink.

use objects::amounts::Amounts;
use objects::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{count, is_empty, status_part, text};
use crate::propagation::interpret::replicas::{Replicas, node_claim};

pub(super) const KINDS: &[Known] = &[(
    "flink.apache.org/v1beta1",
    "FlinkDeployment",
    Interpreter {
        replicas: Some(replicas),
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
    let managers = count(template, "/spec/jobManager/replicas").unwrap_or(1);
    let workers = count(template, "/spec/taskManager/replicas");
    let workers = workers.or_else(|| workers_for_parallelism(template));
    let replicas = managers.saturating_add(workers.unwrap_or(1));
    Replicas::new(replicas, requirements(template))
}

/// Returns the number of workers that have a slot for each part of the job.
fn workers_for_parallelism(template: &Value) -> Option<i64> {
    let parallelism = count(template, "/spec/job/parallelism")?;
    let slots = "/spec/flinkConfiguration/taskmanager.numberOfTaskSlots";
    let slots = count(template, slots).filter(|slots| *slots > 0)?;
    let rest = i64::from(parallelism % slots > 0);
    Some(parallelism / slots + rest)
}

fn requirements(template: &Value) -> Option<Value> {
    let resources = ["/spec/taskManager/resource", "/spec/jobManager/resource"];
    let resources = resources.map(|path| template.pointer(path));
    let mut request = Map::new();
    let of_cpu = |resource: Option<&Value>| {
        let cpu = resource.and_then(|resource| resource.get("cpu"));
        Amounts::read(Some(&json!({ "cpu": cpu })))
    };
    let mut cpu = of_cpu(resources[0]);
    cpu.raise(&of_cpu(resources[1]));
    for (name, amount) in cpu.texts() {
        request.insert(name, amount.into());
    }
    // Flink means mebibytes by `2048m`; Karmada takes the text as it is, which either of us must leave to the other.
    let memory = resources.into_iter().flatten();
    let memory = memory.filter_map(|resource| {
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
    let parts = [
        ("nodeClaim", node_claim(&without_affinity(pod))),
        ("priorityClassName", pod.get("priorityClassName").cloned()),
        ("resourceRequest", Some(Value::Object(request))),
    ];
    let parts = parts.into_iter().filter_map(|(name, part)| {
        let part = part.filter(|part| !is_empty(part))?;
        Some((name.to_owned(), part))
    });
    let parts: Map<_, _> = parts.collect();
    (!parts.is_empty()).then(|| parts.into())
}

/// Karmada does not look at the affinity of the common template.
fn without_affinity(pod: &Value) -> Value {
    json!({ "nodeSelector": pod.get("nodeSelector"), "tolerations": pod.get("tolerations") })
}

/// A job that starts may have to move, unless it fails for a reason that it would meet anywhere.
fn is_healthy(object: &Value) -> bool {
    let is = |field, value| text(object, field) == value;
    match text(object, "/status/jobStatus/state") {
        "" => {
            is("/status/jobManagerDeploymentStatus", "READY")
                && is("/status/lifecycleState", "STABLE")
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
