//! The decisions about clusters in the status of a policy snapshot.

use std::collections::BTreeMap;

use fleet_api::binding::ClusterDecision;
use fleet_api::conditions::SCHEDULED;
use fleet_api::names::PLACEMENT_GENERATION;
use fleet_api::snapshot::PolicySnapshotStatus;
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE};
use objects::write::{ObjectRef, Write};

use super::choice::{Choice, Pick};
use super::facts::{Bindings, SchedulingFacts};
use crate::condition::{condition, put};

/// The most decisions that a policy snapshot has room for.
const MOST_DECISIONS: usize = 1000;

/// Returns the write of the status of the policy snapshot, or `None` if that is up to date.
pub(super) fn status(
    facts: &SchedulingFacts<'_>,
    bindings: &Bindings<'_>,
    choice: &Choice<'_>,
) -> Option<Write> {
    let before = facts.policy.status.clone().unwrap_or_default();
    let selected = selected(bindings, choice, &before.target_clusters);
    let found = selected.len();
    let targets = targets(selected, choice, &before.target_clusters);
    let generation = facts.policy.metadata.annotation(PLACEMENT_GENERATION);
    let mut after = PolicySnapshotStatus {
        observed_placement_generation: generation.and_then(|generation| generation.parse().ok()),
        conditions: before.conditions.clone(),
        target_clusters: targets,
    };
    let scheduled = scheduled(found, choice.wanted);
    let dated = (facts.policy.metadata.generation, facts.now);
    put(&mut after.conditions, [scheduled], dated);
    let object = ObjectRef::of(facts.policy, &facts.policy.scope());
    Write::status_between("policy_status", object, &before, &after)
}

/// Returns the decisions for the clusters that have the placement now: first those picked now.
fn selected(
    bindings: &Bindings<'_>,
    choice: &Choice<'_>,
    before: &[ClusterDecision],
) -> Vec<ClusterDecision> {
    let (kept, new): (Vec<_>, Vec<_>) = choice
        .picks
        .iter()
        .partition(|pick| bindings.obsolete.contains_key(pick.cluster.metadata.name()));
    let picks = new.into_iter().chain(kept);
    let mut decisions: Vec<_> = picks.map(Pick::decision).collect();
    let current = bindings.current.iter().filter(|(cluster, _)| {
        let mut dropped = choice.dropped.iter();
        !dropped.any(|binding| binding.spec.target_cluster == **cluster)
    });
    let mut current: Vec<_> = current
        .map(|(_, binding)| binding.spec.cluster_decision.clone())
        .collect();
    // Nothing is written for an order alone.
    let places = before.iter().zip(0_usize..);
    let places: BTreeMap<_, _> = places
        .map(|(decision, place)| (&*decision.cluster_name, place))
        .collect();
    current.sort_by_key(|decision| {
        let place = places.get(&*decision.cluster_name);
        place.copied().unwrap_or(usize::MAX)
    });
    decisions.append(&mut current);
    decisions
}

/// Returns the decisions that fit into a policy snapshot.
fn targets(
    selected: Vec<ClusterDecision>,
    choice: &Choice<'_>,
    before: &[ClusterDecision],
) -> Vec<ClusterDecision> {
    let are_selected = before.iter().filter(|decision| decision.selected);
    let is_same_set = are_selected.clone().count() == selected.len()
        && selected
            .iter()
            .all(|one| are_selected.clone().any(|other| one == other));
    let refused = match &choice.refused {
        Some(refused) => refused.clone(),
        // Nobody looked at the others: the last finding stands, if it was about the same.
        None if is_same_set => {
            let others = before.iter().filter(|decision| !decision.selected);
            others.cloned().collect()
        }
        None => Vec::new(),
    };
    let mut targets = selected;
    targets.extend(refused);
    targets.truncate(MOST_DECISIONS);
    if targets.len() == before.len() && targets.iter().all(|one| before.contains(one)) {
        return before.to_vec();
    }
    targets
}

fn scheduled(found: usize, wanted: Option<usize>) -> Condition {
    let (status, reason, message) = if wanted.is_none_or(|wanted| found >= wanted) {
        let message = format!(
            "found all cluster needed as specified by the scheduling policy, found {found} cluster(s)"
        );
        (TRUE, "SchedulingPolicyFulfilled", message)
    } else {
        let message = format!(
            "could not find all clusters needed as specified by the scheduling policy, \
             found {found} cluster(s) instead"
        );
        (FALSE, "SchedulingPolicyUnfulfilled", message)
    };
    condition((SCHEDULED, status), reason, &message)
}
