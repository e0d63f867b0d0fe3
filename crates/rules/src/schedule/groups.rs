//! The groups of clusters of a placement, of which the first that fits is used.

use karmada_api::placement::ClusterAffinityTerm;

use super::AffinityFailure;
use super::decide::Cycle;
use super::evict;
use super::plan::{SchedulePlan, scheduled};

/// Tries the groups from `start` to the last, then those before `start`, and returns the first that
/// `attempt` finds fit, with its result.
///
/// # Errors
/// Fails with the failures of all groups, in the order of the groups.
pub(super) fn first_fit<'a, T>(
    groups: &'a [ClusterAffinityTerm],
    start: usize,
    mut attempt: impl FnMut(&'a ClusterAffinityTerm) -> Result<T, AffinityFailure>,
) -> Result<(&'a ClusterAffinityTerm, T), Vec<AffinityFailure>> {
    let mut failures = Vec::new();
    let turn = (start..groups.len()).chain(0..start.min(groups.len()));
    for (index, group) in turn.filter_map(|index| Some((index, groups.get(index)?))) {
        match attempt(group) {
            Ok(result) => return Ok((group, result)),
            Err(failure) => failures.push((index, failure)),
        }
    }
    failures.sort_by_key(|(index, _)| *index);
    Err(failures.into_iter().map(|(_, failure)| failure).collect())
}

/// Returns the index of the group to begin with: the one in use, unless scheduling anew was asked for.
pub(super) fn start(groups: &[ClusterAffinityTerm], observed: Option<&str>, anew: bool) -> usize {
    let is_observed = |group: &ClusterAffinityTerm| Some(group.affinity_name.as_str()) == observed;
    let observed = groups.iter().position(is_observed);
    observed.filter(|_| !anew).unwrap_or_default()
}

/// Plans the writes of a binding that returns to a group before the one in use, if one fits again. Its copies
/// stay where they are until those there are healthy, as when it left.
pub(super) fn returned(cycle: Cycle<'_>) -> Option<SchedulePlan> {
    if !cycle.scheduler.fails_back || !cycle.fleet.complete {
        return None;
    }
    let (binding, groups) = (cycle.binding, &cycle.placement.cluster_affinities);
    let earlier = groups.get(..start(groups, binding.observed_group(), false))?;
    let spec = evict::without(binding, Vec::new());
    let decision = cycle.of(&spec).decide_among(earlier, 0).ok()?;
    let evictions = evict::left(cycle, &decision)?;
    Some(scheduled(binding, decision, evictions, cycle.pass))
}
