//! A placement whose clusters are given snapshots by runs: each may have another one, and the placement speaks of the one that
//! all have.

use fleet_api::conditions::{ROLLOUT_STARTED, of_placement};
use fleet_api::placement::PlacementStatus;
use fleet_api::{Binding, Placement};
use objects::Metadata;
use objects::condition::{Condition, find};

use super::cluster::ClusterProgress;
use super::facts::{StatusFacts, is_current};
use crate::condition::condition;
use crate::select::identifier;
use crate::strategy::is_external;

/// Returns the master of the group of snapshots that all clusters of a placement have been given by runs. The status lists the
/// objects in it.
pub fn given_snapshot<'a>(placement: &Placement, bindings: &[&'a Binding]) -> Option<&'a str> {
    let staying = bindings.iter().filter(|binding| is_current(binding));
    let mut given = staying.map(|binding| &*binding.spec.resource_snapshot_name);
    let first = given.next()?;
    let is_given = is_external(placement) && !first.is_empty();
    (is_given && given.all(|other| other == first)).then_some(first)
}

/// Returns the index of the snapshot that a cluster has; empty if it has none.
pub(super) fn index<'a>(placement: &Placement, binding: Option<&'a Binding>) -> &'a str {
    let name = binding.map_or("", |binding| &binding.spec.resource_snapshot_name);
    let rest = name.strip_prefix(placement.metadata.name());
    let rest = rest.and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.strip_suffix("-snapshot"))
        .unwrap_or_default()
}

/// Speaks of the snapshot that all clusters have. Returns the condition that stands for the steps while there is none.
pub(super) fn observe(
    facts: &StatusFacts<'_>,
    clusters: &[(ClusterProgress, String)],
    after: &mut PlacementStatus,
) -> Option<Condition> {
    let (_, first) = clusters.first()?;
    let is_common = clusters.iter().all(|(_, index)| index == first);
    if !is_common || first.is_empty() {
        after.selected_resources.clear();
        after.observed_resource_index.clear();
        let why = if is_common {
            "no resource snapshot name is observed across clusters, probably rollout has not started yet"
        } else {
            "different resource snapshot versions are observed across clusters"
        };
        return Some(unknown(facts.placement, why));
    }
    after.selected_resources = facts.given.iter().map(identifier).collect();
    after.observed_resource_index.clone_from(first);
    let mut clusters = clusters.iter();
    let undecided = clusters.find(|(progress, _)| {
        find(&progress.reached, ROLLOUT_STARTED).is_none_or(|started| started.status == "Unknown")
    });
    undecided.map(|(progress, _)| {
        let cluster = progress.cluster();
        let why = format!("cluster {cluster} is in RolloutStarted Unknown state");
        unknown(facts.placement, &why)
    })
}

/// Returns the condition of a placement of which nobody knows how far it is.
fn unknown(placement: &Placement, why: &str) -> Condition {
    let kind = of_placement(placement.scope(), ROLLOUT_STARTED);
    let message = format!("Rollout is controlled by an external controller and {why}");
    condition(
        (&kind, "Unknown"),
        "RolloutControlledByExternalController",
        &message,
    )
}
