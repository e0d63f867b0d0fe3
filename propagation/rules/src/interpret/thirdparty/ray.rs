//! The operator of Ray: clusters, and jobs and services that have one each.

use objects::amounts::Amounts;
use objects::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::needs::Needs;
use super::reading::{count, entries, has_condition, list, text};
use crate::interpret::components::{Component, component};
use crate::interpret::replicas::{Replicas, pod_requirements};

pub(super) const KINDS: &[Known] = &[
    (
        "ray.io/v1",
        "RayCluster",
        Interpreter {
            components: Some(|cluster| cluster_components(cluster, "/spec")),
            is_healthy: Some(is_cluster_healthy),
            aggregate: Some(cluster_status),
            ..Interpreter::NONE
        },
    ),
    (
        "ray.io/v1",
        "RayJob",
        Interpreter {
            components: Some(|job| cluster_components(job, "/spec/rayClusterSpec")),
            is_healthy: Some(is_job_healthy),
            aggregate: Some(job_status),
            needs: Some(|job| {
                let mut needs = cluster_needs(job, "/spec/rayClusterSpec");
                needs
                    .pods
                    .extend(job.pointer("/spec/submitterPodTemplate/spec"));
                needs
            }),
            ..Interpreter::NONE
        },
    ),
    (
        "ray.io/v1",
        "RayService",
        Interpreter {
            replicas: Some(service_replicas),
            revise: Some(revise_service),
            is_healthy: Some(|service| has_condition(service, "Ready", &[])),
            aggregate: Some(service_status),
            needs: Some(|service| cluster_needs(service, "/spec/rayClusterConfig")),
            ..Interpreter::NONE
        },
    ),
];

/// Returns the head and the groups of workers of the Ray cluster at a path.
fn cluster_components(template: &Value, path: &str) -> Vec<Component> {
    let cluster = template.pointer(path).unwrap_or(&Value::Null);
    let head = cluster.pointer("/headGroupSpec/template");
    let head = head.map(|head| component("ray-head", 1, head.get("spec")));
    let groups = list(cluster, "/workerGroupSpecs").zip(1..);
    let workers = groups.map(|(group, number)| {
        let name = match text(group, "/groupName") {
            "" => format!("worker-{number}"),
            name => name.to_owned(),
        };
        let replicas = count(group, "/replicas").unwrap_or_default();
        component(&name, replicas, group.pointer("/template/spec"))
    });
    head.into_iter().chain(workers).collect()
}

fn is_cluster_healthy(cluster: &Value) -> bool {
    has_condition(cluster, "HeadPodReady", &[])
        && has_condition(cluster, "RayClusterProvisioned", &[])
        && !has_condition(cluster, "RayClusterReplicaFailure", &[])
}

fn cluster_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let mut status = all.sums(&[
        "readyWorkerReplicas",
        "availableWorkerReplicas",
        "maxWorkerReplicas",
        "minWorkerReplicas",
        "desiredWorkerReplicas",
    ]);
    let mut with_state = all.statuses();
    let with_state = with_state.find(|status| !text(status, "/state").is_empty());
    let [state, times] = ["state", "stateTransitionTimes"].map(|name| {
        let value = with_state.and_then(|status| status.get(name));
        value.cloned().unwrap_or_default()
    });
    let fields = [
        ("conditions", all.joined("conditions").into()),
        ("desiredCPU", resource(all, "desiredCPU")),
        ("desiredMemory", resource(all, "desiredMemory")),
        ("desiredGPU", devices(all, "desiredGPU")),
        ("desiredTPU", devices(all, "desiredTPU")),
        ("lastUpdateTime", all.latest("lastUpdateTime")),
        ("endpoints", all.first("endpoints")),
        ("head", all.first("head")),
        ("state", state),
        ("stateTransitionTimes", times),
    ];
    status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Some(all.keeping(status))
}

/// Returns the sum of a resource, in the notation of the first that is more than nothing.
fn resource(all: &Aggregation<'_>, name: &str) -> Value {
    let amounts = quantities(all, name);
    let mut positive = amounts.iter().filter(|(_, amount)| amount.is_positive());
    let is_binary = positive.next().is_some_and(|(text, _)| text.ends_with('i'));
    let sum = sum(&amounts);
    let text = if is_binary { sum.binary() } else { sum.milli() };
    text.into()
}

/// Returns the sum of a resource that is counted whole.
fn devices(all: &Aggregation<'_>, name: &str) -> Value {
    let number = sum(&quantities(all, name)).units();
    number.to_string().into()
}

fn sum(amounts: &[(&str, Quantity)]) -> Quantity {
    let amounts = amounts.iter().map(|(_, amount)| *amount);
    amounts.fold(Quantity::default(), |sum, amount| sum + amount)
}

fn quantities<'a>(all: &Aggregation<'a>, name: &str) -> Vec<(&'a str, Quantity)> {
    let texts = all
        .statuses()
        .filter_map(|status| status.get(name)?.as_str());
    let read = texts.filter_map(|text| Some((text, Quantity::parse(text)?)));
    read.collect()
}

fn is_job_healthy(job: &Value) -> bool {
    match text(job, "/status/jobDeploymentStatus") {
        "Running" => true,
        "Complete" => text(job, "/status/jobStatus") == "SUCCEEDED",
        _ => false,
    }
}

fn job_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let deployment = worst(all, "/jobDeploymentStatus", |status| match status {
        "Initializing" => 1,
        "Waiting" => 2,
        "Suspending" | "Suspended" => 3,
        "Retrying" => 4,
        "Running" => 5,
        "Complete" => 6,
        "ValidationFailed" => 7,
        "Failed" => 8,
        _ => 0,
    });
    let job = worst(all, "/jobStatus", |status| match status {
        "PENDING" => 1,
        "RUNNING" => 2,
        "SUCCEEDED" => 3,
        "STOPPED" => 4,
        "FAILED" => 5,
        _ => 0,
    });
    let fields = [
        ("jobDeploymentStatus", deployment),
        ("reason", deployment),
        ("message", deployment),
        ("jobStatus", job),
    ];
    let fields = fields.map(|(name, of)| {
        let value = of.and_then(|of| of.get(name)).cloned();
        (name.to_owned(), value.unwrap_or_default())
    });
    Some(all.keeping(Map::from_iter(fields)))
}

/// Returns the first of the statuses whose text at a path is the most severe; none if none has one.
fn worst<'a>(all: &Aggregation<'a>, path: &str, severity: fn(&str) -> u8) -> Option<&'a Value> {
    let told = all
        .statuses()
        .filter(|status| !text(status, path).is_empty());
    told.reduce(|worst, other| {
        if severity(text(other, path)) > severity(text(worst, path)) {
            other
        } else {
            worst
        }
    })
}

/// The head and the workers, each with the most that one of them needs.
fn service_replicas(service: &Value) -> Replicas {
    let config = service.pointer("/spec/rayClusterConfig");
    let config = config.unwrap_or(&Value::Null);
    let Some(head) = config.pointer("/headGroupSpec/template") else {
        return Replicas::default();
    };
    let mut replicas = 1_i64;
    let mut most = Amounts::default();
    for group in list(config, "/workerGroupSpecs") {
        let workers = count(group, "/replicas").unwrap_or_default();
        replicas = replicas.saturating_add(workers);
        if let Some(pod) = group.pointer("/template/spec") {
            let needs = Amounts::of_pod(pod).texts();
            let needs = needs.iter().map(|(name, text)| (&**name, &**text));
            let compared = needs.filter(|(name, _)| ["cpu", "memory"].contains(name));
            most.raise(&compared.collect());
        }
    }
    let mut requirements = head.get("spec").and_then(pod_requirements);
    if let Some(requirements) = requirements.as_mut().and_then(Value::as_object_mut) {
        let mut request = Amounts::read(requirements.get("resourceRequest"));
        request.raise(&most);
        if request != Amounts::default() {
            requirements.insert("resourceRequest".to_owned(), json!(request.texts()));
        }
    }
    Replicas::new(replicas, requirements)
}

/// The workers are divided among their groups as the template has them; the head is always one.
fn revise_service(service: &mut Value, replicas: i32) {
    let groups = service.pointer_mut("/spec/rayClusterConfig/workerGroupSpecs");
    let Some(groups) = groups.and_then(Value::as_array_mut) else {
        return;
    };
    let most = i64::from(i32::MAX);
    let workers = i64::from(replicas.saturating_sub(1).max(0));
    let total: i64 = groups.iter().map(replicas_of).sum();
    let number = i64::try_from(groups.len()).unwrap_or(most);
    let mut rest = workers;
    for (group, nth) in groups.iter_mut().zip(1..) {
        let share = if nth == number {
            rest
        } else if total == 0 {
            workers / number + i64::from(nth <= workers % number)
        } else {
            // To the nearest, and half a worker up.
            let halves = workers.saturating_mul(2).saturating_mul(replicas_of(group));
            halves.saturating_add(total) / (2 * total)
        };
        // Rounded up, the first groups could want more than there is.
        let share = share.min(rest);
        rest -= share;
        if let Some(group) = group.as_object_mut() {
            group.insert("replicas".to_owned(), share.into());
        }
    }
}

fn replicas_of(group: &Value) -> i64 {
    let replicas = count(group, "/replicas").unwrap_or_default();
    replicas.clamp(0, i64::from(i32::MAX))
}

fn service_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let mut status = all.sums(&["numServeEndpoints"]);
    let is_stopped = all.statuses().any(|status| status["serviceStatus"] == "");
    let running = if is_stopped { "" } else { "Running" };
    let mut active = all.first("activeServiceStatus");
    if let Some(active) = active.as_object_mut() {
        active.insert("applicationStatuses".to_owned(), applications(all));
    }
    let fields = [
        ("conditions", all.joined("conditions").into()),
        ("lastUpdateTime", all.latest("lastUpdateTime")),
        (
            "observedGeneration",
            all.greatest("observedGeneration").into(),
        ),
        ("serviceStatus", running.into()),
        ("activeServiceStatus", active),
        ("pendingServiceStatus", all.first("pendingServiceStatus")),
    ];
    status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Some(all.keeping(status))
}

/// Returns of each application the most severe report.
fn applications(all: &Aggregation<'_>) -> Value {
    let mut worst = Map::new();
    for status in all.statuses() {
        for (name, application) in entries(status, "/activeServiceStatus/applicationStatuses") {
            let known = worst.get(name).map(severity);
            if known.is_none_or(|known| severity(application) > known) {
                worst.insert(name.clone(), application.clone());
            }
        }
    }
    worst.into()
}

/// Returns how bad the status of an application is.
fn severity(application: &Value) -> u8 {
    match text(application, "/status") {
        "NOT_STARTED" => 1,
        "DEPLOYING" => 2,
        "DELETING" => 3,
        "UNHEALTHY" => 4,
        "DEPLOY_FAILED" => 5,
        _ => 0,
    }
}

/// Returns the needs of the Pods of the Ray cluster at a path.
fn cluster_needs<'a>(template: &'a Value, path: &str) -> Needs<'a> {
    let cluster = template.pointer(path).unwrap_or(&Value::Null);
    let head = cluster.pointer("/headGroupSpec/template/spec");
    let groups = list(cluster, "/workerGroupSpecs");
    let workers = groups.filter_map(|group| group.pointer("/template/spec"));
    Needs {
        pods: head.into_iter().chain(workers).collect(),
        objects: Vec::new(),
    }
}
