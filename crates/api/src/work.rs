use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient;

/// The clusters to which a resource template was scheduled.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "work.karmada.io",
    version = "v1alpha2",
    kind = "ResourceBinding",
    plural = "resourcebindings",
    shortname = "rb",
    category = "karmada-io",
    namespaced,
    status = "ResourceBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The clusters that a resource was scheduled to, with the fields karmada-rs uses. Karmada has its own definition of this kind: install this one on a plain API server only."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ResourceBindingSpec {
    /// The resource that is bound.
    pub resource: ObjectReference,
    /// The clusters to which it was scheduled.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters: Option<Vec<TargetCluster>>,
    /// The bindings of other resources that depend on it, with their clusters.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub required_by: Option<Vec<BindingSnapshot>>,
}

/// The resource that a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ObjectReference {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A cluster to which a resource was scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TargetCluster {
    /// The cluster's name.
    pub name: String,
}

/// The clusters of another binding that depends on this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct BindingSnapshot {
    /// The clusters it was scheduled to.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters: Option<Vec<TargetCluster>>,
}

/// The state of the binding in each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ResourceBindingStatus {
    /// One element for each cluster that has the resource, or from which it is being removed.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub aggregated_status: Option<Vec<AggregatedStatusItem>>,
}

/// The state of the binding in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AggregatedStatusItem {
    /// The cluster's name.
    pub cluster_name: String,
    /// True if the resource was written to the cluster.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied: Option<bool>,
}
