//! The changes of clusters, and the times, that wake a binding.

use jiff::{SignedDuration, Timestamp};
use karmada_api::ClusterView;
use objects::Metadata;

use super::eviction::{Leaving, end_of, has_to_leave, is_suspended};
use super::facts::{Scheduler, named};
use super::failback::may_return;
use super::groups::{affinities, affinity_in_use};
use super::trigger::{is_short_of_room, is_unscheduled};
use crate::binding_ref::BindingRef;

/// The time after which a binding that fits nowhere is tried again, whatever has changed.
const RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Returns `true` if the cluster is one that the binding has, or may get: its changes may change where
/// the template runs.
pub fn concerns(binding: BindingRef<'_>, cluster: &ClusterView) -> bool {
    binding.has_target(cluster.metadata.name())
        || binding.placement().is_some_and(|placement| {
            affinities(&placement).any(|affinity| affinity.tier(cluster).is_some())
        })
}

/// Returns `true` if the binding may be scheduled otherwise once a cluster has more room: it is not scheduled,
/// has no other place for the replicas that have to leave one of the `tainted` clusters, or may return to an earlier group.
pub fn waits_for_room(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    tainted: &[&ClusterView],
) -> bool {
    is_short_of_room(binding)
        || has_to_leave(scheduler, binding, tainted)
        || may_return(scheduler, binding)
}

/// Returns `true` if the cluster is selected by the affinity in use.
pub fn is_observed(binding: BindingRef<'_>, cluster: &ClusterView) -> bool {
    binding.placement().is_some_and(|placement| {
        let affinity = affinity_in_use(&placement, binding);
        affinity.is_none_or(|affinity| affinity.tier(cluster).is_some())
    })
}

/// Returns the next time after `now` at which the binding is due by itself: an eviction begins or ends, a taint is
/// tolerated no longer that the reason of an unscheduled one then counts, or that one is tried again.
pub fn next_due(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    clusters: &[&ClusterView],
    now: Timestamp,
) -> Option<Timestamp> {
    let tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    let tasks = tasks.filter(|task| scheduler.ends_evictions() && task.suppress_deletion.is_none());
    let ends = tasks.filter_map(|task| Some(end_of(task, task.creation_timestamp.as_ref()?)));
    let ends = ends.filter(|_| scheduler.has(binding));
    let decisions = next_decisions(scheduler, binding, clusters, now);
    let due = ends.chain(decisions);
    due.filter(|at| *at > now).min()
}

/// Returns the times at which a binding that is scheduled may be decided otherwise.
fn next_decisions(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    clusters: &[&ClusterView],
    now: Timestamp,
) -> Vec<Timestamp> {
    let placement = binding.placement();
    let Some(placement) = placement.filter(|_| scheduler.schedules(binding)) else {
        return Vec::new();
    };
    let is_unscheduled = is_unscheduled(binding);
    let leaving = Leaving::of(scheduler, clusters);
    // The cluster that ends the halt may be one that does not concern the binding.
    let is_held = leaving.is_halted && has_to_leave(scheduler, binding, clusters);
    let retry =
        (is_unscheduled || is_held).then(|| now.saturating_add(RETRY).unwrap_or(Timestamp::MAX));
    let targets = binding.targets().filter(|_| scheduler.evicts);
    let targets = targets.filter(|target| !is_suspended(binding, &target.name));
    // The condition of an unscheduled one counts every cluster of the fleet.
    let others = clusters.iter().copied().filter(|_| is_unscheduled);
    let begins = targets
        .filter_map(|target| named(clusters, &target.name))
        .chain(others)
        .filter_map(|cluster| leaving.due(cluster, &placement));
    begins.map(|(_, at)| at).chain(retry).collect()
}
