//! The writes to the bindings of a placement.

use fleet_api::Binding;
use fleet_api::binding::{BindingSpec, BindingState, ClusterDecision};
use fleet_api::names::{BINDING_SCHEDULER_FINALIZER, PARENT_PLACEMENT, PREVIOUS_STATE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::patch::guarded;
use serde_json::{Value, json};

use super::facts::SchedulingFacts;
use crate::hash::of_binding;
use crate::strategy::apply_strategy;

/// A write to a binding.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingWrite {
    /// Its cluster is picked.
    Create(Box<Binding>),
    /// Its cluster is picked again, by a newer policy.
    Keep {
        /// The name.
        name: String,
        /// The merge patch, guarded.
        patch: Value,
    },
    /// Its cluster is picked again, before it was gone.
    Restore {
        /// The name.
        name: String,
        /// The merge patch, guarded.
        patch: Value,
    },
    /// Its cluster is no longer picked: the rollout takes it away.
    Unschedule {
        /// The name.
        name: String,
        /// The merge patch, guarded.
        patch: Value,
    },
}

pub(super) fn create(facts: &SchedulingFacts<'_>, decision: ClusterDecision) -> BindingWrite {
    let placement = facts.placement.metadata.name();
    let id = id(facts, &decision.cluster_name);
    let labels = [(PARENT_PLACEMENT.to_owned(), placement.to_owned())];
    BindingWrite::Create(Box::new(Binding {
        api_version: Binding::API_VERSION.to_owned(),
        kind: Binding::kind_of(facts.placement.scope()).to_owned(),
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
    }))
}

/// Returns what tells a binding from those that its cluster has already. It follows from these: who decides twice before a
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
    let part = |text: &str, length| text.chars().take(length).collect::<String>();
    let name = format!(
        "{}-{}-{}",
        part(placement, 26),
        part(cluster, 27),
        part(id, 8)
    );
    name.replace('.', "-")
}

pub(super) fn keep(
    facts: &SchedulingFacts<'_>,
    binding: &Binding,
    decision: &ClusterDecision,
) -> BindingWrite {
    let (name, patch) = patch(binding, json!({ "spec": picked(facts, decision) }));
    BindingWrite::Keep { name, patch }
}

pub(super) fn restore(
    facts: &SchedulingFacts<'_>,
    binding: &Binding,
    decision: &ClusterDecision,
) -> BindingWrite {
    let mut spec = picked(facts, decision);
    spec["state"] = json!(match binding.metadata.annotation(PREVIOUS_STATE) {
        Some("Bound") => BindingState::Bound,
        _ => BindingState::Scheduled,
    });
    let metadata = json!({ "annotations": { PREVIOUS_STATE: null } });
    let (name, patch) = patch(binding, json!({ "metadata": metadata, "spec": spec }));
    BindingWrite::Restore { name, patch }
}

pub(super) fn unschedule(binding: &Binding) -> BindingWrite {
    let metadata = json!({ "annotations": { PREVIOUS_STATE: binding.spec.state } });
    let spec = json!({ "state": BindingState::Unscheduled });
    let (name, patch) = patch(binding, json!({ "metadata": metadata, "spec": spec }));
    BindingWrite::Unschedule { name, patch }
}

fn picked(facts: &SchedulingFacts<'_>, decision: &ClusterDecision) -> Value {
    let mut decision = json!(decision);
    // A merge patch keeps what is left out.
    if decision.get("clusterScore").is_none() {
        decision["clusterScore"] = Value::Null;
    }
    json!({
        "schedulingPolicySnapshotName": facts.policy.metadata.name(),
        "clusterDecision": decision,
    })
}

fn patch(binding: &Binding, body: Value) -> (String, Value) {
    let version = binding.metadata.resource_version();
    (
        binding.metadata.name().to_owned(),
        guarded(Some(version), body),
    )
}
