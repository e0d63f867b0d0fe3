//! The two writes of a decision: the clusters, and then the status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::{
    Condition, GracefulEvictionTask, ResourceBindingStatus, TargetCluster, condition, names,
};
use objects::condition::{find, transition};
use objects::patch::JsonPatch;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use crate::binding_ref::{BindingRef, SCHEDULED};

/// The clusters that are decided for a binding, and the placement on which they were. Until they are written the next
/// decisions count them, and Events name them then.
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
    /// Returns the write to the binding, which is this object. It fails if that has changed since it was read: the decision
    /// is made again then.
    pub fn write(&self, object: ObjectRef, binding: BindingRef<'_>) -> Write {
        let wanted = self.wanted(binding);
        let write = Write::json("clusters", object, self.patch(binding));
        write.guarded(Guard::Version).bringing(wanted)
    }

    /// Returns the patch.
    pub fn patch(&self, binding: BindingRef<'_>) -> JsonPatch {
        const TASKS: [&str; 2] = ["spec", "gracefulEvictionTasks"];
        let (metadata, spec) = (binding.metadata, binding.spec);
        let mut patch = JsonPatch::default();
        if let Some(clusters) = &self.clusters {
            patch.add(["spec", "clusters"], json!(clusters));
        }
        if !self.evictions.is_empty() && spec.graceful_eviction_tasks.is_none() {
            patch.add(TASKS, json!([]));
        }
        for task in &self.evictions {
            patch.add(TASKS.into_iter().chain(["-"]), json!(task));
        }
        let placement = spec.placement.as_ref().map(Value::to_string);
        let decided_on = [
            (names::APPLIED_PLACEMENT, placement.as_deref()),
            (names::SCHEDULED_AFFINITY, self.group.as_deref()),
        ];
        patch.entries("annotations", metadata.annotations.as_ref(), decided_on);
        patch
    }

    /// Returns the effect of the write.
    fn wanted(&self, binding: BindingRef<'_>) -> Wanted {
        let patched = Wanted::patched(&self.patch(binding), &["gracefulEvictionTasks", "-"]);
        let left: Vec<_> = self
            .evictions
            .iter()
            .map(|task| &task.from_cluster)
            .collect();
        Wanted {
            // A binding of the same name that is made anew gets its clusters for the first time.
            value: json!([binding.metadata.uid, patched.value, left]),
            ..patched
        }
    }
}

/// The outcome that a binding's status is to show. The patch of it is made once the clusters are written: it names the
/// generation that they have made.
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
    /// Returns the write to a binding with this status. It is that object, as the write of the clusters has left it if there
    /// was one: that version was scheduled.
    pub fn write(&self, object: ObjectRef, status: Option<&ResourceBindingStatus>) -> Write {
        let patch = self.patch(status, object.generation);
        let write = Write::json("status", object, patch);
        write.of_status().guarded(Guard::Version)
    }

    /// Returns the patch of the status; the version that was scheduled has this generation.
    pub fn patch(
        &self,
        status: Option<&ResourceBindingStatus>,
        generation: Option<i64>,
    ) -> JsonPatch {
        let mut patch = JsonPatch::default();
        if status.is_none() {
            patch.add(["status"], json!({}));
        }
        let list = status.and_then(|status| status.conditions.as_deref());
        match self {
            Self::Observed { .. } => patch.add(GENERATION, json!(generation)),
            Self::Scheduled { at, .. } => {
                patch.add(GENERATION, json!(generation));
                patch.add(["status", "lastScheduledTime"], json!(Time(*at)));
                let new = condition(list, condition::TRUE, "Success", SUCCESS, *at);
                patch.conditions(list, &[new]);
            }
            Self::Failed {
                reason,
                message,
                at,
            } => {
                let new = condition(list, condition::FALSE, reason, message, *at);
                patch.conditions(list, &[new]);
                return patch;
            }
        }
        let mirrored = status.and_then(|status| status.scheduler_observed_affinity_name.as_ref());
        match self.group() {
            Some(group) if mirrored.map(String::as_str) != Some(group) => {
                patch.add(GROUP, group.into());
            }
            None if mirrored.is_some() => patch.remove(GROUP),
            _ => {}
        }
        patch
    }

    /// Returns `true` if this is a failure that the binding's condition shows already.
    pub fn is_shown(&self, binding: BindingRef<'_>) -> bool {
        match (self, binding.scheduled()) {
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

const GENERATION: [&str; 2] = ["status", "schedulerObservedGeneration"];
const GROUP: [&str; 2] = ["status", "schedulerObservingAffinityName"];

/// Returns the condition that takes the place of that in the list.
fn condition(
    list: Option<&[Condition]>,
    status: &str,
    reason: &str,
    message: &str,
    at: Timestamp,
) -> Condition {
    let current = find(list.unwrap_or_default(), SCHEDULED);
    Condition {
        type_: SCHEDULED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(transition(current, status, at)),
        ..Condition::default()
    }
}
