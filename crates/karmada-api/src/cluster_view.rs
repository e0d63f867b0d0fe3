//! A member cluster as scheduling and dispatch see it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use objects::lenient;
use objects::resource::kind;
use objects::schema;

kind! {
    /// A member cluster with the fields that scheduling and dispatch use. [`Cluster`](crate::Cluster) is
    /// the same kind with those of its health: a program keeps every cluster in memory, and most of one
    /// is the list of the kinds that it serves.
    ClusterView, "Cluster", "cluster.karmada.io", "v1alpha1", "clusters", ClusterResourceScope,
    {
        /// The access to the cluster, and what selects it.
        #[serde(deserialize_with = "lenient::nullable")]
        spec: ClusterViewSpec,
        /// The kinds it serves, its capacity and its conditions.
        #[serde(deserialize_with = "lenient::nullable")]
        status: ClusterViewStatus,
    }
}

/// The mode of a cluster into which the control plane carries manifests.
pub const PUSH: &str = "Push";
/// The mode of a cluster that fetches its manifests itself.
pub const PULL: &str = "Pull";

/// The access to a cluster, and what selects it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterViewSpec {
    /// `Push` or `Pull`: who carries manifests into the cluster, the control plane or an agent in it.
    #[serde(deserialize_with = "lenient::nullable")]
    pub sync_mode: String,
    /// The address of its API.
    #[serde(deserialize_with = "lenient::nullable")]
    pub api_endpoint: String,
    /// The Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// True if the certificate of its API is not verified.
    #[serde(
        rename = "insecureSkipTLSVerification",
        deserialize_with = "lenient::nullable"
    )]
    pub insecure_skip_tls_verification: bool,
    /// The proxy in front of its API.
    #[serde(rename = "proxyURL", skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// What each request to the proxy has.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub proxy_header: BTreeMap<String, String>,
    /// The provider.
    #[serde(deserialize_with = "lenient::or_default")]
    pub provider: String,
    /// The region.
    #[serde(deserialize_with = "lenient::or_default")]
    pub region: String,
    /// The zones.
    #[serde(deserialize_with = "lenient::or_default")]
    pub zones: Vec<String>,
    /// The taints.
    #[serde(deserialize_with = "lenient::nullable")]
    pub taints: Vec<Taint>,
    /// The models by which its nodes are counted.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_models: Vec<ResourceModel>,
}

/// A model of nodes, by what such a node has free.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ResourceModel {
    /// Its number.
    pub grade: i64,
    /// The amounts of resources that a node has free.
    #[serde(deserialize_with = "lenient::or_default")]
    pub ranges: Vec<ResourceRange>,
}

/// The amount of a resource that a node has free.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ResourceRange {
    /// The resource.
    pub name: String,
    /// The least amount.
    #[schemars(schema_with = "schema::quantity")]
    pub min: Quantity,
    /// The amount that it is below.
    #[schemars(schema_with = "schema::quantity")]
    pub max: Quantity,
}

/// The name of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The kinds that a cluster serves, its capacity and its conditions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterViewStatus {
    /// The version of its Kubernetes, such as `v1.36.1`.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub kubernetes_version: String,
    /// The kinds that it serves.
    #[serde(deserialize_with = "lenient::or_default")]
    pub api_enablements: Vec<ApiEnablement>,
    /// Its conditions.
    #[serde(deserialize_with = "lenient::or_default")]
    pub conditions: Vec<Condition>,
    /// The numbers of its nodes.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub node_summary: Option<NodeSummary>,
    /// Its capacity.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub resource_summary: Option<ResourceSummary>,
    /// The actions that the matching remedies require, sorted and unique; absent rather than empty.
    #[serde(
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub remedy_actions: Option<Vec<String>>,
}

/// The kinds of one group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiEnablement {
    /// The group and version.
    #[serde(deserialize_with = "lenient::nullable")]
    pub group_version: String,
    /// The kinds.
    #[serde(deserialize_with = "lenient::or_default")]
    pub resources: Vec<EnabledKind>,
}

/// A kind that a cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct EnabledKind {
    /// The plural name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The kind.
    #[serde(deserialize_with = "lenient::nullable")]
    pub kind: String,
}

/// The numbers of a cluster's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSummary {
    /// All.
    pub total_num: i32,
    /// Those that are ready.
    pub ready_num: i32,
}

/// Quantities of resources by their names.
pub type Quantities = BTreeMap<String, Quantity>;

/// The capacity of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ResourceSummary {
    /// Available to pods.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocatable: Quantities,
    /// Requested by pods that are not scheduled yet.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocating: Quantities,
    /// Requested by pods that are scheduled.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocated: Quantities,
    /// The nodes of each model.
    #[serde(
        rename = "allocatableModelings",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub allocatable_modelings: Vec<AllocatableModeling>,
}

/// The nodes of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct AllocatableModeling {
    /// The number of the model.
    pub grade: i64,
    /// The number of nodes.
    pub count: i64,
}

impl ClusterViewSpec {
    /// Returns `true` if the cluster's API is reached as `other`'s is.
    pub fn has_same_access(&self, other: &Self) -> bool {
        self.api_endpoint == other.api_endpoint
            && self.secret_ref == other.secret_ref
            && self.insecure_skip_tls_verification == other.insecure_skip_tls_verification
            && self.proxy_url == other.proxy_url
            && self.proxy_header == other.proxy_header
    }
}

impl ClusterView {
    /// Returns `true` if the cluster serves the kind.
    pub fn serves(&self, api_version: &str, kind: &str) -> bool {
        let mut versions = self.status.api_enablements.iter();
        versions.any(|enabled| {
            enabled.group_version == api_version
                && enabled
                    .resources
                    .iter()
                    .any(|resource| resource.kind == kind)
        })
    }
}
