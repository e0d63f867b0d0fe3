//! The clusters of an inventory, as programs of any fleet read them: the API of SIG Multicluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::lenient;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use objects::condition::Condition;
use objects::resource::kind;

/// The label of a profile by which those of one manager are found: its name, as the spec has it.
pub const CLUSTER_MANAGER: &str = "x-k8s.io/cluster-manager";
/// The condition of a profile: True while the API of the cluster answers.
pub const CONTROL_PLANE_HEALTHY: &str = "ControlPlaneHealthy";

kind! {
    /// A cluster of an inventory.
    ClusterProfile, "ClusterProfile", "multicluster.x-k8s.io", "v1alpha1", "clusterprofiles", NamespaceResourceScope,
    {
        /// Its name, and who manages it.
        spec: ClusterProfileSpec,
        /// The facts that are known of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<ClusterProfileStatus>,
    }
}

/// The name of a cluster, and who manages it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterProfileSpec {
    /// The name as people read it.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub display_name: String,
    /// The manager; immutable.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_manager: ClusterManager,
}

/// A manager of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClusterManager {
    /// The name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
}

/// The profile of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterProfileStatus {
    /// Whether it is healthy.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// Its version.
    #[serde(deserialize_with = "lenient::nullable")]
    pub version: ClusterVersion,
    /// Its properties, each by its name.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub properties: Vec<ClusterProperty>,
    /// The ways to its API: a name, by which a reader knows how to log in there, and the cluster of a kubeconfig.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub access_providers: Vec<Value>,
    /// The same by the name that it had before.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub credential_providers: Vec<Value>,
}

/// The version of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClusterVersion {
    /// That of its Kubernetes.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub kubernetes: String,
}

/// A property of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterProperty {
    /// The name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The value, 1 to 1024 characters.
    #[serde(deserialize_with = "lenient::nullable")]
    pub value: String,
    /// When it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_observed_time: Option<Time>,
}
