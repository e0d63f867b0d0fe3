//! The division of replicas among the clusters that were selected.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use karmada_api::placement::StaticWeight;
use karmada_api::{ResourceBindingSpec, TargetCluster, names};

use super::capacity::Candidate;
use super::strategy::ReplicaStrategy;
use super::{AffinityFailure, selects};

/// Returns the replicas of each selected cluster. Clusters that get none are left out, unless
/// `keep_empty`. With `anew`, replicas that are divided by room do not stay where they are.
pub(super) fn divide(
    spec: &ResourceBindingSpec,
    strategy: ReplicaStrategy<'_>,
    selected: &[Candidate<'_>],
    anew: bool,
    keep_empty: bool,
) -> Result<Vec<TargetCluster>, AffinityFailure> {
    let replicas = spec.replicas.unwrap_or_default();
    let uid = spec.resource.uid.as_deref().unwrap_or_default();
    let names = selected.iter().map(|candidate| candidate.name);
    let divided: BTreeMap<&str, i32> = match strategy {
        ReplicaStrategy::None => {
            let bare = |name: &str| TargetCluster {
                name: name.to_owned(),
                replicas: None,
            };
            return Ok(names.map(bare).collect());
        }
        ReplicaStrategy::Duplicated => names.map(|name| (name, replicas)).collect(),
        ReplicaStrategy::Weighted(weights) => webster(replicas, &votes(weights, selected), uid),
        ReplicaStrategy::Dynamic | ReplicaStrategy::Aggregated => {
            let change = Change::new(replicas, selected, anew);
            let mut divided = change.divide(strategy == ReplicaStrategy::Aggregated, uid)?;
            for name in names {
                divided.entry(name).or_default();
            }
            divided
        }
    };
    let target = |(name, replicas): (&str, i32)| TargetCluster {
        name: name.to_owned(),
        replicas: Some(replicas),
    };
    Ok(divided
        .into_iter()
        .filter(|(_, replicas)| keep_empty || *replicas > 0)
        .map(target)
        .collect())
}

/// Returns the greatest weight of each cluster. Clusters without one get nothing, unless none has any.
fn votes<'a>(weights: &[StaticWeight], selected: &[Candidate<'a>]) -> BTreeMap<&'a str, i64> {
    let weight = |candidate: &Candidate<'_>| {
        let matching = weights.iter();
        let matching = matching.filter(|weight| selects(&weight.target_cluster, candidate.cluster));
        matching.map(|weight| weight.weight).max().unwrap_or(0)
    };
    let mut votes: BTreeMap<_, _> = selected
        .iter()
        .map(|candidate| (candidate.name, weight(candidate)))
        .collect();
    if votes.values().all(|weight| *weight <= 0) {
        for weight in votes.values_mut() {
            *weight = 1;
        }
    }
    votes
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
    /// Returns the change from what the clusters have to `replicas` in all: what is missing goes where there
    /// is room, and what is too much leaves in proportion. With `anew`, all replicas are divided.
    fn new(replicas: i32, selected: &[Candidate<'a>], anew: bool) -> Self {
        let had = || selected.iter().map(|one| (one.name, one.assigned));
        let sum: i64 = had().map(|(_, assigned)| i64::from(assigned)).sum();
        let missing = i64::from(replicas) - sum;
        let (stay, replicas, mut room) = if anew {
            let room = selected.iter().map(|one| (one.name, one.capacity()));
            (BTreeMap::new(), replicas, room.collect::<Vec<_>>())
        } else if missing < 0 {
            let room = had().map(|(name, assigned)| (name, i64::from(assigned)));
            (BTreeMap::new(), replicas, room.collect())
        } else {
            let room = selected
                .iter()
                .map(|one| (one.name, i64::from(one.available)));
            let missing = i32::try_from(missing).unwrap_or(i32::MAX);
            (had().collect(), missing, room.collect())
        };
        let has_some = |name: &str| stay.get(name).is_some_and(|assigned| *assigned > 0);
        room.sort_by_key(|&(name, room)| (!has_some(name), -room, name));
        Self {
            stay,
            replicas,
            room,
        }
    }

    /// Divides the replicas in proportion to the room of all clusters, or of as few as have enough.
    fn divide(
        self,
        aggregated: bool,
        uid: &str,
    ) -> Result<BTreeMap<&'a str, i32>, AffinityFailure> {
        let mut sum = 0_i64;
        let mut used = BTreeMap::new();
        for (name, room) in self.room {
            if aggregated && sum >= i64::from(self.replicas) {
                break;
            }
            sum = sum.saturating_add(room);
            used.insert(name, room);
        }
        if sum < i64::from(self.replicas) {
            return Err(AffinityFailure::Short(sum));
        }
        let mut divided = self.stay;
        for (name, more) in webster(self.replicas, &used, uid) {
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
    let votes = || votes.iter().map(|(name, votes)| (*name, (*votes).max(0)));
    let total: i128 = votes().map(|(_, votes)| i128::from(votes)).sum();
    if total == 0 || seats <= 0 {
        return votes().map(|(name, _)| (name, 0)).collect();
    }
    let last_wins_ties = names::fnv1a_32(uid.as_bytes()) % 2 == 1;
    // The seats whose quotient is at least `total / (2 × certain)` are taken first in any case, and are
    // not more than `seats`, as rounding adds half a seat for each party. So the loop is bounded by the
    // number of parties, whatever number of replicas a user wrote.
    let parties = i128::try_from(votes().count()).unwrap_or(i128::MAX);
    let certain = i128::from(seats).saturating_sub(parties).max(0);
    let mut claims: BinaryHeap<Claim<'a>> = votes()
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
        // Quotients are compared by cross multiplication, which is exact.
        let quotient = |a: &Self, b: &Self| i128::from(a.votes) * (2 * b.seats + 1);
        let by_name = if self.last_wins_ties {
            self.name.cmp(other.name)
        } else {
            other.name.cmp(self.name)
        };
        quotient(self, other)
            .cmp(&quotient(other, self))
            .then(other.seats.cmp(&self.seats))
            .then(by_name)
    }
}

impl PartialOrd for Claim<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
