//! The Events about placements, each recorded when a condition becomes true, and about overrides.

use fleet_api::conditions::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, ROLLOUT_STARTED, ROLLOUT_STUCK, SCHEDULED,
    WORK_SYNCHRONIZED, of_placement,
};
use fleet_api::overrides::OverriddenPlacement;
use fleet_api::placement::PlacementStatus;
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use objects::Scope;
use objects::condition::{Condition, TRUE, find};
use placement_rules::status::said_of_idle_selectors;

use crate::reason::Reason;

/// The conditions of a placement, in their order, with the Events about them.
const STEPS: [(&str, Reason, &str); 6] = [
    (
        ROLLOUT_STARTED,
        Reason::PlacementRolloutStarted,
        "Started rolling out the latest resources",
    ),
    (
        OVERRIDDEN,
        Reason::PlacementOverriddenSucceeded,
        "Placement has been successfully overridden",
    ),
    (
        WORK_SYNCHRONIZED,
        Reason::PlacementWorkSynchronized,
        "Work(s) have been created or updated successfully for the selected cluster(s)",
    ),
    (
        APPLIED,
        Reason::PlacementApplied,
        "Resources have been applied to the selected cluster(s)",
    ),
    (
        AVAILABLE,
        Reason::PlacementAvailable,
        "Resources are available on the selected cluster(s)",
    ),
    (
        DIFF_REPORTED,
        Reason::PlacementDiffReported,
        "Configuration differences have been reported on the selected cluster(s)",
    ),
];

/// Returns the Events of the change from one status to another of a placement of a scope.
pub(crate) fn transitions(
    scope: Scope,
    before: &PlacementStatus,
    after: &PlacementStatus,
) -> Vec<Event> {
    let new = STEPS
        .iter()
        .filter(|(step, ..)| is_done(scope, step, after) && !is_done(scope, step, before));
    let mut events: Vec<_> = new.map(|(_, reason, note)| event(*reason, note)).collect();
    if is_complete(scope, after) && !is_complete(scope, before) {
        let note = "Placement has finished the rollout process and reached the desired status";
        events.push(event(Reason::PlacementRolloutCompleted, note));
    }
    if let (Some(stuck), None) = (stuck(after), stuck(before)) {
        events.push(warning(Reason::PlacementRolloutStuck, &stuck.message));
    }
    let idle = said_of_idle_selectors(scope, after);
    if !idle.is_empty() && idle != said_of_idle_selectors(scope, before) {
        events.push(warning(Reason::PlacementSelectsNothing, idle));
    }
    events
}

/// Returns `true` if a placement has been rolled out.
fn is_complete(scope: Scope, status: &PlacementStatus) -> bool {
    // The last one where something is written, and where differences are only reported.
    let mut last = [AVAILABLE, DIFF_REPORTED].into_iter();
    last.any(|step| is_done(scope, step, status))
        && is_done(scope, SCHEDULED, status)
        && !status.selected_resources.is_empty()
}

fn is_done(scope: Scope, step: &str, status: &PlacementStatus) -> bool {
    let said = find(&status.conditions, &of_placement(scope, step));
    said.is_some_and(|condition| condition.status == TRUE)
}

/// Returns the Event about an override that is not taken up.
pub(crate) fn of_refusal(reason: &str) -> Event {
    warning(Reason::OverrideRefused, reason)
}

/// Returns the Event about an override that was taken up, and names no placement.
pub(crate) fn of_unnamed_placement() -> Event {
    let note = "It names no placement, and goes out with the next rollout of each placement of its objects";
    event(Reason::OverrideWaitsForRollout, note)
}

/// Returns the Event about an override whose placement is not there.
pub(crate) fn of_absent_placement(placement: &OverriddenPlacement) -> Event {
    let OverriddenPlacement { name, scope } = placement;
    let note = if scope == "Namespaced" {
        format!("There is no ResourcePlacement {name} in the namespace of the override")
    } else {
        format!(
            "There is no ClusterResourcePlacement {name}, which scope Cluster is about, as it is where none is given"
        )
    };
    event(Reason::OverriddenPlacementUnknown, &note)
}

/// Returns the condition that says that the rollout is stuck.
fn stuck(status: &PlacementStatus) -> Option<&Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|condition| condition.reason == ROLLOUT_STUCK)
}

fn warning(reason: Reason, note: &str) -> Event {
    Event {
        type_: EventType::Warning,
        ..event(reason, note)
    }
}

fn event(reason: Reason, note: &str) -> Event {
    Event {
        type_: EventType::Normal,
        reason: reason.as_str().to_owned(),
        note: Some(note.to_owned()),
        action: reason.as_str().to_owned(),
        secondary: None,
    }
}
