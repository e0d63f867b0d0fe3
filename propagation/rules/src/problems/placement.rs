//! The problems of a placement.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Toleration;
use karmada_api::Placement;
use karmada_api::placement::{
    ClusterAffinityTerm, ClusterSelector, ReplicaScheduling, SpreadConstraint, WorkloadAffinity,
};
use objects::qualified_name::is_qualified;

use super::found::Found;

/// The longest name of a group of clusters.
const MAX_AFFINITY_NAME: usize = 32;

/// The fields of clusters by which a template may be spread.
const SPREAD_FIELDS: [&str; 4] = ["cluster", "region", "zone", "provider"];

/// Finds the problems of a placement.
pub(super) fn placement(found: &mut Found, placement: &Placement) {
    if placement.cluster_affinity.is_some() && !placement.cluster_affinities.is_empty() {
        found.invalid("clusterAffinities cannot co-exist with clusterAffinity");
    }
    if let Some(affinity) = &placement.cluster_affinity {
        fields(found, affinity);
    }
    groups(found, &placement.cluster_affinities);
    spread(found, &placement.spread_constraints);
    for toleration in &placement.cluster_tolerations {
        operator(found, toleration);
    }
    division(found, placement);
    let mut terms = placement.cluster_affinities.iter();
    let overflows = terms.any(|term| !term.overflow_affinities.is_empty());
    let division = placement.replica_scheduling.as_ref();
    if overflows && !division.is_some_and(divides_by_room) {
        found.invalid("overflowAffinities can only be used together with dynamic weight or aggregated scheduling");
    }
    if let Some(affinity) = &placement.workload_affinity {
        workload_affinity(found, affinity);
    }
}

fn workload_affinity(found: &mut Found, affinity: &WorkloadAffinity) {
    let terms = [&affinity.affinity, &affinity.anti_affinity];
    let keys = terms.map(|term| term.as_ref().map(|term| term.group_by_label_key.as_str()));
    for key in keys.into_iter().flatten().filter(|key| !is_qualified(key)) {
        found.invalid(format!(
            "groupByLabelKey {key:?} must be the key of a label"
        ));
    }
    if let [Some(together), Some(apart)] = keys
        && together == apart
    {
        found.invalid("affinity and antiAffinity must not use the same groupByLabelKey");
    }
}

fn groups(found: &mut Found, terms: &[ClusterAffinityTerm]) {
    let mut names = BTreeSet::new();
    for term in terms {
        let name = term.affinity_name.as_str();
        if !names.insert(name) {
            found.invalid("each affinity term in a policy must have a unique name");
        }
        affinity_name(found, name);
        fields(found, &term.affinity);
        overflow(found, term);
    }
}

fn overflow(found: &mut Found, term: &ClusterAffinityTerm) {
    let tiers = &term.overflow_affinities;
    if !tiers.is_empty() && term.affinity == ClusterSelector::default() {
        found.invalid(
            "overflowAffinities can only be used together with the inline ClusterAffinity",
        );
    }
    let mut names = BTreeSet::from([term.affinity_name.as_str()]);
    for tier in tiers {
        let name = tier.affinity_name.as_str();
        if !names.insert(name) {
            found.invalid("overflow affinity name must be unique and must not duplicate the primary group's affinityName");
        }
        affinity_name(found, name);
        fields(found, &tier.affinity);
    }
}

fn affinity_name(found: &mut Found, name: &str) {
    if name.len() > MAX_AFFINITY_NAME || !is_qualified(name) {
        found.invalid(format!(
            "affinityName {name:?} must be a qualified name of 1 to {MAX_AFFINITY_NAME} characters"
        ));
    }
}

fn fields(found: &mut Found, selector: &ClusterSelector) {
    let fields = selector.field_selector.iter();
    for requirement in fields.flat_map(|fields| &fields.match_expressions) {
        let (key, operator) = (&requirement.key, &requirement.operator);
        if !matches!(key.as_str(), "provider" | "region" | "zone") {
            found.invalid(format!(
                "unsupported key {key:?}, must be provider, region, or zone"
            ));
        }
        if !matches!(operator.as_str(), "In" | "NotIn") {
            found.invalid(format!(
                "unsupported operator {operator:?}, must be In or NotIn"
            ));
        }
    }
}

fn spread(found: &mut Found, constraints: &[SpreadConstraint]) {
    let (mut fields, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    for constraint in constraints {
        let (field, label) = (
            given(constraint.spread_by_field.as_ref()),
            given(constraint.spread_by_label.as_ref()),
        );
        if field.is_some() && label.is_some() {
            found.invalid("spreadByLabel should not co-exist with spreadByField");
        }
        let is_default = field.is_none() && label.is_none();
        if let Some(field) = field.or_else(|| is_default.then(|| "cluster".to_owned()))
            && !fields.insert(field.clone())
            && repeated.insert(field.clone())
        {
            found.invalid(format!(
                "multiple {field} spread constraints are not allowed"
            ));
        }
        groups_of(found, constraint);
    }
    if !fields.is_empty() && !fields.contains("cluster") {
        found.invalid("the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled");
    }
    for field in &fields {
        found.known("spreadByField", Some(field), &SPREAD_FIELDS);
    }
}

fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn groups_of(found: &mut Found, constraint: &SpreadConstraint) {
    let max = constraint.max_groups.unwrap_or_default();
    let min = constraint.min_groups.filter(|&min| min != 0).unwrap_or(1);
    if min < 0 {
        found.invalid("minGroups lower than 0 is not allowed");
    }
    if max < 0 {
        found.invalid("maxGroups lower than 0 is not allowed");
    }
    if max > 0 && max < min {
        found.invalid("maxGroups lower than minGroups is not allowed");
    }
}

fn operator(found: &mut Found, toleration: &Toleration) {
    let operator = toleration.operator.as_deref().unwrap_or_default();
    if !matches!(operator, "" | "Exists" | "Equal") {
        found.invalid(format!(
            "unsupported toleration operator {operator:?}, must be Exists or Equal"
        ));
    }
}

fn division(found: &mut Found, placement: &Placement) {
    let Some(division) = &placement.replica_scheduling else {
        return;
    };
    let kind = division.replica_scheduling_type.as_deref();
    let preference = division.replica_division_preference.as_deref();
    found.known("replicaSchedulingType", kind, &["Duplicated", "Divided"]);
    found.known(
        "replicaDivisionPreference",
        preference,
        &["Aggregated", "Weighted"],
    );
    let weights = division.weight_preference.as_ref();
    let mut statics = weights.iter().flat_map(|w| &w.static_weight_list);
    if statics.any(|weight| weight.weight < 1) {
        found.invalid("weight should be greater than or equal to 1");
    }
    let statics = weights.iter().flat_map(|w| &w.static_weight_list);
    for weight in statics {
        fields(found, &weight.target_cluster);
    }
    let dynamic = weights.and_then(|weights| weights.dynamic_weight.as_deref());
    found.known("dynamicWeight", dynamic, &["AvailableReplicas"]);
}

fn divides_by_room(division: &ReplicaScheduling) -> bool {
    let preference = division.replica_division_preference.as_deref();
    let weights = division.weight_preference.as_ref();
    let dynamic = weights.and_then(|weights| weights.dynamic_weight.as_deref());
    division.replica_scheduling_type.as_deref() != Some("Duplicated")
        && (preference == Some("Aggregated") || dynamic.is_some_and(|way| !way.is_empty()))
}
