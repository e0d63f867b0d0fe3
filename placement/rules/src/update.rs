//! The next step of a run: which clusters of a placement get its snapshot now, stage by stage, and the status of the run.
//!
//! ```text
//! policy, bindings → picked ─┐
//! strategy, clusters → stages → initialize: the run knows its stages, once and for all
//!                            └→ validate → advance, stop: bindings, approval requests, status → deletion
//! ```
//!
//! A cluster is given the snapshot only if the run has said before that all before it are done, and that its stage is
//! approved. So whatever becomes of a write, no more clusters are being updated than may be, and no stage comes before its
//! approval. The words are KubeFleet's, by which its users' scripts tell one end from another.
//!
//! - `step`: the step as it is being planned; `facts`: the facts that decide; `messages`: its conditions and their messages.
//! - `picked`: the clusters that are picked, and those that are left; `stages`: the stages of these.
//! - `initialize`, `validate`: whether a run can begin, and go on.
//! - `advance`, `stop`: clusters that are given something, or only become ready; `tasks`: approvals and waits; `deletion`: the
//!   last stage; `explain`: the answer to a person who asks.

mod advance;
mod cluster;
mod deletion;
mod explain;
mod facts;
mod initialize;
mod messages;
mod picked;
mod stages;
mod step;
mod stop;
mod tasks;
#[cfg(test)]
mod tests;
mod validate;

use fleet_api::StagedUpdateRun;
use fleet_api::conditions::{INITIALIZED, PROGRESSING, SUCCEEDED};
use fleet_api::update::{RunState, UpdateRunStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::condition::{Condition, FALSE, TRUE, find};
use objects::{Key, Metadata};

pub use explain::{RunExplanation, explain};
pub use facts::UpdateFacts;
pub use step::UpdatePlan;
use step::{Obstacle, Step};

/// Returns `true` if nothing becomes of a run any more.
pub fn is_finished(run: &StagedUpdateRun) -> bool {
    run.status.as_ref().is_some_and(|status| {
        let ends = [(INITIALIZED, FALSE), (SUCCEEDED, FALSE), (SUCCEEDED, TRUE)];
        ends.iter()
            .any(|(kind, value)| facts::is(&status.conditions, kind, value))
    })
}

/// Returns the key of the placement that a run is about: one of its own namespace, if it has one.
pub fn placement_of(run: &StagedUpdateRun) -> Key {
    Key::new(run.metadata.namespace(), &*run.spec.placement_name)
}

/// Returns `true` if a run is to begin with the latest snapshot of its placement.
pub fn asks_for_latest(run: &StagedUpdateRun) -> bool {
    let status = run.status.as_ref();
    let has_begun = status.is_some_and(|status| status.strategy.is_some());
    !has_begun && !is_finished(run) && run.spec.resource_snapshot_index.is_empty()
}

/// Returns the last word of a run: how it has ended, or how it goes on, or whether it has begun.
pub fn said(status: &UpdateRunStatus) -> Option<&Condition> {
    let mut kinds = [SUCCEEDED, PROGRESSING, INITIALIZED].into_iter();
    kinds.find_map(|kind| find(&status.conditions, kind))
}

/// Returns the name of the snapshot that the clusters of a run get, or are to get once it begins; `None` while there is none.
pub fn snapshot_of<'a>(
    run: &'a StagedUpdateRun,
    snapshots: impl IntoIterator<Item = &'a ObjectMeta>,
) -> Option<String> {
    let index = initialize::index(run, snapshots)?;
    Some(step::master(&run.spec.placement_name, index))
}

/// Plans a step of a run that is not being deleted.
pub fn plan(facts: &UpdateFacts<'_>) -> UpdatePlan {
    if is_finished(facts.run) {
        return UpdatePlan::default();
    }
    let before = facts.run.status.clone().unwrap_or_default();
    let mut step = Step {
        facts,
        status: before.clone(),
        plan: UpdatePlan::default(),
    };
    let is_initialized = facts::is(&before.conditions, INITIALIZED, TRUE);
    let planned = if !is_initialized {
        initialize::initialize(&mut step)
    } else if facts.run.spec.state == RunState::Initialize {
        return UpdatePlan::default();
    } else {
        go_on(&mut step)
    };
    match planned {
        Ok(()) => {}
        // Whatever is missing wakes it when it comes.
        Err(Obstacle::Missing) => return UpdatePlan::default(),
        Err(Obstacle::Awaited(until)) => {
            return UpdatePlan {
                wake_at: Some(until),
                ..UpdatePlan::default()
            };
        }
        Err(Obstacle::Fatal(reason)) => {
            step.plan = UpdatePlan {
                wake_at: step.plan.wake_at,
                has_failed: true,
                ..UpdatePlan::default()
            };
            step.fail(is_initialized, &reason);
        }
    }
    let Step {
        mut status, plan, ..
    } = step;
    messages::stamp(&mut status, facts.run.metadata.generation);
    UpdatePlan {
        status: (status != before).then_some(status),
        ..plan
    }
}

/// Takes a run that knows its stages one step further.
fn go_on(step: &mut Step<'_, '_>) -> Result<(), Obstacle> {
    let picked = validate::validate(step.facts, &step.status)?;
    match step.facts.run.spec.state {
        RunState::Initialize => Ok(()),
        RunState::Run => step.advance(&picked),
        RunState::Stop => step.stop(&picked),
    }
}
