//! A placement on one cluster.

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placement::{
    ApplyStrategy, DiffedPlacement, DriftedPlacement, FailedPlacement, NamespacedName,
};
use objects::condition::Condition;
use objects::resource::scoped_kind;

scoped_kind! {
    /// A placement on one cluster.
    Binding, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterResourceBinding", "clusterresourcebindings"],
    ["ResourceBinding", "resourcebindings"],
    {
        /// The cluster, and what it gets.
        spec: BindingSpec,
        /// The state in the member.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<BindingStatus>,
    }
}

/// The cluster, and what it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingSpec {
    /// The stage that it has reached.
    #[serde(deserialize_with = "lenient::nullable")]
    pub state: BindingState,
    /// The master of the group of snapshots that the cluster gets; empty before it gets one.
    #[serde(deserialize_with = "lenient::nullable")]
    pub resource_snapshot_name: String,
    /// The policy by which the cluster was picked.
    #[serde(deserialize_with = "lenient::nullable")]
    pub scheduling_policy_snapshot_name: String,
    /// The cluster.
    #[serde(deserialize_with = "lenient::nullable")]
    pub target_cluster: String,
    /// Why the cluster was picked.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_decision: ClusterDecision,
    /// The snapshots of the cluster-scoped overrides in what the cluster gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_resource_override_snapshots: Vec<String>,
    /// The snapshots of the namespaced overrides in what the cluster gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_override_snapshots: Vec<NamespacedName>,
    /// The way in which the member's objects are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
}

/// A stage of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BindingState {
    /// Its cluster is picked, and gets nothing yet.
    #[default]
    Scheduled,
    /// Its cluster gets a snapshot.
    Bound,
    /// Its cluster is no longer picked, and keeps its objects until they may go.
    Unscheduled,
}

/// Why a cluster was picked, or was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterDecision {
    /// The cluster.
    pub cluster_name: String,
    /// True if it was picked.
    pub selected: bool,
    /// Its score, if clusters were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_score: Option<ClusterScore>,
    /// The reason.
    #[serde(deserialize_with = "lenient::nullable")]
    pub reason: String,
}

/// The score of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterScore {
    /// By what it had better have.
    pub affinity_score: i32,
    /// By the topology.
    pub priority_score: i32,
}

/// The state of a binding in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingStatus {
    /// The objects that are not as they shall be.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub failed_placements: Vec<FailedPlacement>,
    /// The objects that somebody changed in the cluster.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub drifted_placements: Vec<DriftedPlacement>,
    /// The objects that differ from what the cluster is to have.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub diffed_placements: Vec<DiffedPlacement>,
    /// The conditions.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}
