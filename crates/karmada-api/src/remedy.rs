//! The rules of the fleet, and the annotations that say more about them than Karmada's fields can.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::lenient;

/// The action that blocks a cluster's traffic at the load balancer.
pub const TRAFFIC_CONTROL: &str = "TrafficControl";

/// The annotation of a Remedy that is to name its actions and take none: `true`.
pub const OBSERVE_ONLY: &str = "remedy.karmada-rs.io/observe-only";

/// The annotation with the moment, in RFC 3339, from which a Remedy acts no more.
pub const EXPIRES_AT: &str = "remedy.karmada-rs.io/expires-at";

/// The annotation with conditions that a cluster must all meet, such as
/// `HealthReporterReady=False,Ready!=True`. It stands beside an empty list of matches, on which a controller
/// that does not know it never acts.
pub const WHEN: &str = "remedy.karmada-rs.io/when";

/// The annotation with the words of whoever made a Remedy about why it exists.
pub const REASON: &str = "remedy.karmada-rs.io/reason";

/// The key of the taints by which `kubectl remedy drain` empties a cluster, and the annotation of its Remedy, whose value
/// is the cluster.
pub const DRAIN: &str = "remedy.karmada-rs.io/drain";

/// The condition of a Remedy that says how the last practice run by it ended: True if all was well until its end.
pub const PRACTICED: &str = "Practiced";

/// The condition of a Remedy that is True if it is carried out as it is written.
pub const ACCEPTED: &str = "Accepted";

/// The condition of a Remedy that is True while a cluster has an action that it requires.
pub const ACTIVE: &str = "Active";

/// The clusters, the conditions that must match, and the actions that follow.
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
    printcolumn = r#"{"name":"Active", "type":"integer", "jsonPath":".status.activeClusters", "description":"The number of clusters that it acts on"}"#,
    printcolumn = r#"{"name":"Accepted", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name":"Expires", "type":"string", "jsonPath":".metadata.annotations.remedy\\.karmada-rs\\.io/expires-at"}"#,
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct RemedySpec {
    /// The clusters that this remedy covers. Absent: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.clusterNames) && size(self.clusterNames) > 0",
        "message": "without clusterNames no cluster is selected; leave clusterAffinity out to select every cluster",
    }]))]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// The actions are performed on a cluster as soon as any one of these matches it. Absent: at once. Empty: never, unless the annotation remedy.karmada-rs.io/when says when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_matches: Option<Vec<DecisionMatch>>,
    /// The actions to perform on the cluster; the only known one is `TrafficControl`. Absent or empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
}

/// A selection of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// The clusters' names. Absent or empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_names: Option<Vec<String>>,
}

/// A reason to act.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionMatch {
    /// The condition that the cluster must have. Absent: this matches nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_condition_match: Option<ClusterConditionRequirement>,
}

/// A requirement on a condition of a cluster. A cluster without the condition never matches, and neither
/// does a requirement that lacks a field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["conditionStatus", "conditionType", "operator"]))]
pub struct ClusterConditionRequirement {
    /// The condition's type, such as `ServiceDomainNameResolutionReady`.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub condition_type: String,
    /// The relation between the condition's status and conditionStatus.
    #[serde(default)]
    #[schemars(with = "Operator")]
    pub operator: Option<Operator>,
    /// The status to compare with: True, False or Unknown.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub condition_status: String,
}

/// The relation between a condition's status and the required one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Operator {
    /// The status is the required one.
    Equal,
    /// The status is any other.
    NotEqual,
}

/// The current effect of the remedy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyStatus {
    /// The generation of the spec that this status is based on.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_generation: Option<i64>,
    /// Accepted: True if the remedy is carried out as it is written; the message names what may be a mistake. Active: True while a cluster has an action that the remedy requires.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The number of clusters that the remedy acts on.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub active_clusters: Option<i64>,
    /// The names of the clusters that the remedy acts on, sorted; the first 100.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub active_cluster_names: Option<Vec<String>>,
    /// The number of clusters that --max-blocked-clusters keeps unblocked although the remedy requires a block.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub refused_clusters: Option<i64>,
    /// The names of those clusters, sorted; the first 100.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub refused_cluster_names: Option<Vec<String>>,
}
