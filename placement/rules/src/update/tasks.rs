//! The tasks of a stage beside its clusters, for which it waits: a time, or a person.

use fleet_api::ApprovalRequest;
use fleet_api::conditions::{
    APPROVAL_ACCEPTED, APPROVAL_REQUEST_APPROVED, APPROVED, PROGRESSING, WAIT_TIME_ELAPSED,
};
use fleet_api::names::{
    AFTER_STAGE, BEFORE_STAGE, IS_LATEST_APPROVAL, TARGET_RUN, TARGET_STAGE, TASK_TYPE,
};
use fleet_api::update::{APPROVAL, ApprovalRequestSpec, StageConfig, StageStatus, StageTaskStatus};
use jiff::Timestamp;
use kube::core::ObjectMeta;
use objects::Metadata;
use objects::condition::{TRUE, find};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use super::facts::is;
use super::messages;
use super::stages::duration;
use super::step::Step;
use crate::condition::put;

/// Whether the tasks before or after a stage are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// They are not.
    Open,
    /// They are, as is being said now.
    DoneNow,
    /// They are, as was said before.
    Done,
}

impl Step<'_, '_> {
    /// Looks at the tasks for which the first cluster of a stage waits.
    ///
    /// # Errors
    /// Fails with a message if a request of the same name is about something else.
    pub(super) fn before(&mut self, stage: &mut StageStatus) -> Result<Tasks, String> {
        let mut tasks = Tasks::Done;
        for task in &mut stage.before_tasks {
            let one = self.approval(task, &stage.stage_name, BEFORE_STAGE)?;
            tasks = tasks.and(one);
        }
        Ok(tasks)
    }

    /// Looks at the tasks for which the next stage waits, in a stage that said that it waits.
    ///
    /// # Errors
    /// Fails with a message if a request of the same name is about something else.
    pub(super) fn after(
        &mut self,
        config: &StageConfig,
        stage: &mut StageStatus,
    ) -> Result<Tasks, String> {
        let since = find(&stage.conditions, PROGRESSING);
        let since = since.and_then(|waits| waits.last_transition_time.as_ref());
        let since = since.map_or(self.facts.now, |time| time.0);
        let mut tasks = Tasks::Done;
        for (task, config) in stage.after_tasks.iter_mut().zip(&config.after_stage_tasks) {
            let one = if task.type_ == APPROVAL {
                self.approval(task, &stage.stage_name, AFTER_STAGE)?
            } else {
                self.wait(task, config.wait_time.as_deref(), since)
            };
            tasks = tasks.and(one);
        }
        Ok(tasks)
    }

    fn wait(&mut self, task: &mut StageTaskStatus, time: Option<&str>, since: Timestamp) -> Tasks {
        if is(&task.conditions, WAIT_TIME_ELAPSED, TRUE) {
            return Tasks::Done;
        }
        let time = time.and_then(duration).unwrap_or_default();
        let due = since.saturating_add(time).unwrap_or(Timestamp::MAX);
        if due > self.facts.now {
            self.look_at(due);
            return Tasks::Open;
        }
        let dated = self.dated();
        put(&mut task.conditions, [messages::wait_elapsed()], dated);
        Tasks::DoneNow
    }

    fn approval(
        &mut self,
        task: &mut StageTaskStatus,
        stage: &str,
        when: &'static str,
    ) -> Result<Tasks, String> {
        if is(&task.conditions, APPROVAL_REQUEST_APPROVED, TRUE) {
            return Ok(Tasks::Done);
        }
        let name = &*task.approval_request_name;
        let mut requests = self.facts.approvals.iter();
        let Some(request) = requests.find(|one| one.metadata.name() == name) else {
            let request = self.request(name, stage, when);
            let scope = request.scope();
            self.plan
                .approvals
                .push(Write::create("approval", &request, &scope));
            return Ok(Tasks::Open);
        };
        if request.metadata.is_deleting() {
            return Ok(Tasks::Open);
        }
        if self.is_earlier(request) {
            // Its approval is none of this run.
            let withdrawal = Write::delete("approval", reference(request));
            self.plan.approvals.push(withdrawal.guarded(Guard::Uid));
            return Ok(Tasks::Open);
        }
        let run = self.facts.run.metadata.name();
        let spec = &request.spec;
        if spec.run != run || spec.stage != stage {
            return Err(format!(
                "the approval request task `{name}` is targeting update run `{}` and stage `{}`, want target update run \
                 `{run}` and stage `{stage}`",
                spec.run, spec.stage
            ));
        }
        let dated = self.dated();
        put(&mut task.conditions, [messages::request_created()], dated);
        if says(request, APPROVAL_ACCEPTED) {
            put(&mut task.conditions, [messages::request_approved()], dated);
            return Ok(Tasks::DoneNow);
        }
        // Only an accepted approval counts: until then it can be taken back.
        if says(request, APPROVED) {
            self.accept(request);
        }
        Ok(Tasks::Open)
    }

    /// Returns `true` if a request was made for an earlier run of this name.
    fn is_earlier(&self, request: &ApprovalRequest) -> bool {
        let run = self.facts.run.metadata.creation_timestamp.as_ref();
        let created = request.metadata.creation_timestamp.as_ref();
        created
            .zip(run)
            .is_some_and(|(request, run)| request.0 < run.0)
    }

    fn request(&self, name: &str, stage: &str, when: &str) -> ApprovalRequest {
        let run = self.facts.run.metadata.name();
        let labels = [
            (TARGET_RUN, run),
            (TARGET_STAGE, stage),
            (TASK_TYPE, when),
            (IS_LATEST_APPROVAL, "true"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        ApprovalRequest {
            api_version: ApprovalRequest::API_VERSION.to_owned(),
            kind: ApprovalRequest::kind_of(self.facts.run.scope()).to_owned(),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: self.facts.run.metadata.namespace.clone(),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            spec: ApprovalRequestSpec {
                run: run.to_owned(),
                stage: stage.to_owned(),
            },
            status: None,
        }
    }

    fn accept(&mut self, request: &ApprovalRequest) {
        let status = request.status.clone().unwrap_or_default();
        let mut conditions = status.conditions;
        let dated = (request.metadata.generation, self.facts.now);
        put(&mut conditions, [messages::request_accepted()], dated);
        let body = json!({ "status": { "conditions": conditions } });
        let write = Write::merge("approval_status", reference(request), body);
        self.plan
            .approvals
            .push(write.of_status().guarded(Guard::Version));
    }
}

fn reference(request: &ApprovalRequest) -> ObjectRef {
    ObjectRef::of(request, &request.scope())
}

impl Tasks {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            (Self::Done, Self::Done) => Self::Done,
            _ => Self::DoneNow,
        }
    }
}

/// Returns `true` if a condition of a request is True. Nothing in one ever changes, so that a person who leaves out the
/// generation means this one.
fn says(request: &ApprovalRequest, kind: &str) -> bool {
    let status = request.status.as_ref();
    let said = status.and_then(|status| find(&status.conditions, kind));
    said.is_some_and(|one| {
        let is_current = match one.observed_generation {
            None | Some(0) => true,
            generation => generation == request.metadata.generation,
        };
        one.status == TRUE && is_current
    })
}
