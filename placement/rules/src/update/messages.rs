//! The words about a run, its stages, clusters and tasks: they are KubeFleet's.

use fleet_api::StagedUpdateRun;
use fleet_api::conditions::{
    APPROVAL_ACCEPTED, APPROVAL_REQUEST_APPROVED, APPROVAL_REQUEST_CREATED, INITIALIZED,
    PROGRESSING, RUN_STOPPED, RUN_STUCK, RUN_WAITING, STARTED, SUCCEEDED, WAIT_TIME_ELAPSED,
};
use fleet_api::update::{StageStatus, UpdateRunStatus};
use objects::Scope;
use objects::condition::{Condition, FALSE, TRUE};

use crate::condition::condition;

const UNKNOWN: &str = "Unknown";

pub(super) fn initialized(scope: Scope) -> Condition {
    let message = format!(
        "{} initialized successfully",
        StagedUpdateRun::kind_of(scope)
    );
    condition(
        (INITIALIZED, TRUE),
        "UpdateRunInitializedSuccessfully",
        &message,
    )
}

pub(super) fn not_initialized(message: &str) -> Condition {
    condition((INITIALIZED, FALSE), "UpdateRunInitializedFailed", message)
}

pub(super) fn run_progressing() -> Condition {
    let message = "The update run is making progress";
    condition((PROGRESSING, TRUE), "UpdateRunProgressing", message)
}

/// Says that a run waits for tasks `before-stage` or `after-stage`.
pub(super) fn run_waiting(when: &str, stage: &str) -> Condition {
    let message = format!("The updateRun is waiting for {when} tasks in stage {stage} to complete");
    condition((PROGRESSING, FALSE), RUN_WAITING, &message)
}

/// The clusters that a message names.
const NAMED: usize = 3;

/// Says which clusters do not become ready, and why the first does not.
pub(super) fn run_stuck(clusters: &[&str], stage: &str, why: &str) -> Condition {
    let more = if clusters.len() > NAMED { "..." } else { "" };
    let named: Vec<_> = clusters.iter().take(NAMED).copied().collect();
    let message = format!(
        "The updateRun is stuck waiting for {}{more} cluster(s) in stage {stage} to finish updating, please check \
         placement status for potential errors: {why}",
        named.join(", ")
    );
    condition((PROGRESSING, FALSE), RUN_STUCK, &message)
}

pub(super) fn run_stopping() -> Condition {
    let message = "The update run is the process of stopping, waiting for all the updating clusters to finish updating \
                   before completing the stop process";
    condition((PROGRESSING, UNKNOWN), "UpdateRunStopping", message)
}

pub(super) fn run_stopped() -> Condition {
    let message = "The update run has been stopped";
    condition((PROGRESSING, FALSE), RUN_STOPPED, message)
}

pub(super) fn run_succeeded() -> [Condition; 2] {
    let reason = "UpdateRunSucceeded";
    [
        condition((PROGRESSING, FALSE), reason, "All stages are completed"),
        condition(
            (SUCCEEDED, TRUE),
            reason,
            "All stages are completed successfully",
        ),
    ]
}

pub(super) fn run_failed(message: &str) -> Vec<Condition> {
    let reason = "UpdateRunFailed";
    let aborted = "The stages are aborted due to a non-recoverable error";
    vec![
        condition((PROGRESSING, FALSE), reason, aborted),
        condition((SUCCEEDED, FALSE), reason, message),
    ]
}

pub(super) fn stage_started() -> Condition {
    let message = "Clusters in the stage started updating";
    condition((PROGRESSING, TRUE), "StageUpdatingStarted", message)
}

pub(super) fn stage_waits_before() -> Condition {
    stage_waiting("Not all before-stage tasks are completed, waiting for approval")
}

pub(super) fn stage_waits_after() -> Condition {
    stage_waiting(
        "All clusters in the stage are updated, waiting for after-stage tasks to complete",
    )
}

fn stage_waiting(message: &str) -> Condition {
    condition((PROGRESSING, FALSE), "StageUpdatingWaiting", message)
}

pub(super) fn stage_stopping() -> Condition {
    let message = "Waiting for all the updating clusters to finish updating before completing the stop process";
    condition((PROGRESSING, UNKNOWN), "StageUpdatingStopping", message)
}

pub(super) fn stage_stopped() -> Condition {
    let message = "All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed";
    condition((PROGRESSING, FALSE), "StageUpdatingStopped", message)
}

pub(super) fn stage_succeeded() -> [Condition; 2] {
    let reason = "StageUpdatingSucceeded";
    let done = "All clusters in the stage are updated and after-stage tasks are completed";
    [
        condition((PROGRESSING, FALSE), reason, done),
        condition(
            (SUCCEEDED, TRUE),
            reason,
            "Stage update completed successfully",
        ),
    ]
}

pub(super) fn stage_skipped() -> [Condition; 2] {
    let message = "Stage skipped because it has no clusters";
    [(PROGRESSING, FALSE), (SUCCEEDED, TRUE)]
        .map(|said| condition(said, "StageUpdatingSkippedNoClusters", message))
}

pub(super) fn stage_failed(message: &str) -> [Condition; 2] {
    let reason = "StageUpdatingFailed";
    let aborted = "Stage update aborted due to a non-recoverable error";
    [
        condition((PROGRESSING, FALSE), reason, aborted),
        condition((SUCCEEDED, FALSE), reason, message),
    ]
}

pub(super) fn cluster_started() -> Condition {
    condition(
        (STARTED, TRUE),
        "ClusterUpdatingStarted",
        "Cluster update started",
    )
}

pub(super) fn cluster_succeeded() -> Condition {
    let message = "Cluster update completed successfully";
    condition((SUCCEEDED, TRUE), "ClusterUpdatingSucceeded", message)
}

pub(super) fn cluster_failed(message: &str) -> Condition {
    condition((SUCCEEDED, FALSE), "ClusterUpdatingFailed", message)
}

pub(super) fn request_created() -> Condition {
    condition(
        (APPROVAL_REQUEST_CREATED, TRUE),
        "StageTaskApprovalRequestCreated",
        "ApprovalRequest object is created",
    )
}

pub(super) fn request_approved() -> Condition {
    condition(
        (APPROVAL_REQUEST_APPROVED, TRUE),
        "StageTaskApprovalRequestApproved",
        "ApprovalRequest object is approved",
    )
}

/// Says on a request that it is approved for good.
pub(super) fn request_accepted() -> Condition {
    condition(
        (APPROVAL_ACCEPTED, TRUE),
        "ApprovalRequestApprovalAccepted",
        "The approval request has been approved and cannot be reverted",
    )
}

pub(super) fn wait_elapsed() -> Condition {
    condition(
        (WAIT_TIME_ELAPSED, TRUE),
        "AfterStageTaskWaitTimeElapsed",
        "Wait time elapsed",
    )
}

/// Says of every condition that it is about this generation of the run, of which only the wanted state ever changes.
pub(super) fn stamp(status: &mut UpdateRunStatus, generation: Option<i64>) {
    let stages = status.stages.iter_mut().chain(&mut status.deletion_stage);
    let of_stages = stages.flat_map(|stage| {
        let StageStatus {
            clusters,
            after_tasks,
            before_tasks,
            conditions,
            ..
        } = stage;
        let of_clusters = clusters.iter_mut().flat_map(|one| &mut one.conditions);
        let tasks = after_tasks.iter_mut().chain(before_tasks);
        let of_tasks = tasks.flat_map(|one| &mut one.conditions);
        conditions.iter_mut().chain(of_clusters).chain(of_tasks)
    });
    for condition in status.conditions.iter_mut().chain(of_stages) {
        condition.observed_generation = generation;
    }
}
