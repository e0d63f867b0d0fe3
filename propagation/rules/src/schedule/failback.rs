//! The return of a workload to an earlier group of its clusters.
//!
//! Whether an evicted workload comes back is decided here for groups. Within one group, it comes back with the next
//! decision in which its former cluster fits (`filter`: no untolerated taint, no eviction that is still going on):
//! that is the next one for replicas that are duplicated, and for those that are divided the next one that there is
//! a reason for (`trigger`).

use super::facts::{Facts, Scheduler};
use super::outcome::{SchedulePlan, scheduled};
use super::{cycle, eviction, groups};
use crate::binding_ref::BindingRef;

/// Plans the writes of a binding that returns to a group before the one in use, if one fits again. Its copies
/// stay where they are until those there are healthy, as when it left.
pub(super) fn returned(facts: Facts<'_>) -> Option<SchedulePlan> {
    if !facts.scheduler.fails_back || !facts.fleet.complete {
        return None;
    }
    let groups = &facts.placement.cluster_affinities;
    let earlier = groups.get(..groups::in_use(groups, facts.binding))?;
    let spec = eviction::spec_after_eviction(facts.binding, &[]);
    let decision = cycle::decide_among(facts.with_spec(&spec), earlier, 0).ok()?;
    let evictions = eviction::failback_evictions(facts, &decision)?;
    Some(scheduled(facts.binding, decision, evictions, facts.pass))
}

/// Returns `true` if the binding uses a group from which it may return to an earlier one.
pub(super) fn may_return(scheduler: &Scheduler, binding: BindingRef<'_>) -> bool {
    scheduler.fails_back
        && binding.placement().is_some_and(|placement| {
            let groups = &placement.cluster_affinities;
            groups::in_use(groups, binding) > 0
        })
}
