//! The groups of clusters of a placement, of which the first that fits is used.

use karmada_api::Placement;
use karmada_api::placement::ClusterAffinityTerm;

use super::failure::AffinityFailure;
use super::tiers::Tiers;
use crate::binding_ref::BindingRef;

/// Returns the index of the group that the binding uses; 0 if it uses none of them.
pub(super) fn in_use(groups: &[ClusterAffinityTerm], binding: BindingRef<'_>) -> usize {
    let observed = binding.observed_group();
    let mut groups = groups.iter();
    let in_use = groups.position(|group| Some(group.affinity_name.as_str()) == observed);
    in_use.unwrap_or_default()
}

/// Returns the affinity in use, and `None` if the placement has none at all.
pub(super) fn affinity_in_use<'a>(
    placement: &'a Placement,
    binding: BindingRef<'_>,
) -> Option<Tiers<'a>> {
    let index = in_use(&placement.cluster_affinities, binding);
    affinities(placement).nth(index)
}

/// Iterates over the affinities of a placement: its groups, or the only one.
pub(super) fn affinities(placement: &Placement) -> impl Iterator<Item = Tiers<'_>> {
    let groups = &placement.cluster_affinities;
    let only = groups.is_empty();
    let only = only.then(|| Tiers::only(placement.cluster_affinity.as_ref()));
    groups.iter().map(Tiers::of).chain(only)
}

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
