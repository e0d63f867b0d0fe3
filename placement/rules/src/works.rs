//! The Works of a binding, and its report about them.
//!
//! - `facts`: the facts that decide about them.
//! - `desired`: the Works that its cluster should have, from the parts of a snapshot and the overrides.
//! - `report`: the conditions of the binding, from those of its Works; `listed`: the objects that it names.

mod desired;
mod facts;
mod listed;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use fleet_api::Work;
use fleet_api::binding::BindingState;
use fleet_api::conditions::{ROLLOUT_NOT_STARTED, ROLLOUT_STARTED};
use fleet_api::placement::ApplyStrategy;
use objects::Metadata;
use objects::metadata::has_marks;
use objects::write::{ObjectRef, Write};
use serde_json::json;

pub use facts::{Failure, WorksFacts};
pub use report::{Synchronization, report};

use super::condition::{current_condition, is_true};
use super::strategy::change;
use desired::{are_current, desired};

/// Plans the Works of a binding that stays. Returns how far they are with these writes; `None` while the rollout has not given
/// its snapshot to the binding, and once its cluster has left the fleet.
pub fn plan(facts: &WorksFacts<'_>) -> Option<(Synchronization, Vec<Write>)> {
    let binding = facts.binding;
    let started = current_condition(binding, ROLLOUT_STARTED);
    // A binding is held if the rollout keeps it at an earlier snapshot.
    let is_held = started.is_some_and(|started| started.reason == ROLLOUT_NOT_STARTED);
    match binding.spec.state {
        BindingState::Scheduled => return None,
        // A binding that is held goes on being reported: after an edit of its policy, say, it would look as if its cluster had
        // not answered, and be held for ever.
        BindingState::Bound if is_held && !facts.works.is_empty() => {
            return Some(keep(facts));
        }
        BindingState::Bound if !is_true(binding, ROLLOUT_STARTED) => return None,
        BindingState::Unscheduled if binding.spec.resource_snapshot_name.is_empty() => return None,
        // Its cluster has left the fleet, and the namespace of that is gone.
        BindingState::Unscheduled if facts.cluster.is_none() && facts.works.is_empty() => {
            return None;
        }
        // A binding that is unscheduled keeps its Works.
        BindingState::Bound | BindingState::Unscheduled => {}
    }
    let missing = facts.missing();
    // The Works outlive the snapshots that they were made of. Where the labels of the cluster make something else of these,
    // it is the rollout that gives it.
    if (missing.is_some() || facts.is_outdated()) && are_current(facts) {
        return Some(keep(facts));
    }
    let desired = match missing.map_or_else(|| desired(facts), Err) {
        Ok(desired) => desired,
        Err(failure) => return Some((Synchronization::Failed(failure), Vec::new())),
    };
    let names: BTreeSet<_> = desired
        .iter()
        .map(|work| work.metadata.name().to_owned())
        .collect();
    let mut writes: Vec<_> = desired
        .iter()
        .filter_map(|desired| write(facts.works, desired))
        .collect();
    let stale = facts
        .works
        .iter()
        .filter(|work| !names.contains(work.metadata.name()) && !work.metadata.is_deleting());
    writes.extend(stale.map(|work| take_away(work)));
    let synchronization = if writes.is_empty() {
        Synchronization::Synchronized
    } else {
        Synchronization::Written
    };
    Some((synchronization, writes))
}

/// Plans the end of the Works of a binding that is deleted.
pub fn removal(works: &[&Work]) -> Vec<Write> {
    let staying = works.iter().filter(|work| !work.metadata.is_deleting());
    staying.map(|work| take_away(work)).collect()
}

/// Keeps the content of the Works. A new way to write goes to everybody at once: who is held would never say that it works so.
fn keep(facts: &WorksFacts<'_>) -> (Synchronization, Vec<Write>) {
    let strategy = facts.binding.spec.apply_strategy.as_ref();
    let works = facts
        .works
        .iter()
        .filter(|work| strategy.is_some() && !work.metadata.is_deleting());
    let writes = works.filter_map(|work| rewrite(work, strategy));
    (Synchronization::Kept, writes.collect())
}

/// Returns the write that makes a Work as desired, or `None` if it is.
fn write(works: &[&Work], desired: &Work) -> Option<Write> {
    let mut works = works.iter();
    let Some(current) = works.find(|work| work.metadata.name() == desired.metadata.name()) else {
        return Some(Write::create("work", desired, &()));
    };
    let (current, wanted) = (*current, &desired.metadata);
    let is_same = has_marks(&current.metadata, wanted) && current.spec == desired.spec;
    (!is_same).then(|| {
        let [before, after] = [current, desired].map(|work| work.spec.apply_strategy.as_ref());
        let mut spec = json!({ "workload": desired.spec.workload });
        if let Some(change) = change(before, after) {
            spec["applyStrategy"] = change;
        }
        let marks = json!({ "labels": wanted.labels, "annotations": wanted.annotations });
        let body = json!({ "metadata": marks, "spec": spec });
        Write::merge("work", ObjectRef::of(current, &()), body)
    })
}

/// Returns the write by which a Work knows how its objects are to be written, or `None` if it does.
fn rewrite(work: &Work, strategy: Option<&ApplyStrategy>) -> Option<Write> {
    let change = change(work.spec.apply_strategy.as_ref(), strategy)?;
    let body = json!({ "spec": { "applyStrategy": change } });
    Some(Write::merge("work", ObjectRef::of(work, &()), body))
}

/// Deletes a Work: nothing of the snapshot is in it, or its binding goes.
fn take_away(work: &Work) -> Write {
    Write::delete("work", ObjectRef::of(work, &()))
}
