//! The selection of a placement and its policy, as they were at one moment.

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binding::ClusterDecision;
use super::policy::PlacementPolicy;
use objects::condition::Condition;
use objects::resource::scoped_kind;
use objects::schema;

scoped_kind! {
    /// The policy of a placement, and the clusters that its scheduler picked by it.
    PolicySnapshot, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterSchedulingPolicySnapshot", "clusterschedulingpolicysnapshots"],
    ["SchedulingPolicySnapshot", "schedulingpolicysnapshots"],
    {
        /// The policy.
        spec: PolicySnapshotSpec,
        /// The clusters.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<PolicySnapshotStatus>,
    }
}

scoped_kind! {
    /// A part of what a placement selected.
    ResourceSnapshot, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterResourceSnapshot", "clusterresourcesnapshots"],
    ["ResourceSnapshot", "resourcesnapshots"],
    {
        /// The objects.
        spec: ResourceSnapshotSpec,
    }
}

/// The policy of a placement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySnapshotSpec {
    /// The policy; absent for every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlacementPolicy>,
    /// The hash of the policy, as the Base64 of its hexadecimal text.
    #[serde(deserialize_with = "lenient::nullable")]
    pub policy_hash: String,
}

/// The clusters that a scheduler picked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySnapshotStatus {
    /// The generation of the placement that was scheduled last.
    #[serde(
        rename = "observedCRPGeneration",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_placement_generation: Option<i64>,
    /// Whether every cluster that the policy asks for was found.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// The clusters that were picked, and some of the others, each with the reason.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub target_clusters: Vec<ClusterDecision>,
}

/// Objects that a placement selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSnapshotSpec {
    /// The objects, without what only their server knows.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(schema_with = "schema::manifests")]
    pub selected_resources: Vec<Value>,
}
