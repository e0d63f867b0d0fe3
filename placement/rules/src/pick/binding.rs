//! The writes to the bindings of a placement.

use fleet_api::Binding;
use fleet_api::binding::{BindingSpec, BindingState, ClusterDecision};
use fleet_api::names::{BINDING_SCHEDULER_FINALIZER, PARENT_PLACEMENT, PREVIOUS_STATE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use super::facts::SchedulingFacts;
use crate::hash::of_binding;
use crate::strategy::apply_strategy;

/// Creates a binding: its cluster is picked.
pub(super) fn create(facts: &SchedulingFacts<'_>, decision: ClusterDecision) -> Write {
    let placement = facts.placement.metadata.name();
    let id = id(facts, &decision.cluster_name);
    let labels = [(PARENT_PLACEMENT.to_owned(), placement.to_owned())];
    let scope = facts.placement.scope();
    let new = Binding {
        api_version: Binding::API_VERSION.to_owned(),
        kind: Binding::kind_of(scope).to_owned(),
        metadata: ObjectMeta {
            name: Some(name(placement, &decision.cluster_name, &id)),
            namespace: facts.placement.metadata.namespace.clone(),
            labels: Some(labels.into()),
            finalizers: Some(vec![BINDING_SCHEDULER_FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: BindingSpec {
            state: BindingState::Scheduled,
            scheduling_policy_snapshot_name: facts.policy.metadata.name().to_owned(),
            target_cluster: decision.cluster_name.clone(),
            cluster_decision: decision,
            apply_strategy: Some(apply_strategy(facts.placement)),
            ..BindingSpec::default()
        },
        status: None,
    };
    Write::create("binding", &new, &scope)
}

/// Returns the name that tells a binding from those that its cluster has already. It follows from these: who decides twice before a
/// watch shows the first decision creates the same binding, and not another one.
fn id(facts: &SchedulingFacts<'_>, cluster: &str) -> String {
    let on_cluster = facts
        .bindings
        .iter()
        .filter(|binding| binding.spec.target_cluster == cluster);
    let mut before: Vec<_> = on_cluster.map(|binding| binding.metadata.uid()).collect();
    before.sort_unstable();
    of_binding(facts.placement.metadata.uid(), cluster, &before)
}

/// Returns the name of a binding, which is a DNS label: placements and clusters may have dots in theirs.
fn name(placement: &str, cluster: &str, id: &str) -> String {
    let parts = [(placement, 26), (cluster, 27), (id, 8)]
        .map(|(text, length)| text.chars().take(length).collect::<String>());
    parts.join("-").replace('.', "-")
}

/// Keeps a binding: its cluster is picked again, by a newer policy.
pub(super) fn keep(
    facts: &SchedulingFacts<'_>,
    binding: &Binding,
    decision: &ClusterDecision,
) -> Write {
    patch(binding, json!({ "spec": picked(facts, decision) }))
}

/// Restores a binding: its cluster is picked again, before it was gone.
pub(super) fn restore(
    facts: &SchedulingFacts<'_>,
    binding: &Binding,
    decision: &ClusterDecision,
) -> Write {
    let mut spec = picked(facts, decision);
    spec["state"] = json!(match binding.metadata.annotation(PREVIOUS_STATE) {
        Some("Bound") => BindingState::Bound,
        _ => BindingState::Scheduled,
    });
    let metadata = json!({ "annotations": { PREVIOUS_STATE: null } });
    patch(binding, json!({ "metadata": metadata, "spec": spec }))
}

/// Unschedules a binding, whose cluster is no longer picked: the rollout takes it away.
pub(super) fn unschedule(binding: &Binding) -> Write {
    let metadata = json!({ "annotations": { PREVIOUS_STATE: binding.spec.state } });
    let spec = json!({ "state": BindingState::Unscheduled });
    patch(binding, json!({ "metadata": metadata, "spec": spec }))
}

fn picked(facts: &SchedulingFacts<'_>, decision: &ClusterDecision) -> Value {
    let mut decision = json!(decision);
    // A merge patch keeps the fields that it leaves out.
    if decision.get("clusterScore").is_none() {
        decision["clusterScore"] = Value::Null;
    }
    json!({
        "schedulingPolicySnapshotName": facts.policy.metadata.name(),
        "clusterDecision": decision,
    })
}

fn patch(binding: &Binding, body: Value) -> Write {
    let object = ObjectRef::of(binding, &binding.scope());
    Write::merge("binding", object, body).guarded(Guard::Version)
}
