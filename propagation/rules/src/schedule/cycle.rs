//! One scheduling cycle: of the clusters that fit, some are selected, and replicas divided among them.

use std::collections::BTreeMap;

use karmada_api::placement::ClusterAffinityTerm;
use karmada_api::{ResourceBindingSpec, TargetCluster};

use super::constraint::by;
use super::facts::Facts;
use super::failure::AffinityFailure;
use super::strategy::{Assignment, ReplicaStrategy};
use super::tiers::Tiers;
use super::{divide, filter, groups, select, trigger};

/// The clusters of a binding, and the group they are of.
pub(super) struct Decision {
    pub(super) clusters: Vec<TargetCluster>,
    pub(super) group: Option<String>,
}

/// Decides the clusters.
///
/// # Errors
/// Fails with the reason why the placement has no result, or with that of each of its groups.
pub(super) fn decide(facts: Facts<'_>) -> Result<Decision, Vec<AffinityFailure>> {
    let groups = &facts.placement.cluster_affinities;
    if groups.is_empty() {
        check(facts)?;
        let affinity = facts.placement.cluster_affinity.as_ref();
        let clusters = attempt(facts, Tiers::only(affinity));
        let clusters = clusters.map_err(|failure| vec![failure])?;
        let group = None;
        return Ok(Decision { clusters, group });
    }
    let start = match trigger::assignment(facts.binding) {
        Assignment::Fresh => 0,
        Assignment::Steady => groups::in_use(groups, facts.binding),
    };
    decide_among(facts, groups, start)
}

/// Decides the clusters by the first of these groups that fits, beginning with that at `start`.
///
/// # Errors
/// Fails with the reason of each group.
pub(super) fn decide_among(
    facts: Facts<'_>,
    groups: &[ClusterAffinityTerm],
    start: usize,
) -> Result<Decision, Vec<AffinityFailure>> {
    check(facts)?;
    let (group, clusters) =
        groups::first_fit(groups, start, |group| attempt(facts, Tiers::of(group)))?;
    let group = Some(group.affinity_name.clone());
    Ok(Decision { clusters, group })
}

/// The rounds after which clusters are final, should each change them.
const MOST_ROUNDS: usize = 10;

/// Decides the clusters of one affinity.
///
/// Regions, and tiers, are compared by the replicas in them, so that a decision may make another one better: Karmada decides
/// again after each that changes something. Divided replicas stay where they are, there too.
fn attempt(facts: Facts<'_>, tiers: Tiers<'_>) -> Result<Vec<TargetCluster>, AffinityFailure> {
    let mut clusters = attempt_once(facts, tiers)?;
    let has_regions = by(&facts.placement.spread_constraints, "region").is_some();
    if facts.strategy.divides() || !(has_regions || tiers.overflows()) {
        return Ok(clusters);
    }
    for _ in 0..MOST_ROUNDS {
        let spec = ResourceBindingSpec {
            clusters: Some(clusters.clone()),
            ..facts.binding.spec.clone()
        };
        match attempt_once(facts.with_spec(&spec), tiers) {
            Ok(better) if replicas(&better) != replicas(&clusters) => clusters = better,
            // The replicas that have found a place stay where nothing else fits any more.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(clusters)
}

fn replicas(clusters: &[TargetCluster]) -> BTreeMap<&str, Option<i32>> {
    let replicas = clusters.iter();
    let replicas = replicas.map(|cluster| (cluster.name.as_str(), cluster.replicas));
    replicas.collect()
}

fn attempt_once(facts: Facts<'_>, tiers: Tiers<'_>) -> Result<Vec<TargetCluster>, AffinityFailure> {
    let tiers = match facts.strategy {
        // A workload that needs no room has nothing to overflow.
        ReplicaStrategy::None => tiers.first(),
        _ => tiers,
    };
    let fitting = filter::fitting(facts, tiers).map_err(AffinityFailure::Unfit)?;
    let selected = select::select(facts, tiers, &fitting).map_err(AffinityFailure::of_selection)?;
    divide::divide(facts, tiers, &selected)
}

/// Checks that the placement can be decided at all.
fn check(facts: Facts<'_>) -> Result<(), Vec<AffinityFailure>> {
    // A list without a cluster is rather a fault of the API than the end of every workload.
    if facts.fleet.clusters.is_empty() {
        let message = "0/0 clusters are available: no cluster exists.";
        return Err(vec![AffinityFailure::error(message)]);
    }
    Ok(())
}
