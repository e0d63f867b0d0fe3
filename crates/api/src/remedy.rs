use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The action that takes a cluster's traffic away at the load balancer.
pub const TRAFFIC_CONTROL: &str = "TrafficControl";

/// What must be done to which clusters when one of their conditions says so.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "remedy.karmada.io",
    version = "v1alpha1",
    kind = "Remedy",
    plural = "remedies",
    category = "karmada-io",
    status = "RemedyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A rule of the fleet: which actions follow when a member cluster's condition matches.",
    printcolumn = r#"{"name":"Actions", "type":"string", "jsonPath":".spec.actions"}"#,
    printcolumn = r#"{"name":"Active", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct RemedySpec {
    /// The clusters this remedy looks at. Absent or empty: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// The actions are performed on a cluster as soon as any one of these matches it. Absent or empty: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_matches: Option<Vec<DecisionMatch>>,
    /// What to do to the cluster; the known action is `TrafficControl`. Absent or empty: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
}

/// A choice of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// The clusters' names. Absent or empty: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_names: Option<Vec<String>>,
}

/// One reason to act.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionMatch {
    /// What a condition of the cluster must be. Absent: this matches nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_condition_match: Option<ClusterConditionRequirement>,
}

/// What a condition of a cluster must be. A cluster without the condition never matches.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConditionRequirement {
    /// The condition's type, such as `ServiceDomainNameResolutionReady`.
    pub condition_type: String,
    /// How the condition's status relates to conditionStatus.
    pub operator: Operator,
    /// The status to compare with: True, False or Unknown.
    pub condition_status: String,
}

/// How a condition's status relates to the required one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Operator {
    /// It is the required one.
    Equal,
    /// It is another one.
    NotEqual,
}

/// What the remedy is doing now.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted: whether the spec can be carried out. Active: whether any cluster is acted on now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// How many clusters are acted on now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_clusters: Option<i64>,
    /// Names of the clusters acted on now, sorted; the first 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_cluster_names: Option<Vec<String>>,
}
