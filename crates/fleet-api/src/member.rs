//! The clusters of a fleet.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::condition::Condition;
use objects::resource::kind;

/// The state of a channel by which an agent is asked to join.
pub const JOIN: &str = "Join";
/// The state of a channel by which an agent is asked to leave.
pub const LEAVE: &str = "Leave";
/// The type of the agent that applies Works.
pub const MEMBER_AGENT: &str = "MemberAgent";

kind! {
    /// A cluster of the fleet, as its owner registered it.
    MemberCluster, "MemberCluster", "cluster.kubernetes-fleet.io", "v1beta1", "memberclusters",
    ClusterResourceScope,
    {
        /// Its agent, and its taints.
        spec: MemberClusterSpec,
        /// Its state.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<MemberClusterStatus>,
    }
}

kind! {
    /// The channel between the hub and the agent of one cluster, in the cluster's namespace.
    InternalMemberCluster, "InternalMemberCluster", "cluster.kubernetes-fleet.io", "v1beta1",
    "internalmemberclusters", NamespaceResourceScope,
    {
        /// The request to the agent.
        spec: InternalMemberClusterSpec,
        /// The report of the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<MemberClusterStatus>,
    }
}

/// Who the agent of a cluster is, and what keeps placements away from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberClusterSpec {
    /// The user or ServiceAccount of the agent on the hub.
    #[serde(deserialize_with = "lenient::nullable")]
    pub identity: Subject,
    /// The seconds between two heartbeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_period_seconds: Option<i32>,
    /// The options of its deletion. Only KubeFleet's webhook reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_options: Option<DeleteOptions>,
    /// What keeps placements away that do not tolerate it.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub taints: Vec<Taint>,
}

/// The options of the deletion of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// `Strict` or `Skip`.
    pub validation_mode: String,
}

/// A user, group or ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Subject {
    /// `ServiceAccount`, `User` or `Group`.
    pub kind: String,
    /// The API group of the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The name.
    pub name: String,
    /// The namespace of a ServiceAccount.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// The state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberClusterStatus {
    /// Whether it may join, and has.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// What its agent found out about it.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub properties: BTreeMap<String, PropertyValue>,
    /// The room that it has.
    #[serde(deserialize_with = "lenient::nullable")]
    pub resource_usage: ResourceUsage,
    /// Its namespaces, each with the Work that brought it, if its agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<BTreeMap<String, String>>,
    /// Its agents.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub agent_status: Vec<AgentStatus>,
}

/// A property of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PropertyValue {
    /// The value, a quantity.
    #[serde(deserialize_with = "lenient::nullable")]
    pub value: String,
    /// When it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
}

/// The room that a cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceUsage {
    /// All of its nodes.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub capacity: BTreeMap<String, String>,
    /// What its pods may have of that.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub allocatable: BTreeMap<String, String>,
    /// What is left of that.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub available: BTreeMap<String, String>,
    /// When it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
}

/// What an agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentStatus {
    /// `MemberAgent` for the one that applies Works.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it has joined, and is healthy.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// The last time at which it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_received_heartbeat: Option<Time>,
}

/// What an agent is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InternalMemberClusterSpec {
    /// `Join` or `Leave`.
    pub state: String,
    /// The seconds between two heartbeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_period_seconds: Option<i32>,
}
