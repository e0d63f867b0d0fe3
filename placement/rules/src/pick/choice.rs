//! The clusters that are picked, and why not the others.

use std::collections::BTreeSet;

use fleet_api::binding::{ClusterDecision, ClusterScore};
use fleet_api::policy::PlacementPolicy;
use fleet_api::{Binding, MemberCluster};
use objects::Metadata;

use super::facts::{Bindings, FleetCluster, SchedulingFacts};
use super::reason::{picked, refused};
use crate::filter::{Filter, Unfit, namespace_unfit};

/// A cluster that is picked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick<'a> {
    pub(super) cluster: &'a MemberCluster,
    /// Absent where clusters are not compared.
    pub(super) score: Option<ClusterScore>,
}

impl Pick<'_> {
    pub(super) fn decision(&self) -> ClusterDecision {
        picked(self.cluster.metadata.name(), self.score)
    }
}

/// The decision about the clusters that do not have the placement by the latest policy yet, and about those that do.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    /// Those that get it, the best first.
    pub(super) picks: Vec<Pick<'a>>,
    /// Those that lose it, though the policy is the latest.
    pub(super) dropped: Vec<&'a Binding>,
    /// Those that do not get it, with the reasons; `None` if there was no need to look at any.
    pub(super) refused: Option<Vec<ClusterDecision>>,
    /// The number of clusters that should have it, where the policy says so.
    pub(super) wanted: Option<usize>,
}

/// The most clusters that are not picked of which the reason is told.
const MOST_REFUSED: usize = 20;

/// Picks every cluster that the policy allows.
pub(super) fn all<'a>(
    facts: &SchedulingFacts<'a>,
    policy: &PlacementPolicy,
    bindings: &Bindings<'_>,
) -> Choice<'a> {
    let (mut fit, unfit) = filtered(facts, policy, bindings);
    fit.sort_by_key(|cluster| cluster.metadata.name());
    let picks = fit.into_iter().map(|cluster| Pick {
        cluster,
        score: Some(ClusterScore::default()),
    });
    Choice {
        picks: picks.collect(),
        refused: Some(explained(Vec::new(), unfit)),
        ..Choice::default()
    }
}

/// Picks the clusters that the policy names.
pub(super) fn fixed<'a>(
    facts: &SchedulingFacts<'a>,
    policy: &PlacementPolicy,
    bindings: &Bindings<'a>,
) -> Choice<'a> {
    let (clusters, namespace) = (facts.by_name(), facts.placement.metadata.namespace());
    let names: BTreeSet<_> = policy.cluster_names.iter().map(String::as_str).collect();
    let mut choice = Choice {
        wanted: Some(names.len()),
        ..Choice::default()
    };
    let mut refusals = Vec::new();
    let mut seen = BTreeSet::new();
    let names_in_order = policy.cluster_names.iter().map(String::as_str);
    for name in names_in_order.filter(|name| seen.insert(*name)) {
        if bindings.current.contains_key(name) {
            continue;
        }
        let unfit = clusters
            .get(name)
            .and_then(|one| namespace_unfit(namespace, one.cluster));
        if let Some(unfit) = unfit {
            refusals.push(refused(name, &unfit));
            continue;
        }
        match clusters.get(name) {
            Some(FleetCluster { cluster, obstacle })
                if obstacle.is_none() || bindings.obsolete.contains_key(name) =>
            {
                let score = None;
                choice.picks.push(Pick { cluster, score });
            }
            Some(FleetCluster {
                obstacle: Some(obstacle),
                ..
            }) => {
                refusals.push(refused(name, &Unfit::Ineligible(*obstacle)));
            }
            _ => refusals.push(ClusterDecision {
                cluster_name: name.to_owned(),
                reason: format!("Specified cluster \"{name}\" is not found"),
                ..ClusterDecision::default()
            }),
        }
    }
    choice.refused = Some(refusals);
    let current = bindings.current.iter();
    let unnamed = current.filter(|(cluster, _)| !names.contains(**cluster));
    choice.dropped = unnamed.map(|(_, binding)| *binding).collect();
    choice
}

/// The clusters that the policy does not allow, with the reasons.
pub(super) type Unfits<'a> = Vec<(&'a MemberCluster, Unfit)>;

/// Returns the clusters that the policy allows, and those that it does not, without those that have the placement.
pub(super) fn filtered<'a>(
    facts: &SchedulingFacts<'a>,
    policy: &PlacementPolicy,
    bindings: &Bindings<'_>,
) -> (Vec<&'a MemberCluster>, Unfits<'a>) {
    let filter = Filter::of(policy, facts.placement.metadata.namespace());
    let (mut fit, mut unfit) = (Vec::new(), Vec::new());
    for FleetCluster { cluster, obstacle } in facts.clusters {
        if bindings.current.contains_key(cluster.metadata.name()) {
            continue;
        }
        let reason = filter.unfit(cluster);
        match obstacle.map(Unfit::Ineligible).or(reason) {
            None => fit.push(*cluster),
            Some(reason) => unfit.push((*cluster, reason)),
        }
    }
    (fit, unfit)
}

/// Returns the first of the decisions about clusters that were not picked.
pub(super) fn explained(
    outscored: Vec<ClusterDecision>,
    mut unfit: Unfits<'_>,
) -> Vec<ClusterDecision> {
    unfit.sort_by_key(|(cluster, _)| cluster.metadata.name());
    let unfit = unfit
        .iter()
        .map(|(cluster, reason)| refused(cluster.metadata.name(), reason));
    outscored
        .into_iter()
        .chain(unfit)
        .take(MOST_REFUSED)
        .collect()
}
