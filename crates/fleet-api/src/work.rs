//! The manifests for one cluster, and in that cluster the owner of their objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::{lenient, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement::{ApplyStrategy, Difference};
use objects::condition::Condition;
use objects::resource::kind;

kind! {
    /// Manifests for one member cluster, in the namespace of that cluster on the hub.
    Work, "Work", "placement.kubernetes-fleet.io", "v1beta1", "works", NamespaceResourceScope,
    {
        /// The manifests, and how they are written.
        spec: WorkSpec,
        /// The state in the member.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<WorkStatus>,
    }
}

kind! {
    /// The owner, in a member cluster, of the objects of a Work.
    AppliedWork, "AppliedWork", "placement.kubernetes-fleet.io", "v1beta1", "appliedworks",
    ClusterResourceScope,
    {
        /// The Work.
        spec: AppliedWorkSpec,
        /// The objects.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<AppliedWorkStatus>,
    }
}

/// The manifests of a Work, and how they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkSpec {
    /// The manifests.
    #[serde(deserialize_with = "lenient::nullable")]
    pub workload: Workload,
    /// How they are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
}

/// The manifests of a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Workload {
    /// The objects as they shall be in the member.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(schema_with = "schema::manifests")]
    pub manifests: Vec<Value>,
}

/// The state of a Work's manifests in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkStatus {
    /// The conditions of the whole.
    #[serde(deserialize_with = "lenient::nullable")]
    pub conditions: Vec<Condition>,
    /// Each manifest.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub manifest_conditions: Vec<ManifestCondition>,
}

/// The state of one manifest in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestCondition {
    /// The manifest.
    #[serde(deserialize_with = "lenient::nullable")]
    pub identifier: WorkResourceIdentifier,
    /// Its conditions; none for one that is about to be applied.
    #[serde(deserialize_with = "lenient::nullable")]
    pub conditions: Vec<Condition>,
    /// What somebody changed in the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_details: Option<DriftDetails>,
    /// What differs in the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_details: Option<DiffDetails>,
}

/// What somebody changed in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DriftDetails {
    /// When the object was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// The generation of the object then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_in_member_cluster_generation: Option<i64>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_drifted_observed_time: Option<Time>,
    /// The changes.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub observed_drifts: Vec<Difference>,
}

/// What differs in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiffDetails {
    /// When the object was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// The generation of the object then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_in_member_cluster_generation: Option<i64>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_diffed_observed_time: Option<Time>,
    /// The differences.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub observed_diffs: Vec<Difference>,
}

/// The identity of a manifest in a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct WorkResourceIdentifier {
    /// Its place in the list.
    pub ordinal: i64,
    /// The API group; absent for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The kind's name in the paths of the member's API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The namespace; absent for a cluster-scoped object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// The Work of which this is the owner in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedWorkSpec {
    /// Its name.
    pub work_name: String,
    /// Its namespace on the hub.
    pub work_namespace: String,
}

/// The objects of a Work in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedWorkStatus {
    /// Each object.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub applied_resources: Vec<AppliedResource>,
}

/// An object of a Work in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct AppliedResource {
    /// The manifest that it is of.
    #[serde(flatten)]
    pub identifier: WorkResourceIdentifier,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}
