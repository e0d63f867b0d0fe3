//! Evictions of placements from clusters, and the budgets that limit them.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::condition::Condition;
use objects::resource::kind;

kind! {
    /// An attempt, made once, to take a placement from a cluster.
    ClusterResourcePlacementEviction, "ClusterResourcePlacementEviction",
    "placement.kubernetes-fleet.io", "v1beta1", "clusterresourceplacementevictions",
    ClusterResourceScope,
    {
        /// The placement and the cluster.
        spec: EvictionSpec,
        /// Its outcome.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<EvictionStatus>,
    }
}

kind! {
    /// How many clusters the placement of the same name may lose to evictions at a time.
    ClusterResourcePlacementDisruptionBudget, "ClusterResourcePlacementDisruptionBudget",
    "placement.kubernetes-fleet.io", "v1beta1", "clusterresourceplacementdisruptionbudgets",
    ClusterResourceScope,
    {
        /// The bounds, of which one is set.
        spec: BudgetSpec,
    }
}

/// A placement and the cluster from which it is to be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionSpec {
    /// The placement.
    #[serde(deserialize_with = "lenient::nullable")]
    pub placement_name: String,
    /// The cluster.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_name: String,
}

/// What became of an eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionStatus {
    /// Whether it can be executed, and was.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// The bounds of a budget. A percentage is of the number of clusters that a policy asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetSpec {
    /// The most clusters that may be unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// The least number of clusters that must stay available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
}
