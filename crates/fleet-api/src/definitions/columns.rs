//! The columns that kubectl shows.

use serde_json::{Value, json};

use crate::Placement;
use objects::Scope;
use objects::schema::age_column;

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({ "name": name, "type": kind, "jsonPath": path })
}

/// Returns a column that is shown with `-o wide` only.
fn wide(mut column: Value) -> Value {
    column["priority"] = 1.into();
    column
}

/// Returns the column with the generation of an object.
pub(super) fn generation() -> Value {
    column("Gen", "string", ".metadata.generation")
}

fn condition(name: &str, kind: &str) -> Value {
    let path = format!(".status.conditions[?(@.type==\"{kind}\")].status");
    column(name, "string", &path)
}

fn condition_generation(name: &str, kind: &str) -> Value {
    let path = format!(".status.conditions[?(@.type==\"{kind}\")].observedGeneration");
    column(name, "string", &path)
}

/// Returns the columns of the placements of a scope.
pub(super) fn of_placements(scope: Scope) -> Vec<Value> {
    let [scheduled, available, synchronized] = ["Scheduled", "Available", "WorkSynchronized"]
        .map(|name| format!("{}{name}", Placement::kind_of(scope)));
    vec![
        generation(),
        wide(column("Type", "string", ".spec.policy.placementType")),
        condition("Scheduled", &scheduled),
        condition_generation("Scheduled-Gen", &scheduled),
        wide(condition("Work-Synchronized", &synchronized)),
        wide(condition_generation("Work-Synchronized-Gen", &synchronized)),
        condition("Available", &available),
        condition_generation("Available-Gen", &available),
        age_column(),
    ]
}

/// Returns the columns of bindings.
pub(super) fn of_bindings() -> Vec<Value> {
    vec![
        condition("WorkSynchronized", "WorkSynchronized"),
        condition("ResourcesApplied", "Applied"),
        wide(condition("ResourceAvailable", "Available")),
        age_column(),
    ]
}

/// Returns the columns of the copies of placements' statuses.
pub(super) fn of_status_copies() -> Vec<Value> {
    let index = ".sourceStatus.observedResourceIndex";
    vec![
        column("Resource-Index", "string", index),
        column("Last-Updated", "string", ".lastUpdatedTime"),
        age_column(),
    ]
}

/// Returns the columns of evictions.
pub(super) fn of_evictions() -> Vec<Value> {
    vec![
        condition("Valid", "Valid"),
        condition("Executed", "Executed"),
        age_column(),
    ]
}

/// Returns the columns of runs.
pub(super) fn of_runs() -> Vec<Value> {
    let spec = |name: &str, field: &str| column(name, "string", &format!(".spec.{field}"));
    vec![
        spec("Placement", "placementName"),
        spec("Resource-Snapshot-Index", "resourceSnapshotIndex"),
        column(
            "Policy-Snapshot-Index",
            "string",
            ".status.policySnapshotIndexUsed",
        ),
        condition("Initialized", "Initialized"),
        condition("Progressing", "Progressing"),
        condition("Succeeded", "Succeeded"),
        age_column(),
        wide(spec("Strategy", "stagedRolloutStrategyName")),
    ]
}

/// Returns the columns of approval requests.
pub(super) fn of_approvals() -> Vec<Value> {
    vec![
        column("Update-Run", "string", ".spec.parentStageRollout"),
        column("Stage", "string", ".spec.targetStage"),
        condition("Approved", "Approved"),
        age_column(),
    ]
}

/// Returns the columns of member clusters.
pub(super) fn of_members() -> Vec<Value> {
    let agent = ".status.agentStatus[?(@.type==\"MemberAgent\")].lastReceivedHeartbeat";
    let nodes = ".status.properties.kubernetes-fleet\\.io/node-count.value";
    let usage =
        |name: &str, path: &str| column(name, "string", &format!(".status.resourceUsage.{path}"));
    vec![
        condition("Joined", "Joined"),
        age_column(),
        column("Member-Agent-Last-Seen", "date", agent),
        column("Node-Count", "string", nodes),
        usage("Available-CPU", "available.cpu"),
        usage("Available-Memory", "available.memory"),
        wide(usage("Allocatable-CPU", "allocatable.cpu")),
        wide(usage("Allocatable-Memory", "allocatable.memory")),
    ]
}
