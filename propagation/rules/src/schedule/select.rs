//! The clusters that are used of those that fit.

use karmada_api::ClusterView;
use karmada_api::placement::SpreadConstraint;
use objects::Metadata;

use super::capacity::{self, Candidate};
use super::constraint::by;
use super::facts::{Facts, named};
use super::failure::AffinityFailure;
use super::filter::closing_taint;
use super::regions::{self, Bounds, Demand, bound, most};
use super::strategy::{Assignment, ReplicaStrategy, has_static_weights, is_divided};
use super::tiers::Tiers;
use super::{sets, trigger};

/// Returns the clusters to use, in their order of preference.
pub(super) fn select<'a>(
    facts: Facts<'_>,
    tiers: Tiers<'_>,
    fitting: &[&'a ClusterView],
) -> Result<Vec<Candidate<'a>>, AffinityFailure> {
    if let Some(home) = home(facts, fitting) {
        return Ok(candidates(facts, tiers, &[home]));
    }
    let mut candidates = candidates(facts, tiers, fitting);
    if facts.strategy == ReplicaStrategy::Set {
        candidates.retain(|candidate| candidate.available > 0);
        if candidates.is_empty() {
            return Err(no_room(1));
        }
    }
    prefer(&mut candidates);
    let constraints = &facts.placement.spread_constraints;
    // Every cluster with a weight gets its part: a bound of their number would drop replicas. Those without one go along.
    let is_weighted = facts.strategy != ReplicaStrategy::Set && has_static_weights(facts.placement);
    if constraints.is_empty() || is_weighted {
        return Ok(candidates);
    }
    let replicas = facts.binding.spec.replicas.unwrap_or_default();
    let selected = match (by(constraints, "region"), by(constraints, "cluster")) {
        (Some(region), cluster) => {
            let bounds = Bounds::of(region, cluster);
            if let Some(kept) = kept_regions(facts, &candidates, bounds) {
                return Ok(kept);
            }
            // A binding that follows a workload under its policy goes to the regions of that.
            let demand = if is_divided(facts.placement) {
                Demand::Together(replicas)
            } else {
                Demand::Each(replicas)
            };
            by_region(&candidates, bounds, demand)?
        }
        (None, Some(cluster)) => {
            let needed = facts.strategy.divides().then_some(i64::from(replicas));
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

/// Returns the clusters with the room that they have.
fn candidates<'a>(
    facts: Facts<'_>,
    tiers: Tiers<'_>,
    clusters: &[&'a ClusterView],
) -> Vec<Candidate<'a>> {
    let (room, spec) = (facts.scheduler.room, facts.binding.spec);
    let candidates = clusters.iter().copied().map(|cluster| {
        let assumed = facts.pass.assumed_in(cluster.metadata.name());
        let available = match facts.strategy {
            ReplicaStrategy::Set => sets::available(room, spec, cluster, assumed),
            _ => capacity::available(room, spec, cluster, assumed),
        };
        let candidate = Candidate::new(spec, cluster, available);
        let estimates = facts.pass.estimates;
        Candidate {
            tier: tiers.tier(cluster).unwrap_or_default(),
            available: estimates.map_or(available, |all| all.bound(candidate.name, available)),
            is_closed: closing_taint(facts, cluster).is_some(),
            ..candidate
        }
    });
    candidates.collect()
}

/// Returns the cluster that has a whole set, if it is to keep it: it would follow the room of clusters otherwise.
fn home<'a>(facts: Facts<'_>, fitting: &[&'a ClusterView]) -> Option<&'a ClusterView> {
    let mut targets = facts.binding.targets();
    let target = targets.next().filter(|_| targets.next().is_none())?;
    let stays = facts.strategy == ReplicaStrategy::Set
        && sets::missing_components(facts.binding.spec, &target.name).is_empty()
        && trigger::selection(facts.binding) == Assignment::Steady;
    named(fitting, &target.name).filter(|_| stays)
}

/// Returns the clusters in use, if they are to stay and the bounds allow them. A template that is not divided stays: else it
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
    let targets = candidates.iter().filter(|candidate| candidate.is_target());
    let targets: Vec<_> = targets.copied().collect();
    // One of them does not fit.
    if targets.len() != facts.binding.targets().count() {
        return None;
    }
    bounds.allow(&targets, candidates).then_some(targets)
}

/// Sorts clusters by preference: the earlier tiers first; of each, running replicas stay where they are, and the rest
/// goes where there is room.
fn prefer(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by_key(|candidate| {
        let is_new = !candidate.is_target();
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
    let count = most(constraint.max_groups).min(candidates.len());
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
        Err(no_room(count))
    }
}

fn no_room(clusters: usize) -> AffinityFailure {
    AffinityFailure::Error(format!(
        "no enough resource when selecting {clusters} clusters"
    ))
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
