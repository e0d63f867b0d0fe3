//! The writes that bring a cluster up to date, in their order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::cluster_view::{ClusterViewStatus, PULL, PUSH, Quantities, ResourceSummary};
use karmada_api::{ClusterView, execution_namespace, names};
use objects::condition::{find, transition, upsert};
use objects::condition_taint::ConditionTaint;
use objects::message::says_same;
use objects::write::{Guard, ObjectRef, Plan, Write};
use objects::{Key, Metadata};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::capacity::Capacity;
use super::condition_taints::with_condition_taints;
use super::enablements::enablements;
use super::nodes::{NodeAddresses, publish};
use super::silence::silence;
use super::taints::{self, Unready, tainted};
use super::{COMPLETE_API_ENABLEMENTS, FINALIZER, READY, Report, SYSTEM, ServedKinds};

/// The execution namespace of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionNamespace {
    /// Its uid.
    pub uid: Option<String>,
    /// True if its label marks it as one of the system's.
    pub is_labelled: bool,
    /// True while it is being deleted.
    pub is_deleting: bool,
}

/// The newest that is known from a cluster's own API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterObservation {
    /// Its health; `None` while probes contradict the published one, but not for long enough.
    pub ready: Option<Report>,
    /// Its version.
    pub version: Option<String>,
    /// The kinds that it serves, or the reason for which they are not known.
    pub served: Option<Result<Vec<ServedKinds>, String>>,
    /// Its capacity.
    pub capacity: Option<Capacity>,
    /// All its nodes.
    pub nodes: Option<Vec<NodeAddresses>>,
}

/// A cluster and the facts that decide about it.
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
    /// The slices in which its nodes are published; `None` if they are not to be.
    pub node_slices: Option<&'a [Arc<EndpointSlice>]>,
    /// The time for which nothing was heard of it, if it reports on itself.
    pub silent_for: Duration,
    /// The time for which it has been known as not ready.
    pub unready_for: Duration,
    /// The time after which workloads are to leave a cluster that is not ready; `None`: never.
    pub evict_after: Option<Duration>,
    /// The taints that clusters get for their conditions.
    pub condition_taints: &'a [ConditionTaint],
    /// The time that is written.
    pub now: Timestamp,
}

/// A change of a cluster that its users are told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// It has another health.
    Health(Report),
    /// It has an execution namespace.
    NamespaceCreated,
    /// Its execution namespace was deleted.
    NamespaceDeleted,
    /// It has these taints, as kubectl shows them.
    Taints(Vec<String>),
}

/// One write, and the change that it brings about, if it is one.
pub type Step = Plan<ClusterChange>;

/// Returns `true` if a program that serves clusters of this mode asks the API of the cluster for its state. One that is
/// being deleted is not asked.
pub fn is_probed(cluster: &ClusterView, sync_mode: &str) -> bool {
    cluster.spec.sync_mode == sync_mode && cluster.metadata.deletion_timestamp.is_none()
}

/// Returns the clusters that the binding has and that a scheduler takes away when they leave.
pub fn targets(binding: &Value) -> BTreeSet<String> {
    // A binding that no policy has stays as it is, and would keep its clusters for ever.
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

/// Returns the steps that are due, first things first. None needs another, but each is of the version of the
/// cluster at hand: after one has been taken, decide anew.
pub fn steps(situation: &Situation<'_>) -> Vec<Step> {
    let cluster = situation.cluster;
    if cluster.is_deleting() {
        return leave(situation).into_iter().collect();
    }
    let mut steps = Vec::new();
    if let Some(finalizers) = cluster.with_finalizers(&[FINALIZER]) {
        steps.push(set_finalizers(cluster, &finalizers));
    }
    steps.extend(namespace(situation));
    if cluster["spec"]["syncMode"] == PUSH
        && let Some(observed) = situation.observed
    {
        steps.extend(status(cluster, observed, situation.now));
    }
    if cluster["spec"]["syncMode"] == PULL
        && let Some(report) = silence(condition(cluster, READY), situation.silent_for)
        && let Some(write) = with_condition(cluster, READY, &report, situation.now)
    {
        steps.push(step(write, Some(ClusterChange::Health(report))));
    }
    steps.extend(taint(situation));
    steps.extend(node_slices(situation));
    steps
}

/// Returns the writes that publish the nodes of a cluster.
fn node_slices(situation: &Situation<'_>) -> Vec<Step> {
    let namespace = situation.namespace.as_ref();
    let nodes = situation.observed.and_then(|it| it.nodes.as_ref());
    let (Some(nodes), Some(published)) = (nodes, situation.node_slices) else {
        return Vec::new();
    };
    if namespace.is_none_or(|namespace| namespace.is_deleting) {
        return Vec::new();
    }
    let writes = publish(situation.cluster.name(), nodes, published);
    writes.into_iter().map(|write| step(write, None)).collect()
}

/// Returns the next write for a cluster that is being deleted.
fn leave(situation: &Situation<'_>) -> Option<Step> {
    let cluster = situation.cluster;
    // Without our finalizer, nothing is left to do.
    let rest = cluster.without_finalizers(&[FINALIZER])?;
    match &situation.namespace {
        Some(namespace) if !namespace.is_deleting => {
            // One that was made again meanwhile is another cluster's.
            let object = ObjectRef {
                uid: namespace.uid.clone(),
                ..namespace_of(cluster)
            };
            let write = Write::delete("namespace_deletion", object).guarded(Guard::Uid);
            Some(step(write, Some(ClusterChange::NamespaceDeleted)))
        }
        // Its Works are given up, and bindings leave the cluster: each wakes us.
        Some(_) => None,
        None if situation.is_targeted => None,
        None => Some(set_finalizers(cluster, &rest)),
    }
}

fn set_finalizers(cluster: &Value, finalizers: &[String]) -> Step {
    let write = Write::finalizers("cluster_finalizer", object(cluster), finalizers);
    step(write, None)
}

fn namespace(situation: &Situation<'_>) -> Option<Step> {
    match &situation.namespace {
        None => {
            let cluster = situation.cluster.name();
            let metadata = ObjectMeta {
                name: Some(execution_namespace(cluster)),
                labels: Some([(SYSTEM.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            };
            let namespace = Namespace {
                metadata,
                ..Namespace::default()
            };
            let write = Write::create("namespace", &namespace, &());
            Some(step(write, Some(ClusterChange::NamespaceCreated)))
        }
        Some(namespace) if namespace.is_labelled || namespace.is_deleting => None,
        Some(_) => {
            let labels = json!({ "metadata": { "labels": { SYSTEM: "true" } } });
            let object = namespace_of(situation.cluster);
            Some(step(Write::merge("namespace", object, labels), None))
        }
    }
}

/// Returns the writes that bring the status of a cluster up to the observation, in the order of [`steps`].
pub fn status(cluster: &Value, observed: &ClusterObservation, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(report) = &observed.ready
        && let Some(write) = with_condition(cluster, READY, report, now)
    {
        let changes = condition(cluster, READY)["status"] != report.status;
        let health = changes.then(|| ClusterChange::Health(report.clone()));
        steps.push(step(write, health));
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
        let body = json!({ "status": fields });
        let write = Write::merge("cluster_status", object(cluster), body);
        steps.push(step(write.of_status(), None));
    }
    if let Some((_, complete)) = &kinds
        && let Some(write) = with_condition(cluster, COMPLETE_API_ENABLEMENTS, complete, now)
    {
        steps.push(step(write, None));
    }
    steps
}

/// Returns the condition of a raw cluster that is of this type, or null.
pub fn condition<'a>(cluster: &'a Value, kind: &str) -> &'a Value {
    let found = find(list(&cluster["status"]["conditions"]), kind);
    found.unwrap_or(&Value::Null)
}

/// Returns the write that brings a condition into the cluster, or `None` if it is there.
fn with_condition(cluster: &Value, kind: &str, report: &Report, now: Timestamp) -> Option<Write> {
    let Report {
        status,
        reason,
        message,
    } = report;
    let current = condition(cluster, kind);
    let told = current["message"].as_str();
    if current["status"] == *status
        && current["reason"] == *reason
        && told.is_some_and(|told| says_same(told, message))
    {
        return None;
    }
    let new = json!({ "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": transition(Some(current), status, now) });
    // Raw: those of others go back as the server stores them.
    let mut conditions = list(&cluster["status"]["conditions"]).to_vec();
    upsert(&mut conditions, new);
    let body = json!({ "status": { "conditions": conditions } });
    let write = Write::merge("conditions", object(cluster), body);
    Some(write.of_status().guarded(Guard::Version))
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

fn taint(situation: &Situation<'_>) -> Option<Step> {
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
    let body = json!({ "spec": { "taints": taints } });
    let write = Write::merge("taints", object(cluster), body).guarded(Guard::Version);
    let taints = desired.iter().map(taints::text).collect();
    Some(step(write, Some(ClusterChange::Taints(taints))))
}

fn step(write: Write, change: Option<ClusterChange>) -> Step {
    Plan {
        writes: vec![write],
        events: change.into_iter().collect(),
        wake_at: None,
    }
}

fn object(cluster: &Value) -> ObjectRef {
    ObjectRef {
        version: Some(cluster.resource_version().to_owned()),
        ..ObjectRef::named::<ClusterView>(Key::cluster_scoped(cluster.name()), &())
    }
}

fn namespace_of(cluster: &Value) -> ObjectRef {
    let name = execution_namespace(cluster.name());
    ObjectRef::named::<Namespace>(Key::cluster_scoped(name), &())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
