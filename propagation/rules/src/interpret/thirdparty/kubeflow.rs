//! Kubeflow: notebooks and training jobs.

use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{
    count, entries, has_condition, is_empty, list, pods, status_part, text, without_empties,
};
use crate::interpret::components::{Component, component};
use crate::interpret::reflect::number;
use crate::interpret::replicas::{Replicas, pod_requirements};

pub(super) const KINDS: &[Known] = &[
    (
        "kubeflow.org/v1",
        "Notebook",
        Interpreter {
            replicas: Some(|notebook| {
                let pod = notebook.pointer("/spec/template/spec");
                Replicas::new(1, pod.and_then(pod_requirements))
            }),
            is_healthy: Some(is_notebook_healthy),
            reflect: Some(|notebook| status_part(notebook, &NOTEBOOK).into()),
            aggregate: Some(notebook_status),
            ..Interpreter::NONE
        },
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        Interpreter {
            components: Some(|job| {
                job_components(job, "/spec/pytorchReplicaSpecs", &["Master", "Worker"])
            }),
            is_healthy: Some(is_job_healthy),
            aggregate: Some(|all| Some(job_status(all, pytorch_conditions(all)))),
            needs: Some(|job| pods(job, &PYTORCH_PODS)),
            ..Interpreter::NONE
        },
    ),
    (
        "kubeflow.org/v1",
        "TFJob",
        Interpreter {
            components: Some(|job| {
                let kinds = ["PS", "Worker", "Chief", "Master", "Evaluator"];
                job_components(job, "/spec/tfReplicaSpecs", &kinds)
            }),
            is_healthy: Some(is_job_healthy),
            aggregate: Some(|all| Some(job_status(all, tf_conditions(all)))),
            needs: Some(|job| pods(job, &TF_PODS)),
            ..Interpreter::NONE
        },
    ),
    (
        "kubeflow.org/v2beta1",
        "MPIJob",
        Interpreter {
            components: Some(mpi_components),
            is_healthy: Some(|job| {
                list(job, "/status/conditions").next().is_some() && is_job_healthy(job)
            }),
            reflect: Some(|job| {
                let mut status = status_part(job, &MPI);
                status.retain(|_, value| !is_empty(value));
                status.into()
            }),
            aggregate: Some(mpi_status),
            ..Interpreter::NONE
        },
    ),
];

const NOTEBOOK: [&str; 3] = ["readyReplicas", "containerState", "conditions"];
const PYTORCH_PODS: [&str; 2] = [
    "/spec/pytorchReplicaSpecs/Master/template/spec",
    "/spec/pytorchReplicaSpecs/Worker/template/spec",
];
const TF_PODS: [&str; 5] = [
    "/spec/tfReplicaSpecs/PS/template/spec",
    "/spec/tfReplicaSpecs/Worker/template/spec",
    "/spec/tfReplicaSpecs/Chief/template/spec",
    "/spec/tfReplicaSpecs/Master/template/spec",
    "/spec/tfReplicaSpecs/Evaluator/template/spec",
];
const MPI: [&str; 5] = [
    "replicaStatuses",
    "conditions",
    "startTime",
    "completionTime",
    "lastReconcileTime",
];

/// Returns the Pods of a training job by their kinds.
fn job_components(job: &Value, specs: &str, kinds: &[&str]) -> Vec<Component> {
    let components = kinds.iter().filter_map(|kind| {
        let spec = job.pointer(specs)?.get(kind)?;
        let spec = Some(spec).filter(|spec| spec.is_object())?;
        let replicas = count(spec, "/replicas").unwrap_or(1);
        let pod = spec.pointer("/template/spec");
        Some(component(&kind.to_ascii_lowercase(), replicas, pod))
    });
    components.collect()
}

/// An MPI job has the kinds of Pods that it names. Without a number there is one of each, and no worker.
fn mpi_components(job: &Value) -> Vec<Component> {
    let kinds = entries(job, "/spec/mpiReplicaSpecs");
    let components = kinds.filter_map(|(kind, spec)| {
        let template = spec.get("template")?;
        let default = i64::from(!kind.eq_ignore_ascii_case("worker"));
        let replicas = count(spec, "/replicas").unwrap_or(default);
        Some(component(kind, replicas, template.get("spec")))
    });
    components.collect()
}

fn is_notebook_healthy(notebook: &Value) -> bool {
    let state = notebook.pointer("/status/containerState");
    let state = state.unwrap_or(&Value::Null);
    if is_in(state, "running") {
        return true;
    }
    if is_in(state, "waiting") {
        return text(state, "/waiting/reason") == "ContainerCreating";
    }
    let bad = ["Error", "OOMKilled", "ContainerCannotRun"];
    is_in(state, "terminated")
        && count(state, "/terminated/exitCode").unwrap_or_default() == 0
        && !bad.contains(&text(state, "/terminated/reason"))
}

/// Returns `true` if this is the state of a container.
fn is_in(state: &Value, name: &str) -> bool {
    state.get(name).is_some_and(|state| !state.is_null())
}

/// One that does not run anywhere has failed, whichever others do.
fn notebook_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let containers = all.members().map(|(cluster, status)| {
        let state = status.get("containerState").unwrap_or(&Value::Null);
        (cluster, state)
    });
    let (running, failing): (Vec<_>, Vec<_>) =
        containers.partition(|(_, state)| is_in(state, "running"));
    let mut status = all.sums(&["readyReplicas"]);
    let mut conditions = Vec::new();
    let state = if let Some((_, last)) = failing.last() {
        let clusters = clusters(&failing);
        let message = format!("Notebook executed failed in member clusters: {clusters}");
        let ends = failing
            .iter()
            .map(|(_, state)| text(state, "/terminated/finishedAt"));
        let end = ends.max();
        conditions.push(notebook_condition(
            "Failed",
            "NotebookFailed",
            &message,
            end,
        ));
        if is_empty(last) {
            json!({ "waiting": { "reason": "Unschedulable" } })
        } else {
            (*last).clone()
        }
    } else {
        let starts = running
            .iter()
            .map(|(_, state)| text(state, "/running/startedAt"));
        let start = starts.max();
        if running.len() == all.copies() {
            let message = "All notebooks are ready";
            conditions.push(notebook_condition("Ready", "Ready", message, start));
        }
        start.map_or(Value::Null, |at| json!({ "running": { "startedAt": at } }))
    };
    status.insert("containerState".to_owned(), state);
    status.insert("conditions".to_owned(), conditions.into());
    status.retain(|_, value| !value.is_null());
    Some(status)
}

fn notebook_condition(kind: &str, reason: &str, message: &str, at: Option<&str>) -> Value {
    let fields = [
        ("type", json!(kind)),
        ("status", json!("True")),
        ("reason", json!(reason)),
        ("message", json!(message)),
        ("lastProbeTime", json!(at)),
        ("lastTransitionTime", json!(at)),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(without_empties(Map::from_iter(fields)))
}

fn is_job_healthy(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions");
    conditions.is_some_and(Value::is_array) && !has_condition(job, "Failed", &[])
}

/// Returns the status of a training job with these conditions. Its end is known once it has succeeded everywhere.
fn job_status(all: &Aggregation<'_>, conditions: Vec<Value>) -> Map<String, Value> {
    let end = if has_succeeded(all) {
        all.latest("completionTime")
    } else {
        Value::Null
    };
    let fields = [
        ("startTime", all.earliest("startTime")),
        ("completionTime", end),
        ("lastReconcileTime", all.latest("lastReconcileTime")),
        ("replicaStatuses", replica_statuses(all)),
        ("conditions", conditions.into()),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    without_empties(all.keeping(Map::from_iter(fields)))
}

fn has_succeeded(all: &Aggregation<'_>) -> bool {
    all.copies() > 0 && all.with_condition("Succeeded").len() == all.copies()
}

/// Returns the number of Pods of each kind in each state.
fn replica_statuses(all: &Aggregation<'_>) -> Value {
    let mut sums: Map<String, Value> = Map::new();
    for status in all.statuses() {
        for (kind, of_member) in entries(status, "/replicaStatuses") {
            let sum = sums.entry(kind).or_insert_with(|| json!({}));
            for name in ["active", "succeeded", "failed"] {
                let count = number(Some(sum), name);
                let count = count.saturating_add(number(Some(of_member), name));
                sum[name] = count.into();
            }
        }
    }
    sums.into()
}

fn pytorch_conditions(all: &Aggregation<'_>) -> Vec<Value> {
    let kinds = ["Created", "Running", "Failed", "Succeeded"];
    let [created, running, failed, succeeded] = kinds.map(|kind| all.with_condition(kind));
    let has_succeeded = has_succeeded(all);
    let runs = failed.is_empty() && !has_succeeded;
    let failure = format!(
        "PyTorchJob executed failed in member clusters: {}",
        clusters(&failed)
    );
    let conditions = [
        ("Created", "PyTorchJob is created.", first(&created)),
        (
            "Running",
            "PyTorchJob is running.",
            first(&running).filter(|_| runs),
        ),
        ("Failed", failure.as_str(), last(&failed)),
        (
            "Succeeded",
            "PyTorchJob is successfully completed.",
            last(&succeeded).filter(|_| has_succeeded),
        ),
    ];
    let conditions = conditions.into_iter().filter_map(|(kind, message, times)| {
        let reason = format!("PyTorchJob{kind}");
        Some(condition(kind, &reason, message, times?))
    });
    conditions.collect()
}

fn tf_conditions(all: &Aggregation<'_>) -> Vec<Value> {
    let failed = all.with_condition("Failed");
    let mut conditions = Vec::new();
    if let Some(times) = last(&failed) {
        let clusters = clusters(&failed);
        let message = format!("TFJob executed failed in member clusters: {clusters}");
        conditions.push(condition("Failed", "TFJobFailed", &message, times));
    }
    if has_succeeded(all)
        && let Some(times) = last(&all.with_condition("Succeeded"))
    {
        let message = "TFJob completed successfully";
        conditions.push(condition("Succeeded", "Completed", message, times));
    }
    conditions
}

/// Returns a condition that is True since a member's condition `times`. Karmada takes the time at which it looks,
/// which is another one each time.
fn condition(kind: &str, reason: &str, message: &str, times: &Value) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": times.get("lastTransitionTime"),
        "lastUpdateTime": times.get("lastUpdateTime"),
    })
}

fn clusters(members: &[(&str, &Value)]) -> String {
    let clusters: Vec<_> = members.iter().map(|(cluster, _)| *cluster).collect();
    clusters.join(", ")
}

fn first<'a>(members: &[(&str, &'a Value)]) -> Option<&'a Value> {
    let conditions = members.iter().map(|(_, condition)| *condition);
    conditions.min_by_key(|&condition| since(condition))
}

fn last<'a>(members: &[(&str, &'a Value)]) -> Option<&'a Value> {
    let conditions = members.iter().map(|(_, condition)| *condition);
    conditions.max_by_key(|&condition| since(condition))
}

fn since(condition: &Value) -> &str {
    let update = text(condition, "/lastUpdateTime");
    Some(update)
        .filter(|update| !update.is_empty())
        .unwrap_or_else(|| text(condition, "/lastTransitionTime"))
}

fn mpi_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let mut conditions: Vec<Value> = Vec::new();
    for condition in all.joined("conditions") {
        let mut known = conditions.iter_mut();
        let same = known.find(|one| text(one, "/type") == text(&condition, "/type"));
        match same {
            Some(same) if since(&condition) > since(same) => *same = condition,
            Some(_) => {}
            None => conditions.push(condition),
        }
    }
    let fields = [
        ("replicaStatuses", replica_statuses(all)),
        ("conditions", conditions.into()),
        ("startTime", all.earliest("startTime")),
        ("completionTime", all.latest("completionTime")),
        ("lastReconcileTime", all.latest("lastReconcileTime")),
    ];
    let told = fields.into_iter().filter(|(_, value)| !is_empty(value));
    Some(told.map(|(name, value)| (name.to_owned(), value)).collect())
}
