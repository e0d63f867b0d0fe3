//! The clusters that a policy allows, and the division of replicas among them.

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::lenient;

/// The clusters to which a binding is scheduled, and the division of replicas among them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// The clusters that may be chosen; absent for every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterSelector>,
    /// Groups of clusters, of which the first that fits is used.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_affinities: Vec<ClusterAffinityTerm>,
    /// The taints that may be on a chosen cluster.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_tolerations: Vec<Toleration>,
    /// The bounds of the number of clusters or groups of clusters.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// The division of replicas; absent for all replicas in each cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// The workloads of the namespace with which a template is to be together, or apart from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

/// The workloads that are to be in the same clusters, and those that are to be in different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadAffinity {
    /// The groups of workloads that are together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<WorkloadAffinityTerm>,
    /// The groups of workloads that are apart from each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<WorkloadAffinityTerm>,
}

/// Groups of workloads: those of one have the same value of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["groupByLabelKey"]))]
pub struct WorkloadAffinityTerm {
    /// The key of the label. A template without it belongs to no group.
    pub group_by_label_key: String,
}

/// A selection of clusters: those that meet every criterion, without the excluded ones.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// Labels of the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Provider, region or zone of the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
    /// The clusters' names; absent or empty for any.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_names: Vec<String>,
    /// The names of the clusters that are not selected, whatever else selects them.
    #[serde(
        rename = "exclude",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub excluded: Vec<String>,
}

/// One of several groups of clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["affinityName"]))]
pub struct ClusterAffinityTerm {
    /// The group's name, unique in the placement.
    pub affinity_name: String,
    /// Its clusters.
    #[serde(flatten)]
    pub affinity: ClusterSelector,
    /// Further groups, each for the replicas that this one and those before lack room for.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub overflow_affinities: Vec<OverflowAffinity>,
}

/// A group of clusters that gets what another lacks room for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["affinityName"]))]
pub struct OverflowAffinity {
    /// Its name, unique in the other group, whose own it may not be.
    pub affinity_name: String,
    /// Its clusters. One that a group before has, too, belongs to that.
    #[serde(flatten)]
    pub affinity: ClusterSelector,
}

/// A selection of clusters by fields of their spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldSelector {
    /// The requirements, all of which must be met.
    #[serde(deserialize_with = "lenient::nullable")]
    pub match_expressions: Vec<FieldRequirement>,
}

/// A requirement on a field of a cluster's spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["key", "operator"]))]
pub struct FieldRequirement {
    /// `provider`, `region` or `zone`.
    pub key: String,
    /// `In` or `NotIn`.
    pub operator: String,
    /// The values.
    #[serde(deserialize_with = "lenient::nullable")]
    pub values: Vec<String>,
}

/// Bounds of the number of clusters, or of groups of clusters that have a field in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    /// `cluster`, `region`, `zone` or `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["cluster", "region", "zone", "provider"]))]
    pub spread_by_field: Option<String>,
    /// The label whose values make the groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_by_label: Option<String>,
    /// The greatest number of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<i64>,
    /// The least number of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<i64>,
}

/// The division of replicas among clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaScheduling {
    /// `Duplicated` or `Divided`, which is the default of an object that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Duplicated", "Divided"]))]
    pub replica_scheduling_type: Option<String>,
    /// `Aggregated` or `Weighted`, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Aggregated", "Weighted"]))]
    pub replica_division_preference: Option<String>,
    /// The clusters' weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<WeightPreference>,
}

/// The clusters' weights in the division of replicas.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightPreference {
    /// Fixed weights.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub static_weight_list: Vec<StaticWeight>,
    /// `AvailableReplicas` for weights by capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["AvailableReplicas"]))]
    pub dynamic_weight: Option<String>,
}

/// The weight of some clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["targetCluster", "weight"]))]
pub struct StaticWeight {
    /// The clusters.
    pub target_cluster: ClusterSelector,
    /// The weight of each, at least 1.
    #[schemars(range(min = 1))]
    pub weight: i64,
}
