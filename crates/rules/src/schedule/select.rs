//! The clusters that are used of those that fit.

use karmada_api::placement::SpreadConstraint;
use karmada_api::{ClusterView, Placement, ResourceBindingSpec};

use super::AffinityFailure;
use super::capacity::Candidate;
use super::regions::{self, Bounds, Demand, bound};
use super::strategy::ReplicaStrategy;

/// Returns the clusters to use. With `anew`, those in use do not stay because they may.
pub(super) fn select<'a>(
    spec: &ResourceBindingSpec,
    placement: &Placement,
    strategy: ReplicaStrategy<'_>,
    fitting: &[&'a ClusterView],
    anew: bool,
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    let candidates = fitting.iter();
    let mut candidates: Vec<_> = candidates
        .map(|cluster| Candidate::new(spec, cluster))
        .collect();
    let constraints = &placement.spread_constraints;
    let by = |field| {
        constraints
            .iter()
            .find(|constraint| groups(constraint) == Some(field))
    };
    // Every cluster with a weight gets its part: a bound of their number would drop replicas.
    if constraints.is_empty() || matches!(strategy, ReplicaStrategy::Weighted(_)) {
        return Ok(candidates);
    }
    prefer(&mut candidates);
    let replicas = spec.replicas.unwrap_or_default();
    let selected = match (by("region"), by("cluster")) {
        (Some(region), cluster) => {
            // Else it would follow the room of regions, which changes all the time and wakes nothing.
            let kept = in_use(spec, &candidates).filter(|_| !anew && !strategy.divides());
            let bounds = Bounds::of(region, cluster);
            if let Some(kept) = kept.filter(|kept| bounds.allow(kept, &candidates)) {
                return Ok(kept);
            }
            let demand = if strategy.divides() {
                Demand::Together(replicas)
            } else {
                Demand::Each(replicas)
            };
            by_region(&candidates, bounds, demand)?
        }
        (None, Some(cluster)) => {
            let needed = strategy.divides().then_some(i64::from(replicas));
            by_cluster(candidates, cluster, needed)?
        }
        (None, None) => {
            return Err(AffinityFailure::Error(
                "just support cluster and region spread constraint".to_owned(),
            ));
        }
    };
    if selected.is_empty() {
        return Err(AffinityFailure::Error(
            "no clusters available to schedule".to_owned(),
        ));
    }
    Ok(selected)
}

/// Sorts clusters by preference: what runs already stays where it is, and the rest goes where there is room.
fn prefer(candidates: &mut [Candidate<'_>]) {
    candidates
        .sort_by_key(|candidate| (!candidate.is_target, -candidate.capacity(), candidate.name));
}

/// Returns the first clusters within the bounds. Where these lack room for the `needed` replicas, the last
/// ones give way to the roomiest of the others.
fn by_cluster<'a>(
    mut candidates: Vec<Candidate<'a>>,
    constraint: &SpreadConstraint,
    needed: Option<i64>,
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    if candidates.len() < bound(constraint.min_groups) {
        return Err(AffinityFailure::Error(
            "the number of feasible clusters is less than spreadConstraint.MinGroups".to_owned(),
        ));
    }
    let count = bound(constraint.max_groups).min(candidates.len());
    let mut others = candidates.split_off(count);
    let Some(needed) = needed.filter(|_| count > 0) else {
        return Ok(candidates);
    };
    let suffices = |selected: &[Candidate<'_>]| {
        let capacities = selected.iter().map(Candidate::capacity);
        capacities.fold(0, i64::saturating_add) >= needed
    };
    for last in (0..count).rev() {
        if suffices(&candidates) {
            break;
        }
        // The first of those with equal room.
        let roomiest = others.iter_mut().rev().max_by_key(|other| other.capacity());
        if let (Some(last), Some(roomiest)) = (candidates.get_mut(last), roomiest)
            && roomiest.capacity() > last.capacity()
        {
            std::mem::swap(last, roomiest);
        }
    }
    if suffices(&candidates) {
        Ok(candidates)
    } else {
        Err(AffinityFailure::Error(format!(
            "no enough resource when selecting {count} clusters"
        )))
    }
}

/// Returns the clusters in use, and `None` if one of them does not fit.
fn in_use<'a>(
    spec: &ResourceBindingSpec,
    candidates: &[Candidate<'a>],
) -> Option<Vec<Candidate<'a>>> {
    let targets = candidates.iter().filter(|candidate| candidate.is_target);
    let targets: Vec<_> = targets.copied().collect();
    (targets.len() == spec.clusters.iter().flatten().count()).then_some(targets)
}

/// Returns the best cluster of each region to use, and then the best of all others within the bounds.
fn by_region<'a>(
    candidates: &[Candidate<'a>],
    bounds: Bounds,
    demand: Demand,
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    if regions::names(candidates).len() < bounds.min_regions {
        return Err(AffinityFailure::Error(
            "the number of feasible region is less than spreadConstraint.MinGroups".to_owned(),
        ));
    }
    let regions = regions::select(candidates, bounds, demand);
    if regions.is_empty() {
        return Err(AffinityFailure::Error(
            "the number of clusters is less than the cluster spreadConstraint.MinGroups".to_owned(),
        ));
    }
    let (mut selected, mut others) = (Vec::new(), Vec::new());
    for clusters in regions {
        let mut clusters = clusters.into_iter();
        selected.extend(clusters.next());
        others.extend(clusters);
    }
    prefer(&mut others);
    others.truncate(bounds.max_clusters.saturating_sub(selected.len()));
    selected.append(&mut others);
    Ok(selected)
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
