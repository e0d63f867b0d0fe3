//! Takes the next step of one run: some clusters of its placement get its snapshot, stage by stage.
//!
//! - `known`: the facts that decide about one, as the watches show it, or as the API has it where the run is to fail for good.
//! - `events`: the Events about one.

mod events;
mod known;

use std::sync::Arc;

use fleet_api::StagedUpdateRun;
use fleet_api::names::UPDATE_RUN_FINALIZER;
use fleet_api::update::UpdateRunStatus;
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use placement_rules::envelope::Opening;
use placement_rules::update::{UpdatePlan, is_finished, placement_of};
use tokio::time::Instant;

use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::{BINDINGS, RUNS, SNAPSHOTS};
use known::Known;

/// Reconciles runs.
pub(crate) struct Updater {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    /// Which objects are opened.
    pub(crate) opening: Opening,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Updater {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index
            .read(|index| index.runs.runs.keys().cloned().collect())
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        let run = self.index.read(|index| index.runs.runs.get(key).cloned())?;
        let placement = placement_of(&run);
        let of_placement = [BINDINGS, SNAPSHOTS].map(|topic| Subject::new(topic, &placement));
        let subjects = of_placement.into_iter().chain([Subject::new(RUNS, key)]);
        self.hub.committer.held_until(subjects)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let run = self.index.read(|index| index.runs.runs.get(key).cloned());
        let Some(run) = run else {
            return Ok(());
        };
        if run.metadata.is_deleting() {
            return self.end(key, &run).await;
        }
        if is_finished(&run) || self.hold(key, &run).await? {
            return Ok(());
        }
        self.advance(key, &run).await
    }
}

impl Updater {
    async fn advance(&self, key: &Key, run: &StagedUpdateRun) -> Result<(), BoxError> {
        let placement = placement_of(run);
        let Some(known) = Known::read(&self.index, key) else {
            return Ok(());
        };
        let asks_for_latest = known.asks_for_latest();
        let is_answered = (self.index).read(|index| index.runs.is_answered(&placement, run));
        if asks_for_latest && !is_answered {
            // The loop of snapshots makes one, and wakes the run then.
            self.index.queues.snapshots.add(placement);
            return Ok(());
        }
        // An edit before it was made is in the latest snapshot.
        let burst = self.index.debounce.pending(&placement);
        let burst = burst.filter(|_| asks_for_latest);
        if let Some(until) = burst.or_else(|| known.waits(self.opening)) {
            self.index.queues.updates.add_at(key.clone(), until);
            return Ok(());
        }
        let now = (self.clock)();
        let mut plan = known.plan(self.opening, now);
        if plan.has_failed {
            // A failure is for good: the API decides about it, for one watch may show less than another.
            let Some(certain) = known.certain(&self.hub).await? else {
                return Ok(());
            };
            plan = certain.plan(self.opening, now);
        }
        let UpdatePlan {
            status,
            bindings,
            approvals,
            wake_at,
            ..
        } = plan;
        let committer = &self.hub.committer;
        let (of_placement, of_run) = (Subject::new(BINDINGS, &placement), Subject::new(RUNS, key));
        let given = committer.commit(&bindings, Some(&of_placement)).await;
        let asked = committer.commit(&approvals, Some(&of_run)).await;
        if let Some(at) = wake_at {
            self.index.queues.updates.add_at_time(key.clone(), at, now);
        }
        if let Some(after) = status {
            self.tell(key, run, &after).await?;
        }
        given.and(asked)?;
        Ok(())
    }

    /// Gives a run the finalizer with which it waits for its approval requests. Returns `true` if it had to.
    async fn hold(&self, key: &Key, run: &StagedUpdateRun) -> Result<bool, BoxError> {
        let Some(finalizers) = run.metadata.with_finalizers(&[UPDATE_RUN_FINALIZER]) else {
            return Ok(false);
        };
        self.set_finalizers(key, run, &finalizers).await
    }

    /// Ends a run: its requests go with it. The clusters stay as they are.
    async fn end(&self, key: &Key, run: &StagedUpdateRun) -> Result<(), BoxError> {
        let Some(rest) = run.metadata.without_finalizers(&[UPDATE_RUN_FINALIZER]) else {
            return Ok(());
        };
        let requests = self.index.read(|index| index.runs.approvals.of(key));
        let left = requests.iter().filter(|one| !one.metadata.is_deleting());
        let deletions =
            left.map(|one| Write::delete("approval", ObjectRef::of(&**one, &one.scope())));
        let deletions: Vec<_> = deletions.collect();
        self.hub.committer.commit(&deletions, None).await?;
        self.set_finalizers(key, run, &rest).await?;
        Ok(())
    }

    async fn set_finalizers(
        &self,
        key: &Key,
        run: &StagedUpdateRun,
        finalizers: &[String],
    ) -> Result<bool, BoxError> {
        let object = ObjectRef::of(run, &run.scope());
        let write = Write::finalizers("run_finalizers", object, finalizers);
        let subject = Subject::new(RUNS, key);
        let outcome = self.hub.committer.write(&write, Some(&subject)).await?;
        Ok(outcome.is_stored())
    }

    async fn tell(
        &self,
        key: &Key,
        run: &StagedUpdateRun,
        after: &UpdateRunStatus,
    ) -> Result<(), BoxError> {
        let before = run.status.clone().unwrap_or_default();
        let object = ObjectRef::of(run, &run.scope());
        let Some(write) = Write::status_between("run_status", object, &before, after) else {
            return Ok(());
        };
        let subject = Subject::new(RUNS, key);
        let outcome = self.hub.committer.write(&write, Some(&subject)).await?;
        if outcome.is_stored()
            && let Some(events) = &self.events
            && let Some(event) = events::transition(&before, after)
        {
            events.record(write.object.reference(), event);
        }
        Ok(())
    }
}
