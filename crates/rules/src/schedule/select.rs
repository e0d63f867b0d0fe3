//! The clusters that are used of those that fit.

use karmada_api::ClusterView;
use karmada_api::placement::SpreadConstraint;

use super::capacity::Candidate;
use super::estimates::Estimates;
use super::facts::Facts;
use super::failure::AffinityFailure;
use super::regions::{self, Bounds, Demand, bound};
use super::strategy::{Assignment, ReplicaStrategy};
use super::tiers::Tiers;
use super::trigger;

/// Returns the clusters to use.
pub(super) fn select<'a>(
    facts: Facts<'_>,
    tiers: Tiers<'_>,
    fitting: &[&'a ClusterView],
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    let spec = facts.binding.spec;
    let candidates = fitting.iter();
    let mut candidates: Vec<_> = candidates
        .map(|cluster| {
            let candidate = Candidate::new(facts.scheduler.room, spec, cluster);
            let estimates = facts.pass.estimates;
            let bound =
                |estimates: &Estimates| estimates.bound(candidate.name, candidate.available);
            Candidate {
                tier: tiers.tier(cluster).unwrap_or_default(),
                available: estimates.map_or(candidate.available, bound),
                ..candidate
            }
        })
        .collect();
    let constraints = &facts.placement.spread_constraints;
    // Every cluster with a weight gets its part: a bound of their number would drop replicas.
    if constraints.is_empty() || matches!(facts.strategy, ReplicaStrategy::Weighted(_)) {
        return Ok(candidates);
    }
    prefer(&mut candidates);
    let replicas = spec.replicas.unwrap_or_default();
    let divides = facts.strategy.divides();
    let selected = match (by(constraints, "region"), by(constraints, "cluster")) {
        (Some(region), cluster) => {
            let bounds = Bounds::of(region, cluster);
            if let Some(kept) = kept_regions(facts, &candidates, bounds) {
                return Ok(kept);
            }
            let demand = if divides {
                Demand::Together(replicas)
            } else {
                Demand::Each(replicas)
            };
            by_region(&candidates, bounds, demand)?
        }
        (None, Some(cluster)) => {
            let needed = divides.then_some(i64::from(replicas));
            by_cluster(candidates, cluster, needed)?
        }
        (None, None) => {
            let message = "just support cluster and region spread constraint";
            return Err(AffinityFailure::error(message));
        }
    };
    if selected.is_empty() {
        return Err(AffinityFailure::error("no clusters available to schedule"));
    }
    Ok(selected)
}

/// Returns the clusters in use, if they are to stay and the bounds allow them. What is not divided stays: else it
/// would follow the room of regions, which changes all the time and wakes nothing.
fn kept_regions<'a>(
    facts: Facts<'_>,
    candidates: &[Candidate<'a>],
    bounds: Bounds,
) -> Option<Vec<Candidate<'a>>> {
    let selection = trigger::selection(facts.binding);
    if facts.strategy.divides() || selection == Assignment::Fresh {
        return None;
    }
    let targets = candidates.iter().filter(|candidate| candidate.is_target);
    let targets: Vec<_> = targets.copied().collect();
    // One of them does not fit.
    if targets.len() != facts.binding.targets().count() {
        return None;
    }
    bounds.allow(&targets, candidates).then_some(targets)
}

/// Returns the constraint whose groups are made by this field.
fn by<'a>(constraints: &'a [SpreadConstraint], field: &str) -> Option<&'a SpreadConstraint> {
    let mut constraints = constraints.iter();
    constraints.find(|constraint| groups(constraint) == Some(field))
}

/// Sorts clusters by preference: the earlier tiers first; of each, what runs already stays where it is, and the rest
/// goes where there is room.
fn prefer(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by_key(|candidate| {
        let is_new = !candidate.is_target;
        (
            candidate.tier,
            is_new,
            -candidate.capacity(),
            candidate.name,
        )
    });
}

/// Returns the first clusters within the bounds. Where these lack room for the `needed` replicas, the last
/// ones give way to the roomiest of the others.
fn by_cluster<'a>(
    mut candidates: Vec<Candidate<'a>>,
    constraint: &SpreadConstraint,
    needed: Option<i64>,
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    if candidates.len() < bound(constraint.min_groups) {
        let message = "the number of feasible clusters is less than spreadConstraint.MinGroups";
        return Err(AffinityFailure::error(message));
    }
    let count = bound(constraint.max_groups).min(candidates.len());
    let mut others = candidates.split_off(count);
    let Some(needed) = needed.filter(|_| count > 0) else {
        return Ok(candidates);
    };
    for last in (0..count).rev() {
        if capacity(&candidates) >= needed {
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
    if capacity(&candidates) >= needed {
        Ok(candidates)
    } else {
        Err(AffinityFailure::Error(format!(
            "no enough resource when selecting {count} clusters"
        )))
    }
}

fn capacity(candidates: &[Candidate<'_>]) -> i64 {
    let capacities = candidates.iter().map(Candidate::capacity);
    capacities.fold(0, i64::saturating_add)
}

/// Returns the best cluster of each region to use, and then the best of all others within the bounds.
fn by_region<'a>(
    candidates: &[Candidate<'a>],
    bounds: Bounds,
    demand: Demand,
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    if regions::names(candidates).len() < bounds.min_regions {
        let message = "the number of feasible region is less than spreadConstraint.MinGroups";
        return Err(AffinityFailure::error(message));
    }
    let regions = regions::select(candidates, bounds, demand);
    if regions.is_empty() {
        let message = "the number of clusters is less than the cluster spreadConstraint.MinGroups";
        return Err(AffinityFailure::error(message));
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
    let field = constraint.spread_by_field.as_deref().unwrap_or_default();
    let label = constraint.spread_by_label.as_deref().unwrap_or_default();
    match (field, label) {
        ("", "") => Some("cluster"),
        ("", _) => None,
        (field, _) => Some(field),
    }
}
