//! The best clusters, as many as a policy asks for.

use std::cmp::Reverse;

use fleet_api::binding::{BindingState, ClusterDecision, ClusterScore};
use fleet_api::policy::PlacementPolicy;
use fleet_api::{Binding, MemberCluster};
use objects::Metadata;

use super::choice::{Choice, Pick, Unfits, explained, filtered};
use super::facts::{Bindings, SchedulingFacts};
use crate::filter::{Filter, namespace_unfit};
use crate::score::Preferences;
use crate::spread::{Domains, Spread};

/// Picks the best clusters until there are `wanted`, or drops the worst.
pub(super) fn number<'a>(
    facts: &SchedulingFacts<'a>,
    policy: &PlacementPolicy,
    bindings: &Bindings<'a>,
    wanted: usize,
) -> Choice<'a> {
    let current = bindings.current.len();
    let mut choice = Choice {
        wanted: Some(wanted),
        ..Choice::default()
    };
    if current >= wanted {
        choice.dropped = worst(bindings, current - wanted);
        return choice;
    }
    let fleet: Vec<_> = facts.clusters.iter().map(|one| one.cluster).collect();
    let constraints = &policy.topology_spread_constraints;
    let mut spread = Spread::of(constraints, &spreadable(facts, policy));
    for cluster in &fleet {
        if bindings.current.contains_key(cluster.metadata.name()) {
            spread.add(&spread.domains(cluster));
        }
    }
    let preferences = Preferences::of(policy, &fleet);
    let (fit, mut unfit) = filtered(facts, policy, bindings);
    let candidates = fit.into_iter().map(|cluster| Candidate {
        cluster,
        affinity: preferences.score(cluster),
        is_obsolete: bindings.obsolete.contains_key(cluster.metadata.name()),
        domains: spread.domains(cluster),
    });
    let mut candidates: Vec<_> = candidates.collect();
    let mut outscored = Vec::new();
    for missing in (1..=wanted - current).rev() {
        if missing == 1 {
            unfit.append(&mut crowded(&mut candidates, &spread));
        }
        let Some((rank, place)) = best(&candidates, &spread) else {
            unfit.append(&mut crowded(&mut candidates, &spread));
            break;
        };
        let best = candidates.swap_remove(place);
        if missing == 1 {
            outscored = ranked(&candidates, &spread);
        }
        spread.add(&best.domains);
        choice.picks.push(Pick {
            cluster: best.cluster,
            score: Some(rank.score()),
        });
    }
    choice.picks.sort_by_key(|pick| {
        let score = pick.score.unwrap_or_default();
        let name = pick.cluster.metadata.name();
        Reverse((score.priority_score, score.affinity_score, name))
    });
    let outscored = outscored.iter().map(Rank::decision).collect();
    choice.refused = Some(explained(outscored, unfit));
    choice
}

/// Returns the clusters whose domains count: a domain where the placement never may be would stay empty, and let no other
/// have more than `maxSkew`. As in Kubernetes, a taint does not count.
fn spreadable<'a>(facts: &SchedulingFacts<'a>, policy: &PlacementPolicy) -> Vec<&'a MemberCluster> {
    let namespace = facts.placement.metadata.namespace();
    let filter = Filter::of(policy, namespace);
    let eligible = facts.clusters.iter().filter(|one| one.obstacle.is_none());
    let allowed = eligible.map(|one| one.cluster).filter(|cluster| {
        filter.meets_required(cluster) && namespace_unfit(namespace, cluster).is_none()
    });
    allowed.collect()
}

/// Returns the bindings that are missed the least.
fn worst<'a>(bindings: &Bindings<'a>, number: usize) -> Vec<&'a Binding> {
    let mut worst_first: Vec<_> = bindings.current.values().copied().collect();
    worst_first.sort_by_key(|binding| {
        let score = binding.spec.cluster_decision.cluster_score;
        let score = score.unwrap_or_default();
        let is_bound = binding.spec.state == BindingState::Bound;
        let score = (score.priority_score, score.affinity_score);
        (is_bound, score, &*binding.spec.target_cluster)
    });
    worst_first.truncate(number);
    worst_first
}

/// A cluster that the policy allows.
#[derive(Debug)]
struct Candidate<'a> {
    cluster: &'a MemberCluster,
    affinity: i32,
    is_obsolete: bool,
    domains: Domains,
}

impl<'a> Candidate<'a> {
    fn rank(&self, spread: &Spread<'_>) -> Rank<'a> {
        Rank {
            topology: spread.score(&self.domains),
            affinity: self.affinity,
            is_obsolete: self.is_obsolete,
            name: self.cluster.metadata.name(),
        }
    }
}

/// The rank of a candidate, in the order of these fields; the greatest is the best. Of equals, it is the one with the
/// larger name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    topology: i32,
    affinity: i32,
    is_obsolete: bool,
    name: &'a str,
}

impl Rank<'_> {
    fn score(&self) -> ClusterScore {
        ClusterScore {
            affinity_score: self.affinity,
            priority_score: self.topology,
        }
    }

    fn decision(&self) -> ClusterDecision {
        let Self {
            topology,
            affinity,
            name,
            ..
        } = self;
        ClusterDecision {
            cluster_name: (*name).to_owned(),
            cluster_score: Some(self.score()),
            reason: format!(
                "cluster \"{name}\" does not score high enough (affinity score: {affinity}, \
                 topology spread score: {topology})"
            ),
            selected: false,
        }
    }
}

/// Returns the best of the candidates that violate nothing, and its place.
fn best<'a>(candidates: &[Candidate<'a>], spread: &Spread<'_>) -> Option<(Rank<'a>, usize)> {
    let candidates = candidates.iter().enumerate();
    let allowed = candidates.filter(|(_, one)| spread.violated(&one.domains).is_none());
    allowed
        .map(|(place, candidate)| (candidate.rank(spread), place))
        .max()
}

/// Removes the candidates in whose domains there are too many already.
fn crowded<'a>(candidates: &mut Vec<Candidate<'a>>, spread: &Spread<'_>) -> Unfits<'a> {
    let crowded = candidates.extract_if(.., |one| spread.violated(&one.domains).is_some());
    let crowded = crowded.filter_map(|one| Some((one.cluster, spread.violated(&one.domains)?)));
    crowded.collect()
}

fn ranked<'a>(candidates: &[Candidate<'a>], spread: &Spread<'_>) -> Vec<Rank<'a>> {
    let ranks = candidates.iter().map(|candidate| candidate.rank(spread));
    let mut ranks: Vec<_> = ranks.collect();
    ranks.sort_by_key(|rank| Reverse(*rank));
    ranks
}
