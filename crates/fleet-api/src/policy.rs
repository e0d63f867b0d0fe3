//! The choice of the clusters of a placement.

use std::collections::BTreeMap;

use k8s_openapi::api::core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The clusters that get what is placed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementPolicy {
    /// How they are picked.
    #[serde(deserialize_with = "lenient::nullable")]
    pub placement_type: PlacementType,
    /// Their names, of [`PlacementType::PickFixed`].
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_names: Vec<String>,
    /// How many, of [`PlacementType::PickN`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// What a cluster must have, and what it had better have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// The topologies over which the clusters are spread.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// The taints that a cluster may have.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<Toleration>,
}

/// How clusters are picked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub enum PlacementType {
    /// Every cluster that may be.
    #[default]
    PickAll,
    /// The best of them.
    PickN,
    /// Those named.
    PickFixed,
}

/// What clusters must have, and what they had better have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// The same, one step further down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
}

/// What clusters must have, and what they had better have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAffinity {
    /// What a cluster must have when it is picked.
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<ClusterSelector>,
    /// What makes a cluster better than others.
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub preferred: Vec<PreferredTerm>,
}

/// A selection of clusters: those that any of the terms selects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// The terms.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_selector_terms: Vec<ClusterSelectorTerm>,
}

/// A selection of clusters: those that meet every part of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelectorTerm {
    /// Their labels.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "in_order_of_go"
    )]
    pub label_selector: Option<LabelSelector>,
    /// Their properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property_selector: Option<PropertySelector>,
    /// The property by which a preference grades the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property_sorter: Option<PropertySorter>,
}

/// Requirements of properties, all of which hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PropertySelector {
    /// The requirements.
    #[serde(deserialize_with = "lenient::nullable")]
    pub match_expressions: Vec<PropertyRequirement>,
}

/// A requirement of one property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct PropertyRequirement {
    /// The property.
    pub name: String,
    /// `Gt`, `Ge`, `Eq`, `Ne`, `Lt` or `Le`.
    pub operator: String,
    /// The only quantity that it is compared with.
    #[serde(deserialize_with = "lenient::nullable")]
    pub values: Vec<String>,
}

/// A grading of clusters by a property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PropertySorter {
    /// The property.
    pub name: String,
    /// `Descending` if the greatest is the best, `Ascending` if the least is.
    pub sort_order: String,
}

/// What makes a cluster better than others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct PreferredTerm {
    /// By how much, from -100 to 100.
    pub weight: i32,
    /// The clusters.
    #[serde(deserialize_with = "lenient::nullable")]
    pub preference: ClusterSelectorTerm,
}

/// A topology over which clusters are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologySpreadConstraint {
    /// By how many clusters its domains may differ; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<i32>,
    /// The label whose values are the domains.
    pub topology_key: String,
    /// `DoNotSchedule`, or `ScheduleAnyway` if it is a preference; `DoNotSchedule` if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub when_unsatisfiable: String,
}

/// A tolerance of taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Toleration {
    /// The key of the taints; empty for every key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` or `Exists`; `Equal` if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// The value of the taints, with `Equal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The effect of the taints; empty for every effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
}

impl From<&Toleration> for core::v1::Toleration {
    fn from(toleration: &Toleration) -> Self {
        Self {
            key: Some(toleration.key.clone()),
            operator: Some(toleration.operator.clone()),
            value: Some(toleration.value.clone()),
            effect: Some(toleration.effect.clone()),
            toleration_seconds: None,
        }
    }
}

/// Writes a selector with its fields in the order of Go's type, in which k8s-openapi does not have them.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(super) fn in_order_of_go<S: Serializer>(
    selector: &Option<LabelSelector>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InOrder<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        match_labels: Option<&'a BTreeMap<String, String>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        match_expressions: &'a [LabelSelectorRequirement],
    }
    let selector = selector.as_ref();
    let in_order = selector.map(|selector| InOrder {
        match_labels: selector.match_labels.as_ref().filter(|map| !map.is_empty()),
        match_expressions: selector.match_expressions.as_deref().unwrap_or_default(),
    });
    in_order.serialize(serializer)
}
