//! A step of a run as it is being planned, and its obstacles.

use fleet_api::update::UpdateRunStatus;
use jiff::Timestamp;
use objects::write::Write;

use super::facts::UpdateFacts;
use super::messages;
use crate::condition::put;

/// The plan of a step of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdatePlan {
    /// The status of the run, unless it is so already.
    pub status: Option<UpdateRunStatus>,
    /// The writes of bindings.
    pub bindings: Vec<Write>,
    /// Those of approval requests.
    pub approvals: Vec<Write>,
    /// The time at which the same facts mean something else.
    pub wake_at: Option<Timestamp>,
    /// True if the run has failed for good: that is to be decided on facts that are certain.
    pub has_failed: bool,
}

/// Why a step cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Something is about to come.
    Missing,
    /// Something may come until then.
    Awaited(Timestamp),
    /// It never can, for this reason.
    Fatal(String),
}

/// Returns the obstacle of a run that cannot begin, or go on, for a reason that lies outside of it.
pub(super) fn invalid(reason: &str) -> Obstacle {
    Obstacle::Fatal(format!("failed to validate the updateRun: {reason}"))
}

/// A step as it is being planned.
pub(super) struct Step<'f, 'a> {
    pub(super) facts: &'f UpdateFacts<'a>,
    pub(super) status: UpdateRunStatus,
    /// The plan so far, without the status.
    pub(super) plan: UpdatePlan,
}

impl Step<'_, '_> {
    /// Returns the generation of the run and the time, which conditions have.
    pub(super) fn dated(&self) -> (Option<i64>, Timestamp) {
        (self.facts.run.metadata.generation, self.facts.now)
    }

    /// Has the run looked at again at a time.
    pub(super) fn look_at(&mut self, time: Timestamp) {
        let wake_at = &mut self.plan.wake_at;
        *wake_at = Some(wake_at.map_or(time, |at| at.min(time)));
    }

    /// Ends the run: it has failed for good.
    pub(super) fn fail(&mut self, is_initialized: bool, reason: &str) {
        let message = format!("cannot continue the updateRun: {reason}");
        let said = if is_initialized {
            messages::run_failed(&message)
        } else {
            vec![messages::not_initialized(&message)]
        };
        let dated = self.dated();
        put(&mut self.status.conditions, said, dated);
    }

    /// Returns the name of the snapshot that the clusters get.
    pub(super) fn snapshot(&self) -> String {
        let placement = &self.facts.run.spec.placement_name;
        master(placement, &self.status.resource_snapshot_index_used)
    }
}

/// Returns the name of the master of a group of snapshots.
pub(super) fn master(placement: &str, index: &str) -> String {
    format!("{placement}-{index}-snapshot")
}
