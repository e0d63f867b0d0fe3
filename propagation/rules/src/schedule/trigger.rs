//! The reasons to decide about a binding again.

use karmada_api::{ClusterView, condition, names};
use objects::Metadata;
use serde_json::Value;

use super::facts::Facts;
use super::failure::{SCHEDULER_ERROR, UNSCHEDULABLE};
use super::strategy::Assignment;
use crate::binding_ref::BindingRef;

/// Returns `true` if the binding is to be decided again.
pub(super) fn is_due(facts: Facts<'_>) -> bool {
    let binding = facts.binding;
    let replicas = binding.targets().map(|target| target.replicas.unwrap_or(0));
    let assigned: i64 = replicas.map(i64::from).sum();
    !facts.strategy.divides()
        || assigned != i64::from(binding.spec.replicas.unwrap_or(0))
        || placement_changed(binding)
        || is_requested(binding)
        || binding
            .targets()
            .any(|target| facts.fleet.get(&target.name).is_none_or(is_leaving))
        // A failure is retried whatever has changed.
        || binding
            .scheduled()
            .is_none_or(|condition| condition.status != condition::TRUE)
}

fn is_leaving(cluster: &ClusterView) -> bool {
    cluster.metadata.is_deleting()
}

/// Returns the way in which replicas that are divided by room are assigned.
pub(super) fn assignment(binding: BindingRef<'_>) -> Assignment {
    if is_requested(binding) {
        Assignment::Fresh
    } else {
        Assignment::Steady
    }
}

/// Returns the way in which the clusters are selected.
pub(super) fn selection(binding: BindingRef<'_>) -> Assignment {
    if placement_changed(binding) {
        Assignment::Fresh
    } else {
        assignment(binding)
    }
}

/// Returns `true` if the binding could not be scheduled. Its status counts every cluster of the fleet, with the
/// reason why it does not fit.
pub fn is_unscheduled(binding: BindingRef<'_>) -> bool {
    let condition = binding.scheduled();
    condition.is_some_and(|condition| condition.status == condition::FALSE)
}

/// Returns `true` if the binding could not be scheduled, perhaps for a lack of room.
pub(super) fn is_short_of_room(binding: BindingRef<'_>) -> bool {
    binding.scheduled().is_some_and(|condition| {
        condition.status == condition::FALSE
            && [UNSCHEDULABLE, SCHEDULER_ERROR].contains(&condition.reason.as_str())
    })
}

/// Returns `true` if scheduling anew was asked for since the last one. Both times have whole seconds: an
/// equal one is no later. A binding that was never scheduled is so from the start anyway.
pub(super) fn is_requested(binding: BindingRef<'_>) -> bool {
    let last = binding
        .status
        .and_then(|status| status.last_scheduled_time.as_ref());
    let triggered = binding.spec.reschedule_triggered_at.as_ref();
    let both = triggered.zip(last);
    both.is_some_and(|(triggered, last)| triggered.0.as_second() > last.0.as_second())
}

/// Returns `true` if the placement differs from the one that was applied, other than in groups that are
/// not in use.
fn placement_changed(binding: BindingRef<'_>) -> bool {
    let (Some(mut applied), Some(mut placement)) =
        (applied_placement(binding), binding.spec.placement.clone())
    else {
        return true;
    };
    if applied == placement {
        return false;
    }
    let before = take_group_in_use(&mut applied, binding);
    let now = take_group_in_use(&mut placement, binding);
    match (before, now) {
        (Some(before), Some(now)) => before != now || applied != placement,
        _ => true,
    }
}

/// Returns the placement that was applied last.
pub(super) fn applied_placement(binding: BindingRef<'_>) -> Option<Value> {
    let text = binding.metadata.annotation(names::APPLIED_PLACEMENT)?;
    serde_json::from_str(text).ok()
}

/// Takes all groups out of the placement, and returns the one in use.
fn take_group_in_use(placement: &mut Value, binding: BindingRef<'_>) -> Option<Value> {
    let groups = placement.get_mut("clusterAffinities")?.take();
    let name = binding.observed_group()?;
    let mut groups = groups.as_array()?.iter();
    groups
        .find(|group| group.get("affinityName").and_then(Value::as_str) == Some(name))
        .cloned()
}
