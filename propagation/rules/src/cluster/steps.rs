//! The writes that bring a cluster up to date, in their order.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::cluster_view::{ClusterViewStatus, PULL, PUSH, Quantities, ResourceSummary};
use karmada_api::{ClusterView, execution_namespace, names};
use objects::Metadata;
use objects::condition::{find, transition, upsert_patch};
use objects::condition_taint::ConditionTaint;
use objects::patch::guarded;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::capacity::Capacity;
use super::condition_taints::with_condition_taints;
use super::enablements::enablements;
use super::silence::silence;
use super::taints::{self, Unready, tainted};
use super::{COMPLETE_API_ENABLEMENTS, FINALIZER, READY, Report, SYSTEM, ServedKinds};

/// The execution namespace of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionNamespace {
    /// True if its label marks it as one of the system's.
    pub is_labelled: bool,
    /// True while it is being deleted.
    pub is_deleting: bool,
}

/// The newest that is known from a cluster's own API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterObservation {
    /// Its health; `None` while probes contradict what is published, but not for long enough.
    pub ready: Option<Report>,
    /// Its version.
    pub version: Option<String>,
    /// The kinds that it serves, or the reason for which they are not known.
    pub served: Option<Result<Vec<ServedKinds>, String>>,
    /// Its capacity.
    pub capacity: Option<Capacity>,
}

/// A cluster and what decides about it.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The `Cluster` as the server stores it.
    pub cluster: &'a Value,
    /// Its execution namespace, if that exists.
    pub namespace: Option<ExecutionNamespace>,
    /// True if a binding has it among its clusters.
    pub is_targeted: bool,
    /// The newest from its API.
    pub observed: Option<&'a ClusterObservation>,
    /// The time for which nothing was heard of it, if it reports on itself.
    pub silent_for: Duration,
    /// The time for which it has been known as not ready.
    pub unready_for: Duration,
    /// The time after which workloads are to leave a cluster that is not ready; `None`: never.
    pub evict_after: Option<Duration>,
    /// The taints that clusters get for their conditions.
    pub condition_taints: &'a [ConditionTaint],
    /// The time shown in what is written.
    pub now: Timestamp,
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterWrite {
    /// Patch the cluster's finalizers.
    Finalizers(Value),
    /// Create the namespace.
    CreateNamespace(Box<Namespace>),
    /// Patch the namespace's labels.
    LabelNamespace(Value),
    /// Delete the namespace.
    DeleteNamespace,
    /// Patch one condition of the cluster's status.
    Condition {
        /// The patch.
        patch: Value,
        /// The health that changes with it.
        health: Option<Report>,
    },
    /// Patch the other fields of the cluster's status.
    Status(Value),
    /// Patch the cluster's taints.
    Taints {
        /// The patch.
        patch: Value,
        /// The taints that it leaves, as kubectl shows them.
        taints: Vec<String>,
    },
}

/// Returns `true` if a program that serves clusters of this mode asks the API of the cluster for its state. One that is
/// being deleted is not asked.
pub fn is_probed(cluster: &ClusterView, sync_mode: &str) -> bool {
    cluster.spec.sync_mode == sync_mode && cluster.metadata.deletion_timestamp.is_none()
}

/// Returns the clusters that the binding has and that a scheduler takes away when they leave.
pub fn targets(binding: &Value) -> BTreeSet<String> {
    // What no policy has stays as it is, and would keep its clusters for ever.
    let is_scheduled = [
        names::POLICY_ID,
        names::CLUSTER_POLICY_ID,
        names::MANAGED_BY,
    ]
    .into_iter()
    .any(|label| binding.label(label).is_some());
    let clusters = binding.pointer("/spec/clusters").and_then(Value::as_array);
    let names = clusters.filter(|_| is_scheduled).into_iter().flatten();
    let names = names.filter_map(|cluster| cluster.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

/// Returns what has to be written, first things first. None needs another, but each is of the version of the
/// cluster at hand: after one has been taken, decide anew.
pub fn steps(situation: &Situation<'_>) -> Vec<ClusterWrite> {
    let cluster = situation.cluster;
    if cluster.is_deleting() {
        return leave(situation).into_iter().collect();
    }
    let mut steps = Vec::new();
    let finalizers = list(&cluster["metadata"]["finalizers"]);
    if !finalizers.iter().any(|name| name == FINALIZER) {
        let all: Vec<_> = finalizers
            .iter()
            .cloned()
            .chain([json!(FINALIZER)])
            .collect();
        steps.push(ClusterWrite::Finalizers(finalizers_patch(cluster, &all)));
    }
    steps.extend(namespace(situation));
    if cluster["spec"]["syncMode"] == PUSH
        && let Some(observed) = situation.observed
    {
        steps.extend(status(cluster, observed, situation.now));
    }
    if cluster["spec"]["syncMode"] == PULL
        && let Some(report) = silence(condition(cluster, READY), situation.silent_for)
        && let Some(patch) = condition_patch(cluster, READY, &report, situation.now)
    {
        let health = Some(report);
        steps.push(ClusterWrite::Condition { patch, health });
    }
    steps.extend(taint(situation));
    steps
}

/// Returns the next write for a cluster that is being deleted.
fn leave(situation: &Situation<'_>) -> Option<ClusterWrite> {
    let cluster = situation.cluster;
    let finalizers = list(&cluster["metadata"]["finalizers"]);
    // Without our finalizer, what it stands for has been done.
    if !finalizers.iter().any(|name| name == FINALIZER) {
        return None;
    }
    match situation.namespace {
        Some(ExecutionNamespace {
            is_deleting: false, ..
        }) => Some(ClusterWrite::DeleteNamespace),
        // Its Works are given up, and bindings leave the cluster: each wakes us.
        Some(_) => None,
        None if situation.is_targeted => None,
        None => {
            let rest: Vec<_> = finalizers
                .iter()
                .filter(|name| *name != FINALIZER)
                .cloned()
                .collect();
            Some(ClusterWrite::Finalizers(finalizers_patch(cluster, &rest)))
        }
    }
}

fn finalizers_patch(cluster: &Value, finalizers: &[Value]) -> Value {
    let finalizers = json!({ "metadata": { "finalizers": finalizers } });
    guarded(Some(cluster.resource_version()), finalizers)
}

fn namespace(situation: &Situation<'_>) -> Option<ClusterWrite> {
    match situation.namespace {
        None => {
            let cluster = situation.cluster.name();
            let metadata = ObjectMeta {
                name: Some(execution_namespace(cluster)),
                labels: Some([(SYSTEM.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            };
            Some(ClusterWrite::CreateNamespace(Box::new(Namespace {
                metadata,
                ..Namespace::default()
            })))
        }
        Some(namespace) if namespace.is_labelled || namespace.is_deleting => None,
        Some(_) => {
            let labels = json!({ SYSTEM: "true" });
            Some(ClusterWrite::LabelNamespace(
                json!({ "metadata": { "labels": labels } }),
            ))
        }
    }
}

/// Returns the writes that bring the status of a cluster up to what was observed, in the order of [`steps`].
pub fn status(cluster: &Value, observed: &ClusterObservation, now: Timestamp) -> Vec<ClusterWrite> {
    let mut steps = Vec::new();
    if let Some(report) = &observed.ready
        && let Some(patch) = condition_patch(cluster, READY, report, now)
    {
        let changes = condition(cluster, READY)["status"] != report.status;
        let health = changes.then(|| report.clone());
        steps.push(ClusterWrite::Condition { patch, health });
    }
    // A status of any other form is written anew.
    let published = ClusterViewStatus::deserialize(&cluster["status"]).unwrap_or_default();
    let kinds = observed.served.as_ref();
    let kinds = kinds.map(|served| enablements(served, &published.api_enablements));
    let mut fields = Map::new();
    if let Some(version) = &observed.version
        && cluster["status"]["kubernetesVersion"] != **version
    {
        fields.insert("kubernetesVersion".to_owned(), json!(version));
    }
    if let Some((enabled, _)) = &kinds
        && *enabled != published.api_enablements
    {
        fields.insert("apiEnablements".to_owned(), json!(enabled));
    }
    if let Some(Capacity { nodes, resources }) = &observed.capacity {
        if published.node_summary.unwrap_or_default() != *nodes {
            fields.insert("nodeSummary".to_owned(), json!(nodes));
        }
        let published = published.resource_summary.unwrap_or_default();
        let changes = summary_changes(&published, resources);
        if !changes.is_empty() {
            fields.insert("resourceSummary".to_owned(), changes.into());
        }
    }
    if !fields.is_empty() {
        steps.push(ClusterWrite::Status(json!({ "status": fields })));
    }
    if let Some((_, complete)) = &kinds
        && let Some(patch) = condition_patch(cluster, COMPLETE_API_ENABLEMENTS, complete, now)
    {
        let health = None;
        steps.push(ClusterWrite::Condition { patch, health });
    }
    steps
}

/// Returns the condition of a raw cluster that is of this type, or null.
pub fn condition<'a>(cluster: &'a Value, kind: &str) -> &'a Value {
    let found = find(list(&cluster["status"]["conditions"]), kind);
    found.unwrap_or(&Value::Null)
}

/// Returns the patch that brings a condition into the cluster, or `None` if it is there.
fn condition_patch(cluster: &Value, kind: &str, report: &Report, now: Timestamp) -> Option<Value> {
    let Report {
        status,
        reason,
        message,
    } = report;
    let current = condition(cluster, kind);
    if current["status"] == *status
        && current["reason"] == *reason
        && current["message"] == **message
    {
        return None;
    }
    let new = json!({ "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": transition(Some(current), status, now) });
    let conditions = list(&cluster["status"]["conditions"]);
    Some(upsert_patch(
        conditions,
        new,
        Some(cluster.resource_version()),
    ))
}

/// Returns the merge patch between two summaries. Without models, nothing is said of the nodes of each.
fn summary_changes(published: &ResourceSummary, summary: &ResourceSummary) -> Map<String, Value> {
    let parts = [
        ("allocatable", &published.allocatable, &summary.allocatable),
        ("allocating", &published.allocating, &summary.allocating),
        ("allocated", &published.allocated, &summary.allocated),
    ];
    let differing = parts.into_iter().filter(|(_, old, new)| old != new);
    let amounts = differing.map(|(name, old, new)| (name.to_owned(), replacing(old, new)));
    let counts = &summary.allocatable_modelings;
    let models = (!counts.is_empty() && *counts != published.allocatable_modelings)
        .then(|| ("allocatableModelings".to_owned(), json!(counts)));
    amounts.chain(models).collect()
}

/// Returns the merge patch that turns one map into another.
fn replacing(old: &Quantities, new: &Quantities) -> Value {
    let gone = old.keys().map(|name| (name.clone(), Value::Null));
    let new = new
        .iter()
        .map(|(name, amount)| (name.clone(), json!(amount)));
    Value::Object(gone.chain(new).collect())
}

fn taint(situation: &Situation<'_>) -> Option<ClusterWrite> {
    let cluster = situation.cluster;
    let current = list(&cluster["spec"]["taints"]);
    let ready = condition(cluster, READY)["status"].as_str();
    let unready = Unready {
        lasts: situation.unready_for,
        evict_after: situation.evict_after,
    };
    let desired = with_condition_taints(current, situation.condition_taints, cluster);
    let desired = tainted(&desired, ready, unready, situation.now);
    if desired == current {
        return None;
    }
    // The list is atomic, so it must be the one that was read.
    let taints = if desired.is_empty() {
        Value::Null
    } else {
        json!(desired)
    };
    let taints = json!({ "spec": { "taints": taints } });
    let patch = guarded(Some(cluster.resource_version()), taints);
    Some(ClusterWrite::Taints {
        patch,
        taints: desired.iter().map(taints::text).collect(),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
