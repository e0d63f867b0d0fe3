//! Staged updates of placements whose strategy is `External`: the stages, the runs through them, and approvals.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placement::{ApplyStrategy, NamespacedName};
use objects::condition::Condition;
use objects::resource::scoped_kind;

scoped_kind! {
    /// Stages in which clusters are updated, for any number of runs.
    StagedUpdateStrategy, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterStagedUpdateStrategy", "clusterstagedupdatestrategies"],
    ["StagedUpdateStrategy", "stagedupdatestrategies"],
    {
        /// The stages.
        spec: UpdateStrategySpec,
    }
}

scoped_kind! {
    /// One update of the clusters of a placement of its scope, stage by stage, to one snapshot.
    StagedUpdateRun, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterStagedUpdateRun", "clusterstagedupdateruns"],
    ["StagedUpdateRun", "stagedupdateruns"],
    {
        /// The placement, the snapshot and the stages.
        spec: UpdateRunSpec,
        /// The stages, and where each of them stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<UpdateRunStatus>,
    }
}

scoped_kind! {
    /// A run of its scope that waits for a person.
    ApprovalRequest, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterApprovalRequest", "clusterapprovalrequests"],
    ["ApprovalRequest", "approvalrequests"],
    {
        /// The run and the stage.
        spec: ApprovalRequestSpec,
        /// The answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<ApprovalRequestStatus>,
    }
}

/// The stages in which clusters are updated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct UpdateStrategySpec {
    /// The stages, in their order.
    #[serde(deserialize_with = "lenient::nullable")]
    pub stages: Vec<StageConfig>,
}

/// A stage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StageConfig {
    /// The name, unique among the stages.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// Its clusters by their labels: all if it is empty, none if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// The label by whose value, an integer, its clusters are sorted, and then by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorting_label_key: Option<String>,
    /// The most of its clusters, or the most of a hundred, that are updated at a time; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<IntOrString>,
    /// The tasks to be done after the last of its clusters, and before the next stage.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub after_stage_tasks: Vec<StageTask>,
    /// The tasks to be done before the first of its clusters.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub before_stage_tasks: Vec<StageTask>,
}

/// A task of a stage: something that it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StageTask {
    /// `TimedWait` or `Approval`.
    #[serde(rename = "type", deserialize_with = "lenient::nullable")]
    pub type_: String,
    /// The time that it waits, of `TimedWait`, in hours, minutes and seconds such as `1h30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_time: Option<String>,
}

/// The type of a task that waits for a time.
pub const TIMED_WAIT: &str = "TimedWait";
/// The type of a task that waits for a person.
pub const APPROVAL: &str = "Approval";

/// The placement and the snapshot of a run, its stages, and the state that its user wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRunSpec {
    /// The placement.
    #[serde(deserialize_with = "lenient::nullable")]
    pub placement_name: String,
    /// The index of the snapshot that the clusters get; the latest if it is absent.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub resource_snapshot_index: String,
    /// The strategy with the stages.
    #[serde(
        rename = "stagedRolloutStrategyName",
        deserialize_with = "lenient::nullable"
    )]
    pub strategy_name: String,
    /// The state that its user wants.
    #[serde(deserialize_with = "lenient::or_default")]
    pub state: RunState,
}

/// The state of a run that its user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RunState {
    /// Its stages are told, and no cluster is updated.
    #[default]
    Initialize,
    /// It goes on.
    Run,
    /// The clusters that are being updated become ready, and no other is updated.
    Stop,
}

/// How far a run has got.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRunStatus {
    /// The index of the policy by which the clusters were picked.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub policy_snapshot_index_used: String,
    /// The number of clusters that were picked.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "is_zero"
    )]
    pub policy_observed_cluster_count: i64,
    /// The index of the snapshot that the clusters get.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub resource_snapshot_index_used: String,
    /// How the objects of the placement are written.
    #[serde(rename = "appliedStrategy", skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
    /// The stages as they were.
    #[serde(
        rename = "stagedUpdateStrategySnapshot",
        skip_serializing_if = "Option::is_none"
    )]
    pub strategy: Option<UpdateStrategySpec>,
    /// Each stage.
    #[serde(
        rename = "stagesStatus",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub stages: Vec<StageStatus>,
    /// The last stage, in which the placement leaves the clusters that are no longer picked.
    #[serde(
        rename = "deletionStageStatus",
        skip_serializing_if = "Option::is_none"
    )]
    pub deletion_stage: Option<StageStatus>,
    /// Whether it has stages, goes on, and has ended well.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// How far a stage has got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StageStatus {
    /// The stage.
    #[serde(deserialize_with = "lenient::nullable")]
    pub stage_name: String,
    /// Its clusters, in the order in which they are updated.
    #[serde(deserialize_with = "lenient::nullable")]
    pub clusters: Vec<ClusterUpdate>,
    /// Its tasks after the last cluster.
    #[serde(
        rename = "afterStageTaskStatus",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub after_tasks: Vec<StageTaskStatus>,
    /// Its tasks before the first cluster.
    #[serde(
        rename = "beforeStageTaskStatus",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub before_tasks: Vec<StageTaskStatus>,
    /// When its first cluster was updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Whether it goes on, and has ended well.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// The update of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterUpdate {
    /// The cluster.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_name: String,
    /// The snapshots of the namespaced overrides in what it gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_override_snapshots: Vec<NamespacedName>,
    /// The snapshots of the cluster-scoped overrides in what it gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_resource_override_snapshots: Vec<String>,
    /// Whether it is being updated, and was.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// How far a task of a stage has got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StageTaskStatus {
    /// `TimedWait` or `Approval`.
    #[serde(rename = "type", deserialize_with = "lenient::nullable")]
    pub type_: String,
    /// The request, of `Approval`.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub approval_request_name: String,
    /// Whether it is asked for, and done.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// The stage of a run that waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalRequestSpec {
    /// The run.
    #[serde(rename = "parentStageRollout", deserialize_with = "lenient::nullable")]
    pub run: String,
    /// The stage.
    #[serde(rename = "targetStage", deserialize_with = "lenient::nullable")]
    pub stage: String,
}

/// The answer of a person, and of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalRequestStatus {
    /// Whether a person has approved it, and the controller has accepted that.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
