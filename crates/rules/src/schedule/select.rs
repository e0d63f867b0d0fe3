//! The clusters that are used of those that fit.

use karmada_api::placement::SpreadConstraint;
use karmada_api::{ClusterProfile, Placement, ResourceBindingSpec};

use super::Failure;
use super::strategy::ReplicaStrategy;

/// Returns the clusters to use.
pub(super) fn select<'a>(
    spec: &ResourceBindingSpec,
    placement: &Placement,
    strategy: ReplicaStrategy<'_>,
    mut fitting: Vec<&'a ClusterProfile>,
) -> Result<Vec<&'a ClusterProfile>, Failure> {
    let constraints = &placement.spread_constraints;
    let by = |field| {
        constraints
            .iter()
            .find(|constraint| groups(constraint) == Some(field))
    };
    // Every cluster with a weight gets its part: a bound of their number would drop replicas.
    if constraints.is_empty() || matches!(strategy, ReplicaStrategy::Weighted(_)) {
        return Ok(fitting);
    }
    if by("region").is_some() {
        return Err(Failure::Unsupported(
            "spread constraints by region".to_owned(),
        ));
    }
    let Some(constraint) = by("cluster") else {
        return Err(Failure::Error(
            "just support cluster and region spread constraint".to_owned(),
        ));
    };
    let bound = |groups: Option<i64>| usize::try_from(groups.unwrap_or_default()).unwrap_or(0);
    if fitting.len() < bound(constraint.min_groups) {
        return Err(Failure::Error(
            "the number of feasible clusters is less than spreadConstraint.MinGroups".to_owned(),
        ));
    }
    let name = |cluster: &ClusterProfile| cluster.metadata.name.clone().unwrap_or_default();
    let is_target = |cluster: &ClusterProfile| {
        let name = cluster.metadata.name.as_deref();
        let mut targets = spec.clusters.iter().flatten();
        targets.any(|target| Some(target.name.as_str()) == name)
    };
    // What runs already stays where it is.
    fitting.sort_by_cached_key(|cluster| (!is_target(cluster), name(cluster)));
    fitting.truncate(bound(constraint.max_groups));
    if fitting.is_empty() {
        return Err(Failure::Error(
            "no clusters available to schedule".to_owned(),
        ));
    }
    Ok(fitting)
}

/// Returns the field whose values make the groups, and `None` for those made by a label.
fn groups(constraint: &SpreadConstraint) -> Option<&str> {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    if is_set(&constraint.spread_by_field) {
        constraint.spread_by_field.as_deref()
    } else {
        (!is_set(&constraint.spread_by_label)).then_some("cluster")
    }
}
