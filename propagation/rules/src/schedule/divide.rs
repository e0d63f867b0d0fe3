//! The division of replicas among the clusters that were selected.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use karmada_api::placement::StaticWeight;
use karmada_api::{ResourceBindingSpec, TargetCluster, TargetComponent, names};

use super::capacity::Candidate;
use super::cluster_selector::selects;
use super::facts::Facts;
use super::failure::{AffinityFailure, Step};
use super::strategy::{Assignment, ReplicaStrategy};
use super::tiers::Tiers;
use super::trigger;

/// Returns the replicas of each selected cluster. Clusters that get none are left out, unless the scheduler keeps
/// them.
pub(super) fn divide(
    facts: Facts<'_>,
    tiers: Tiers<'_>,
    selected: &[Candidate<'_>],
) -> Result<Vec<TargetCluster>, AffinityFailure> {
    let spec = facts.binding.spec;
    let replicas = spec.replicas.unwrap_or_default();
    let names = selected.iter().map(|candidate| candidate.name);
    let divided = match facts.strategy {
        ReplicaStrategy::None => return Ok(names.map(|name| target(name, None)).collect()),
        ReplicaStrategy::Set => return Ok(names.map(|name| with_components(name, spec)).collect()),
        _ if tiers.overflows() => overflow(facts, replicas, selected)?,
        _ => by_strategy(facts, replicas, selected)?,
    };
    let divided = divided
        .into_iter()
        .filter(|(_, replicas)| facts.scheduler.keeps_empty || *replicas > 0);
    Ok(divided
        .map(|(name, replicas)| target(name, Some(replicas)))
        .collect())
}

fn target(name: &str, replicas: Option<i32>) -> TargetCluster {
    TargetCluster {
        name: name.to_owned(),
        replicas,
        ..TargetCluster::default()
    }
}

fn with_components(name: &str, spec: &ResourceBindingSpec) -> TargetCluster {
    let components = spec.components.iter().flatten();
    let components = components.map(|component| TargetComponent {
        name: component.name.clone(),
        replicas: component.replicas,
    });
    TargetCluster {
        components: Some(components.collect()),
        ..target(name, None)
    }
}

/// Divides replicas by the strategy.
fn by_strategy<'a>(
    facts: Facts<'_>,
    replicas: i32,
    selected: &[Candidate<'a>],
) -> Result<Vec<(&'a str, i32)>, AffinityFailure> {
    let uid = facts.binding.spec.resource.uid.as_deref();
    let uid = uid.unwrap_or_default();
    let divided = match facts.strategy {
        ReplicaStrategy::Dynamic | ReplicaStrategy::Aggregated => {
            by_room(facts, replicas, selected, uid)?
        }
        ReplicaStrategy::Weighted(weights) => webster(replicas, &votes(weights, selected), uid),
        ReplicaStrategy::Duplicated | ReplicaStrategy::None | ReplicaStrategy::Set => {
            // Their order decides which of them are left first if they are to be few.
            let names = selected.iter().map(|candidate| candidate.name);
            return Ok(names.map(|name| (name, replicas)).collect());
        }
    };
    Ok(divided.into_iter().collect())
}

/// Divides replicas by the room of the clusters.
fn by_room<'a>(
    facts: Facts<'_>,
    replicas: i32,
    selected: &[Candidate<'a>],
    uid: &str,
) -> Result<BTreeMap<&'a str, i32>, AffinityFailure> {
    let change = match trigger::assignment(facts.binding) {
        Assignment::Fresh => Change::fresh(replicas, selected),
        Assignment::Steady => Change::steady(replicas, selected),
    };
    let change = match facts.strategy {
        ReplicaStrategy::Aggregated => change.among_few(),
        _ => change,
    };
    let divided = change.divide(uid);
    divided.map_err(|room| AffinityFailure::Short(room, step(facts)))
}

fn step(facts: Facts<'_>) -> Step {
    match trigger::assignment(facts.binding) {
        Assignment::Fresh => Step::FreshScale,
        Assignment::Steady => Step::ScaleUp,
    }
}

/// Divides replicas tier by tier: each gets as many of the rest as it has room for. So the last one is the first that
/// loses some.
fn overflow<'a>(
    facts: Facts<'_>,
    replicas: i32,
    selected: &[Candidate<'a>],
) -> Result<Vec<(&'a str, i32)>, AffinityFailure> {
    let mut tiers: BTreeMap<usize, Vec<Candidate<'a>>> = BTreeMap::new();
    for candidate in selected {
        tiers.entry(candidate.tier).or_default().push(*candidate);
    }
    let mut rest = replicas;
    let mut divided = Vec::new();
    for tier in tiers.values() {
        let room = tier.iter().map(Candidate::capacity);
        let room = room.fold(0, i64::saturating_add).min(i64::from(rest));
        let part = i32::try_from(room).unwrap_or_default();
        divided.extend(by_strategy(facts, part, tier)?);
        rest -= part;
    }
    if rest > 0 {
        return Err(AffinityFailure::Overflows);
    }
    Ok(divided)
}

/// Returns the greatest weight of each cluster. Clusters without one get nothing, unless none has any.
fn votes<'a>(weights: &[StaticWeight], selected: &[Candidate<'a>]) -> BTreeMap<&'a str, i64> {
    let mut votes: BTreeMap<_, _> = selected
        .iter()
        .map(|candidate| (candidate.name, weight(weights, candidate)))
        .collect();
    if votes.values().all(|weight| *weight <= 0) {
        for weight in votes.values_mut() {
            *weight = 1;
        }
    }
    votes
}

fn weight(weights: &[StaticWeight], candidate: &Candidate<'_>) -> i64 {
    let matching = weights.iter();
    let matching = matching.filter(|weight| selects(&weight.target_cluster, candidate.cluster));
    matching.map(|weight| weight.weight).max().unwrap_or(0)
}

/// A change of the number of replicas in clusters that are bounded by their room.
#[derive(Debug)]
struct Change<'a> {
    /// The replicas that stay where they are.
    stay: BTreeMap<&'a str, i32>,
    /// The replicas to divide.
    replicas: i32,
    /// The greatest number of these that each cluster may get, in the order in which clusters are used.
    room: Vec<(&'a str, i64)>,
}

impl<'a> Change<'a> {
    /// Returns the change that divides all replicas, wherever they are.
    fn fresh(replicas: i32, selected: &[Candidate<'a>]) -> Self {
        let room = selected
            .iter()
            .map(|one| (one.name, i64::from(one.assigned) + i64::from(one.more())));
        Self::new(BTreeMap::new(), replicas, room)
    }

    /// Returns the change from the replicas of the clusters to `replicas` in all: missing ones go where there
    /// is room, and those too many leave in proportion. Of clusters with equally many the one that the binding lists
    /// first keeps its own.
    fn steady(replicas: i32, selected: &[Candidate<'a>]) -> Self {
        let assigned: i64 = selected.iter().map(|one| i64::from(one.assigned)).sum();
        let missing = i64::from(replicas) - assigned;
        if missing < 0 {
            let mut used = selected.to_vec();
            used.sort_by_key(|one| one.place);
            let room = used.iter();
            let room = room.map(|one| (one.name, i64::from(one.assigned)));
            return Self::new(BTreeMap::new(), replicas, room);
        }
        let stay = selected.iter().map(|one| (one.name, one.assigned));
        let room = selected.iter();
        // More would wait in a cluster that may be dead.
        let room = room.map(|one| (one.name, i64::from(one.more())));
        let missing = i32::try_from(missing).unwrap_or(i32::MAX);
        Self::new(stay.collect(), missing, room)
    }

    /// Returns the change within this room. Of clusters with equal room the first is used first.
    fn new(
        stay: BTreeMap<&'a str, i32>,
        replicas: i32,
        room: impl Iterator<Item = (&'a str, i64)>,
    ) -> Self {
        let mut room: Vec<_> = room.collect();
        room.sort_by_key(|&(name, room)| {
            let is_used = stay.get(name).is_some_and(|assigned| *assigned > 0);
            (!is_used, -room)
        });
        Self {
            stay,
            replicas,
            room,
        }
    }

    /// Leaves the room of as few clusters as have enough.
    fn among_few(mut self) -> Self {
        let mut sum = 0_i64;
        for (_, room) in &mut self.room {
            if sum >= i64::from(self.replicas) {
                *room = 0;
            }
            sum = sum.saturating_add(*room);
        }
        self
    }

    /// Divides the replicas in proportion to the room.
    ///
    /// # Errors
    /// Returns the room, in replicas, if it is too little.
    fn divide(self, uid: &str) -> Result<BTreeMap<&'a str, i32>, i64> {
        let sum = self
            .room
            .iter()
            .fold(0, |sum: i64, (_, room)| sum.saturating_add(*room));
        if sum < i64::from(self.replicas) {
            return Err(sum);
        }
        let room = self.room.into_iter().collect();
        let mut divided = self.stay;
        for (name, more) in webster(self.replicas, &room, uid) {
            *divided.entry(name).or_default() += more;
        }
        Ok(divided)
    }
}

/// Divides `seats` among parties in proportion to their votes by Webster's method: the next seat goes to
/// the party with the most votes per `2 × seats + 1`. Parties without votes get none.
///
/// A tie goes to the party with fewer seats, then to the first by name, or to the last by name for half
/// of all uids: templates that tie alike would otherwise all lean to the same cluster.
pub fn webster<'a>(
    seats: i32,
    votes: &BTreeMap<&'a str, i64>,
    uid: &str,
) -> BTreeMap<&'a str, i32> {
    let votes: Vec<_> = votes
        .iter()
        .map(|(name, votes)| (*name, (*votes).max(0)))
        .collect();
    let total: i128 = votes.iter().map(|(_, votes)| i128::from(*votes)).sum();
    if total == 0 || seats <= 0 {
        return votes.into_iter().map(|(name, _)| (name, 0)).collect();
    }
    let last_wins_ties = names::fnv1a_32(uid.as_bytes()) % 2 == 1;
    // The seats whose quotient is at least `total / (2 × certain)` are taken first in any case, and are
    // not more than `seats`, as rounding adds half a seat for each party. So the loop is bounded by the
    // number of parties, whatever number of replicas a user wrote.
    let parties = i128::try_from(votes.len()).unwrap_or(i128::MAX);
    let certain = i128::from(seats).saturating_sub(parties).max(0);
    let mut claims: BinaryHeap<Claim<'a>> = votes
        .into_iter()
        .map(|(name, votes)| Claim {
            votes,
            seats: (2 * i128::from(votes) * certain + total) / (2 * total),
            name,
            last_wins_ties,
        })
        .collect();
    let taken: i128 = claims.iter().map(|claim| claim.seats).sum();
    for _ in taken..i128::from(seats) {
        if let Some(mut next) = claims.peek_mut() {
            next.seats += 1;
        }
    }
    claims
        .into_iter()
        .map(|claim| (claim.name, i32::try_from(claim.seats).unwrap_or(i32::MAX)))
        .collect()
}

/// The claim of a party to the next seat; the greatest gets it.
#[derive(Debug, PartialEq, Eq)]
struct Claim<'a> {
    votes: i64,
    seats: i128,
    name: &'a str,
    last_wins_ties: bool,
}

impl Ord for Claim<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = if self.last_wins_ties {
            self.name.cmp(other.name)
        } else {
            other.name.cmp(self.name)
        };
        // Quotients are compared by cross multiplication, which is exact.
        self.votes_times(other)
            .cmp(&other.votes_times(self))
            .then(other.seats.cmp(&self.seats))
            .then(by_name)
    }
}

impl Claim<'_> {
    /// Returns the votes times the divisor of the other claim.
    fn votes_times(&self, other: &Self) -> i128 {
        i128::from(self.votes) * (2 * other.seats + 1)
    }
}

impl PartialOrd for Claim<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
