//! The differences between clusters in placed objects, and their snapshots.

use std::fmt::Debug;

use kube::Resource;
use kube::core::ObjectMeta;
use objects::lenient;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement::ResourceSelector;
use super::policy::ClusterSelector;
use objects::resource::kind;
use objects::schema;

kind! {
    /// Changes for some clusters of cluster-scoped objects that are placed, or of all in a namespace.
    ClusterResourceOverride, "ClusterResourceOverride", "placement.kubernetes-fleet.io", "v1beta1",
    "clusterresourceoverrides", ClusterResourceScope,
    {
        /// The objects and the changes.
        spec: OverrideSpec,
    }
}

kind! {
    /// Changes for some clusters of objects of its namespace that are placed.
    ResourceOverride, "ResourceOverride", "placement.kubernetes-fleet.io", "v1beta1", "resourceoverrides",
    NamespaceResourceScope,
    {
        /// The objects and the changes.
        spec: OverrideSpec,
    }
}

kind! {
    /// A cluster-scoped override as it was at one moment.
    ClusterResourceOverrideSnapshot, "ClusterResourceOverrideSnapshot", "placement.kubernetes-fleet.io", "v1beta1",
    "clusterresourceoverridesnapshots", ClusterResourceScope,
    {
        /// The override.
        spec: OverrideSnapshotSpec,
    }
}

kind! {
    /// A namespaced override as it was at one moment.
    ResourceOverrideSnapshot, "ResourceOverrideSnapshot", "placement.kubernetes-fleet.io", "v1beta1",
    "resourceoverridesnapshots", NamespaceResourceScope,
    {
        /// The override.
        spec: OverrideSnapshotSpec,
    }
}

/// The objects that an override is about, and what differs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideSpec {
    /// The only placement that it is about; absent for every placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<OverriddenPlacement>,
    /// The objects, by name, of a cluster-scoped override. A Namespace stands for all that is in it, too.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_resource_selectors: Vec<ResourceSelector>,
    /// The objects of a namespaced override.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_selectors: Vec<NamedResource>,
    /// What differs.
    #[serde(deserialize_with = "lenient::nullable")]
    pub policy: OverridePolicy,
}

/// The placement that an override is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct OverriddenPlacement {
    /// Its name.
    pub name: String,
    /// `Cluster` for a `ClusterResourcePlacement`, or `Namespaced` for a `ResourcePlacement` in the namespace of the override;
    /// `Cluster` if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scope: String,
}

/// An object of the namespace of an override.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(default)]
pub struct NamedResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// What differs between clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverridePolicy {
    /// The rules, in the order in which they are applied.
    #[serde(deserialize_with = "lenient::nullable")]
    pub override_rules: Vec<OverrideRule>,
}

/// What is different in some clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideRule {
    /// The clusters, by their labels; absent for none, without terms for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// `JSONPatch`, or `Delete` if the clusters do not get the objects; `JSONPatch` if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub override_type: String,
    /// The changes of each object, of `JSONPatch`.
    #[serde(
        rename = "jsonPatchOverrides",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub patches: Vec<JsonPatchOverride>,
}

/// A change of one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct JsonPatchOverride {
    /// `add`, `remove` or `replace`.
    #[serde(rename = "op")]
    pub operator: String,
    /// The place of the value, as a JSON pointer (RFC 6901).
    pub path: String,
    /// The new value, in which `${MEMBER-CLUSTER-NAME}` and `${MEMBER-CLUSTER-LABEL-KEY-<key>}` stand for the name of the
    /// cluster and for one of its labels. KubeFleet writes null if there is none, and hashes it so.
    #[schemars(schema_with = "schema::any")]
    pub value: Option<Value>,
}

/// An override as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideSnapshotSpec {
    /// The override.
    #[serde(deserialize_with = "lenient::nullable")]
    pub override_spec: OverrideSpec,
    /// Its hash, as the Base64 of its hexadecimal text.
    #[serde(deserialize_with = "lenient::nullable")]
    pub override_hash: String,
}

/// An override of either scope.
pub trait Override:
    Resource<DynamicType = ()> + Clone + Debug + Default + Serialize + DeserializeOwned
{
    /// Its snapshots.
    type Snapshot: OverrideSnapshot;

    /// Returns the objects and the changes.
    fn spec(&self) -> &OverrideSpec;
}

/// A snapshot of an override of either scope.
pub trait OverrideSnapshot:
    Resource<DynamicType = ()> + Clone + Debug + Default + Serialize + DeserializeOwned
{
    /// Makes a snapshot.
    fn new(metadata: ObjectMeta, spec: OverrideSnapshotSpec) -> Self;

    /// Returns the override.
    fn spec(&self) -> &OverrideSnapshotSpec;
}

macro_rules! of_scope {
    ($kind:ident, $snapshot:ident) => {
        impl Override for $kind {
            type Snapshot = $snapshot;

            fn spec(&self) -> &OverrideSpec {
                &self.spec
            }
        }

        impl OverrideSnapshot for $snapshot {
            fn new(metadata: ObjectMeta, spec: OverrideSnapshotSpec) -> Self {
                Self {
                    api_version: Self::API_VERSION.to_owned(),
                    kind: Self::KIND.to_owned(),
                    metadata,
                    spec,
                }
            }

            fn spec(&self) -> &OverrideSnapshotSpec {
                &self.spec
            }
        }
    };
}

of_scope!(ClusterResourceOverride, ClusterResourceOverrideSnapshot);
of_scope!(ResourceOverride, ResourceOverrideSnapshot);
