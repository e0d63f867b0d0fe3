//! The reason why a run waits: the answer to a person who asks.

use fleet_api::StagedUpdateRun;
use fleet_api::conditions::{APPROVAL_REQUEST_APPROVED, APPROVAL_REQUEST_CREATED};
use fleet_api::update::RunState;
use objects::condition::TRUE;
use objects::{Key, Metadata};
use serde::Serialize;

use super::facts::is;
use super::{is_finished, placement_of, said};

/// An explanation of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunExplanation {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: String,
    /// The requests that wait for a person's approval.
    pub approvals: Vec<String>,
}

/// Explains the runs of a placement that are not over; where all are, the last of them.
pub fn explain(placement: &Key, runs: &[&StagedUpdateRun]) -> Vec<RunExplanation> {
    let of_it = runs.iter().filter(|run| placement_of(run) == *placement);
    let mut of_it: Vec<_> = of_it.copied().collect();
    of_it.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.metadata.name()));
    let (over, open): (Vec<_>, Vec<_>) = of_it.into_iter().partition(|run| is_finished(run));
    let told = if open.is_empty() {
        over.into_iter().next_back().into_iter().collect()
    } else {
        open
    };
    told.into_iter().map(explained).collect()
}

fn explained(run: &StagedUpdateRun) -> RunExplanation {
    let status = run.status.clone().unwrap_or_default();
    let tasks = status.stages.iter();
    let tasks = tasks.flat_map(|stage| stage.before_tasks.iter().chain(&stage.after_tasks));
    let waiting = tasks.filter(|task| {
        is(&task.conditions, APPROVAL_REQUEST_CREATED, TRUE)
            && !is(&task.conditions, APPROVAL_REQUEST_APPROVED, TRUE)
    });
    let state = match said(&status) {
        Some(_) if !is_finished(run) && run.spec.state == RunState::Initialize => {
            "knows its stages, and waits for spec.state: Run".to_owned()
        }
        Some(said) => format!("says {}: {}", said.reason, said.message),
        None => "has not begun".to_owned(),
    };
    RunExplanation {
        name: run.metadata.name().to_owned(),
        state,
        approvals: waiting
            .map(|task| task.approval_request_name.clone())
            .collect(),
    }
}
