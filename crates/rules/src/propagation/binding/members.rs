//! The members of a binding's spec that are written whole.

use karmada_api::policy::{CONFLICT_ABORT, DEFAULT_SCHEDULER};
use karmada_api::{PropagationSpec, ResourceBindingSpec, WorkloadAffinityGroups};
use objects::Metadata;
use serde_json::{Map, Value, json};

use super::scheduling::Scheduling;
use crate::interpret::{same_components, same_requirements};

/// A member of a binding's spec.
pub(super) struct Member {
    pub(super) name: &'static str,
    /// The value; `None` for a member that must be absent.
    pub(super) wanted: Option<Value>,
    /// True if the binding has that value, or one that means the same.
    pub(super) is_current: bool,
}

/// Returns the members that belong to template and policy, compared with those of `current`.
pub(super) fn members(
    template: &Value,
    policy: &PropagationSpec,
    scheduling: &Scheduling,
    current: &ResourceBindingSpec,
) -> Vec<Member> {
    of_scheduling(template.namespace(), scheduling, current)
        .into_iter()
        .chain(of_policy(policy, current))
        .collect()
}

fn of_scheduling(
    namespace: &str,
    scheduling: &Scheduling,
    current: &ResourceBindingSpec,
) -> [Member; 5] {
    let Scheduling {
        replicas,
        components,
        groups,
        priority,
    } = scheduling;
    let needs = current.replica_requirements.as_ref();
    let ours = replicas.requirements.as_ref();
    let current_priority = current.schedule_priority.as_ref();
    let none = WorkloadAffinityGroups::default();
    [
        Member {
            name: "replicas",
            wanted: replicas.count.map(|count| json!(count)),
            is_current: replicas.count.unwrap_or_default() == current.replicas.unwrap_or_default(),
        },
        Member {
            name: "replicaRequirements",
            wanted: ours.cloned().map(|ours| completed(ours, namespace, needs)),
            is_current: same_requirements(ours, needs),
        },
        Member {
            name: "components",
            wanted: (!components.is_empty()).then(|| json!(components)),
            is_current: same_components(
                components,
                current.components.as_deref().unwrap_or_default(),
            ),
        },
        Member {
            name: "workloadAffinityGroups",
            wanted: groups.as_ref().map(|groups| json!(groups)),
            is_current: groups.as_ref().unwrap_or(&none)
                == current.workload_affinity_groups.as_ref().unwrap_or(&none),
        },
        Member {
            name: "schedulePriority",
            wanted: priority.map(|priority| json!({ "priority": priority })),
            is_current: *priority == current_priority.map(|current| current.priority),
        },
    ]
}

fn of_policy(policy: &PropagationSpec, current: &ResourceBindingSpec) -> [Member; 6] {
    // Without a placement a binding is not scheduled; a policy without one places everywhere.
    let placement = policy.placement.clone().unwrap_or_else(|| json!({}));
    let preserve = policy.preserve_resources_on_deletion;
    [
        Member {
            name: "placement",
            is_current: current.placement.as_ref().map(pruned) == Some(pruned(&placement)),
            wanted: Some(placement),
        },
        text(
            "schedulerName",
            policy.scheduler_name.as_deref(),
            current.scheduler_name.as_deref(),
            DEFAULT_SCHEDULER,
        ),
        text(
            "conflictResolution",
            policy.conflict_resolution.as_deref(),
            current.conflict_resolution.as_deref(),
            CONFLICT_ABORT,
        ),
        Member {
            name: "propagateDeps",
            wanted: policy.propagate_deps.then_some(json!(true)),
            is_current: policy.propagate_deps == current.propagate_deps.unwrap_or_default(),
        },
        Member {
            name: "failover",
            wanted: policy.failover.clone(),
            is_current: policy.failover.as_ref().map(pruned)
                == current.failover.as_ref().map(pruned),
        },
        Member {
            name: "preserveResourcesOnDeletion",
            wanted: preserve.map(|preserve| json!(preserve)),
            // An explicit `false` counts: two referrers that say it and `true` are in conflict.
            is_current: preserve == current.preserve_resources_on_deletion
                || (preserve.is_none() && current.preserve_resources_on_deletion == Some(false)),
        },
    ]
}

/// Returns a text whose absence means `default`. Who attaches a binding writes defaults, and nobody must
/// fight about them.
fn text(name: &'static str, wanted: Option<&str>, current: Option<&str>, default: &str) -> Member {
    let wanted = wanted.filter(|text| !text.is_empty());
    let current = current.filter(|text| !text.is_empty());
    Member {
        name,
        wanted: wanted.map(|text| json!(text)),
        is_current: wanted.unwrap_or(default) == current.unwrap_or(default),
    }
}

/// Returns the requirements with the namespace whose quota estimators heed, and with the class that a feature of
/// Karmada adds where the template's kind does not tell it.
fn completed(mut requirements: Value, namespace: &str, current: Option<&Value>) -> Value {
    const CLASS: &str = "priorityClassName";
    let class = current.and_then(|current| current.get(CLASS));
    let namespace = Some(json!(namespace)).filter(|_| !namespace.is_empty());
    for (name, value) in [("namespace", namespace), (CLASS, class.cloned())] {
        if let (Some(value), Some(requirements)) = (value, requirements.as_object_mut()) {
            requirements.entry(name).or_insert(value);
        }
    }
    requirements
}

/// Returns the value without nulls and empty lists, which Karmada leaves out when it copies a policy.
fn pruned(value: &Value) -> Value {
    let has_content =
        |field: &Value| !field.is_null() && field.as_array().is_none_or(|list| !list.is_empty());
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| has_content(field))
            .map(|(name, field)| (name.clone(), pruned(field)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.iter().map(pruned).collect(),
        other => other.clone(),
    }
}
