//! Which clusters have their estimators asked.

use karmada_api::ClusterView;

use super::facts::Facts;
use super::filter::misfit;
use super::groups::affinities;
use super::strategy::ReplicaStrategy;
use super::tiers::Tiers;

/// Returns `true` if the room of clusters decides which of them are used, or how many replicas each gets.
pub(super) fn needs_room(facts: Facts<'_>) -> bool {
    let has_replicas = facts.binding.spec.replicas.is_some_and(|count| count > 0);
    let mut affinities = affinities(facts.placement);
    match facts.strategy {
        ReplicaStrategy::None => false,
        ReplicaStrategy::Set => true,
        _ if affinities.any(Tiers::overflows) => has_replicas,
        ReplicaStrategy::Weighted(_) => false,
        ReplicaStrategy::Duplicated => {
            has_replicas && !facts.placement.spread_constraints.is_empty()
        }
        ReplicaStrategy::Dynamic | ReplicaStrategy::Aggregated => has_replicas,
    }
}

/// Returns `true` if the cluster fits by one of the affinities.
pub(super) fn is_candidate(facts: Facts<'_>, cluster: &ClusterView) -> bool {
    affinities(facts.placement).any(|tiers| misfit(facts, tiers, cluster).is_none())
}
