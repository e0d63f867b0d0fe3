//! The placements of users, the way of their objects to the clusters, and their state.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{PlacementPolicy, in_order_of_go};
use objects::condition::Condition;
use objects::resource::{kind, scoped_kind};

scoped_kind! {
    /// Objects for some of the clusters of a fleet: cluster-scoped ones and namespaces with all in them, or, if it is
    /// namespaced itself, some in its own namespace.
    Placement, "placement.kubernetes-fleet.io", "v1beta1",
    ["ClusterResourcePlacement", "clusterresourceplacements"],
    ["ResourcePlacement", "resourceplacements"],
    {
        /// What is placed, where, and how.
        spec: PlacementSpec,
        /// Where it stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<PlacementStatus>,
    }
}

kind! {
    /// The status of a cluster-scoped placement of the same name, for those who may read in the namespace that it places.
    ClusterResourcePlacementStatus, "ClusterResourcePlacementStatus", "placement.kubernetes-fleet.io", "v1beta1",
    "clusterresourceplacementstatuses", NamespaceResourceScope,
    {
        /// The status.
        #[serde(deserialize_with = "lenient::nullable")]
        source_status: PlacementStatus,
        /// When it was copied.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_updated_time: Option<Time>,
    }
}

/// The scope of a status that is to be read in the namespace that is placed, too.
pub const NAMESPACE_ACCESSIBLE: &str = "NamespaceAccessible";

/// What is placed, where, and how.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementSpec {
    /// What is placed: what any of these selects.
    #[serde(deserialize_with = "lenient::nullable")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// Where: absent for every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlacementPolicy>,
    /// How a change gets there.
    #[serde(deserialize_with = "lenient::nullable")]
    pub strategy: RolloutStrategy,
    /// The number of snapshots that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Who may read the status: [`NAMESPACE_ACCESSIBLE`], or those alone who may read the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reporting_scope: Option<String>,
}

/// A selection of objects of one kind: the one of a name, those with labels, or all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSelector {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name of the only object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The labels of the objects.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "in_order_of_go"
    )]
    pub label_selector: Option<LabelSelector>,
    /// How much of a namespace is selected with it; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selection_scope: String,
}

/// How a change gets to the clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// `RollingUpdate` or `External`; `RollingUpdate` if empty.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// How many clusters change at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
    /// How a member's objects are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
    /// What becomes of the objects when the placement goes. Only `Delete` is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_strategy: Option<DeleteStrategy>,
    /// Whether what members say of an object goes back to the hub's. Only `Disabled` is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_back_strategy: Option<ReportBackStrategy>,
}

/// What becomes of the objects when a placement goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteStrategy {
    /// `Delete` or `Abandon`; `Delete` if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub propagation_policy: String,
}

/// Whether what members say of an object goes back to the hub's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportBackStrategy {
    /// `Disabled` or `Mirror`; `Disabled` if empty.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// `OriginalResource` or `WorkAPI`, of `Mirror`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub destination: String,
}

/// How many clusters change at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// The most clusters, or the most of a hundred, that may be without; 25% if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// The most clusters, or the most of a hundred, beyond those wanted; 25% if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// The seconds after which an object whose availability cannot be told counts as available; 60 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable_period_seconds: Option<i32>,
}

/// How a member's objects are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplyStrategy {
    /// `PartialComparison` or `FullComparison`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comparison_option: String,
    /// `Always` or `IfNotDrifted`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub when_to_apply: String,
    /// `ClientSideApply`, `ServerSideApply` or `ReportDiff`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// True if objects may have owners beside us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_co_ownership: Option<bool>,
    /// The settings of `ServerSideApply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply_config: Option<ServerSideApplyConfig>,
    /// `Always`, `IfNoDiff` or `Never`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub when_to_take_over: String,
}

/// The settings of `ServerSideApply`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ServerSideApplyConfig {
    /// True if fields of other managers are taken from them.
    pub force: bool,
}

/// Where a placement stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// What it selects.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub selected_resources: Vec<ResourceIdentifier>,
    /// The index of the snapshot that the status is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_resource_index: String,
    /// Each cluster.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub placement_statuses: Vec<ClusterPlacementStatus>,
    /// The whole.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// The identity of an object.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(default)]
pub struct ResourceIdentifier {
    /// The API group; absent for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace; absent for a cluster-scoped object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The envelope that it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeIdentifier>,
}

/// The identity of an envelope.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(default)]
pub struct EnvelopeIdentifier {
    /// The name.
    pub name: String,
    /// The namespace; absent for a cluster-scoped one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub type_: String,
}

/// The namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct NamespacedName {
    /// The name.
    pub name: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Where a placement stands on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterPlacementStatus {
    /// The cluster; absent for one that could not be found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// The index of the snapshot that the cluster gets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_resource_index: String,
    /// The namespaced overrides in what the cluster gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub applicable_resource_overrides: Vec<NamespacedName>,
    /// The cluster-scoped overrides in what the cluster gets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub applicable_cluster_resource_overrides: Vec<String>,
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
    /// Its conditions.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// An object that is not as it shall be in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct FailedPlacement {
    /// The object.
    #[serde(flatten)]
    pub identifier: ResourceIdentifier,
    /// The condition that says why.
    #[serde(deserialize_with = "lenient::nullable")]
    pub condition: Condition,
}

/// An object that somebody changed in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DriftedPlacement {
    /// The object.
    #[serde(flatten)]
    pub identifier: ResourceIdentifier,
    /// When it was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// The generation of the object then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster_observed_generation: Option<i64>,
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

/// An object that differs in a cluster from what that is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiffedPlacement {
    /// The object.
    #[serde(flatten)]
    pub identifier: ResourceIdentifier,
    /// When it was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// The generation of the object then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster_observed_generation: Option<i64>,
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

/// A field that differs between hub and member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Difference {
    /// The field, as a JSON pointer.
    pub path: String,
    /// Its value on the hub; absent where that has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value_in_hub: String,
    /// Its value in the member; absent where that has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value_in_member: String,
}
