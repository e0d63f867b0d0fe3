//! The two writes of a decision: the clusters, and then the status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::{GracefulEvictionTask, ResourceBindingStatus, TargetCluster, condition, names};
use serde_json::{Value, json};

use super::SCHEDULED;
use crate::binding_ref::BindingRef;

/// The write of a binding's clusters, and of what they were decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecWrite {
    /// The new clusters; `None` if they stay.
    pub clusters: Option<Vec<TargetCluster>>,
    /// The name of the group in use; `None` without groups.
    pub group: Option<String>,
    /// The clusters that are left gracefully from now on.
    pub evictions: Vec<GracefulEvictionTask>,
}

impl SpecWrite {
    /// Returns the operations of the JSON patch. It fails if the binding has changed since it was read:
    /// the decision is made again then.
    pub fn patch(&self, binding: BindingRef<'_>) -> Value {
        let mut operations = guarded(binding.metadata.resource_version.as_deref());
        if let Some(clusters) = &self.clusters {
            operations.push(json!({ "op": "add", "path": "/spec/clusters", "value": clusters }));
        }
        let path = "/spec/gracefulEvictionTasks";
        if !self.evictions.is_empty() && binding.spec.graceful_eviction_tasks.is_none() {
            operations.push(json!({ "op": "add", "path": path, "value": [] }));
        }
        let end = format!("{path}/-");
        let add = |task| json!({ "op": "add", "path": end, "value": task });
        operations.extend(self.evictions.iter().map(add));
        if binding.metadata.annotations.is_none() {
            operations.push(json!({ "op": "add", "path": "/metadata/annotations", "value": {} }));
        }
        let path = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
        let placement = binding.spec.placement.as_ref().map(Value::to_string);
        operations.push(json!({
            "op": "add", "path": path(names::APPLIED_PLACEMENT), "value": placement,
        }));
        let group = path(names::SCHEDULED_AFFINITY);
        if let Some(name) = &self.group {
            operations.push(json!({ "op": "add", "path": group, "value": name }));
        } else if binding.annotation(names::SCHEDULED_AFFINITY).is_some() {
            operations.push(json!({ "op": "remove", "path": group }));
        }
        Value::Array(operations)
    }
}

/// The write of a binding's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// Nothing was to be decided about a new generation.
    Observed {
        /// The name of the group in use; `None` without groups.
        group: Option<String>,
    },
    /// The binding was scheduled.
    Scheduled {
        /// The name of the group in use; `None` without groups.
        group: Option<String>,
        /// The time of scheduling.
        at: Timestamp,
    },
    /// The binding could not be scheduled.
    Failed {
        /// The reason of the condition.
        reason: &'static str,
        /// The message of the condition.
        message: String,
        /// The time of the failure.
        at: Timestamp,
    },
}

/// The message of a binding that is scheduled.
pub const SUCCESS: &str = "Binding has been scheduled successfully.";

impl StatusWrite {
    /// Returns the operations of the JSON patch of the status. `generation` and `resource_version` are
    /// those that the write of the clusters returned, if there was one: they are of what was scheduled.
    pub fn patch(
        &self,
        status: Option<&ResourceBindingStatus>,
        generation: Option<i64>,
        resource_version: Option<&str>,
    ) -> Value {
        let mut operations = guarded(resource_version);
        let mut set = |path: &str, value: Value| {
            operations.push(json!({ "op": "add", "path": path, "value": value }));
        };
        if status.is_none() {
            set("/status", json!({}));
        }
        match self {
            Self::Observed { .. } => set(GENERATION, json!(generation)),
            Self::Scheduled { at, .. } => {
                set(GENERATION, json!(generation));
                set("/status/lastScheduledTime", json!(Time(*at)));
                operations.extend(condition(status, condition::TRUE, "Success", SUCCESS, *at));
            }
            Self::Failed {
                reason,
                message,
                at,
            } => {
                operations.extend(condition(status, condition::FALSE, reason, message, *at));
                return Value::Array(operations);
            }
        }
        let mirrored = status.and_then(|status| status.scheduler_observed_affinity_name.as_ref());
        match self.group() {
            Some(group) if mirrored.map(String::as_str) != Some(group) => {
                operations.push(json!({ "op": "add", "path": GROUP, "value": group }));
            }
            None if mirrored.is_some() => {
                operations.push(json!({ "op": "remove", "path": GROUP }));
            }
            _ => {}
        }
        Value::Array(operations)
    }

    /// Returns `true` if this is a failure that the binding's condition shows already.
    pub fn is_shown(&self, binding: BindingRef<'_>) -> bool {
        match (self, binding.condition()) {
            (
                Self::Failed {
                    reason, message, ..
                },
                Some(shown),
            ) => {
                shown.status == condition::FALSE
                    && shown.reason == *reason
                    && shown.message == *message
            }
            _ => false,
        }
    }

    fn group(&self) -> Option<&str> {
        match self {
            Self::Observed { group } | Self::Scheduled { group, .. } => group.as_deref(),
            Self::Failed { .. } => None,
        }
    }
}

const GENERATION: &str = "/status/schedulerObservedGeneration";
const GROUP: &str = "/status/schedulerObservingAffinityName";

/// Returns the operation that makes the patch fail if the object has changed since it was read.
pub(super) fn guarded(resource_version: Option<&str>) -> Vec<Value> {
    let path = "/metadata/resourceVersion";
    vec![json!({ "op": "replace", "path": path, "value": resource_version })]
}

/// Returns the operations that bring the condition into the list, without touching another.
fn condition(
    status: Option<&ResourceBindingStatus>,
    value: &str,
    reason: &str,
    message: &str,
    at: Timestamp,
) -> Vec<Value> {
    let list = status.and_then(|status| status.conditions.as_ref());
    let mut elements = list.into_iter().flatten().enumerate();
    let current = elements.find(|(_, condition)| condition.type_ == SCHEDULED);
    let since = current.and_then(|(_, current)| {
        let same = current.status == value;
        current.last_transition_time.clone().filter(|_| same)
    });
    let new = json!({
        "type": SCHEDULED, "status": value, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or(Time(at)),
    });
    match (current, list) {
        (Some((index, _)), _) => {
            let path = format!("/status/conditions/{index}");
            let kind = format!("{path}/type");
            // An element that cannot be read is not counted; the test catches the shift.
            vec![
                json!({ "op": "test", "path": kind, "value": SCHEDULED }),
                json!({ "op": "replace", "path": path, "value": new }),
            ]
        }
        (None, Some(_)) => {
            vec![json!({ "op": "add", "path": "/status/conditions/-", "value": new })]
        }
        (None, None) => vec![json!({ "op": "add", "path": "/status/conditions", "value": [new] })],
    }
}
