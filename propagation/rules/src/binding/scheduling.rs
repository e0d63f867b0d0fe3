//! The facts about a template that the scheduler needs.

use karmada_api::{PropagationSpec, WorkloadAffinityGroups};
use objects::Metadata;
use serde_json::Value;

use crate::interpret::{Component, Replicas};

/// The facts about a template that the scheduler needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Its replicas.
    pub replicas: Replicas,
    /// Its components; without replicas then.
    pub components: Vec<Component>,
    /// The groups of workloads that it belongs to; `None` if it is in none.
    pub groups: Option<WorkloadAffinityGroups>,
    /// Its priority; `None` if it has none.
    pub priority: Option<i32>,
}

/// Returns the groups of workloads that the policy and the labels of a template put it into; one without a
/// namespace is in none.
pub fn groups(template: &Value, policy: &PropagationSpec) -> Option<WorkloadAffinityGroups> {
    let affinity = policy.placement.as_ref()?.get("workloadAffinity")?;
    let groups = WorkloadAffinityGroups {
        affinity_group: group(template, affinity.get("affinity")).unwrap_or_default(),
        anti_affinity_group: group(template, affinity.get("antiAffinity")).unwrap_or_default(),
    };
    let is_in_one = groups != WorkloadAffinityGroups::default();
    (is_in_one && !template.namespace().is_empty()).then_some(groups)
}

/// Returns the group into which a term of the policy puts the template.
fn group(template: &Value, term: Option<&Value>) -> Option<String> {
    let key = term?.get("groupByLabelKey")?.as_str()?;
    let value = template.label(key)?;
    Some(format!("{key}={value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the groups of a template with these labels in a namespace, or in none.
    fn of(namespace: Option<&str>, labels: &Value) -> Value {
        let policy = serde_json::from_value(json!({ "placement": { "workloadAffinity": {
            "affinity": { "groupByLabelKey": "app" }, "antiAffinity": { "groupByLabelKey": "tier" },
        } } }));
        let metadata = json!({ "namespace": namespace, "name": "web", "labels": labels });
        json!(groups(&json!({ "metadata": metadata }), &policy.unwrap()))
    }

    /// A template is in the groups of the labels that it has. Case I91.
    #[test]
    fn labels_decide_the_groups() {
        let both = json!({ "app": "web", "tier": "", "other": "a" });
        for (namespace, labels, expected) in [
            (
                Some("shop"),
                &both,
                json!({ "affinityGroup": "app=web", "antiAffinityGroup": "tier=" }),
            ),
            (
                Some("shop"),
                &json!({ "app": "web" }),
                json!({ "affinityGroup": "app=web" }),
            ),
            (Some("shop"), &json!({ "other": "a" }), Value::Null),
            (None, &both, Value::Null),
        ] {
            assert_eq!(of(namespace, labels), expected, "{labels}");
        }
    }
}
