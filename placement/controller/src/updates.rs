//! Takes the next step of one run: some clusters of its placement get its snapshot, stage by stage.
//!
//! - `index`: the runs of the hub, and what they name.
//! - `known`: what decides about one, as the watches show it, or as the API has it where the run is to fail for good.
//! - `events`: what users are told.

mod events;
mod index;
mod known;

use std::sync::Arc;

use fleet_api::names::UPDATE_RUN_FINALIZER;
use fleet_api::update::UpdateRunStatus;
use fleet_api::{ApprovalRequest, StagedUpdateRun};
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use kube::Resource;
use kube::api::Preconditions;
use objects::patch::{guarded, merge_between};
use objects::{Key, Metadata};
use placement_rules::envelope::Opening;
use placement_rules::update::{UpdatePlan, UpdateWrite, is_finished, placement_of};
use serde_json::json;
use tokio::time::Instant;

pub(crate) use index::RunIndex;

use crate::index::Index;
use crate::requests::{HubApi, exists, perform, unless_gone};
use crate::rollout;
use crate::watch::{Echo, SharedIndex};
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
        self.index.read(|index| {
            let runs = index.runs.runs.iter();
            runs.map(|(key, _)| key.clone()).collect()
        })
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let run = self.index.read(|index| index.runs.runs.get(key).cloned());
        let Some(run) = run else {
            return Ok(());
        };
        if let Some(until) = self.awaited(key, &run) {
            self.index.queues.updates.add_at(key.clone(), until);
            return Ok(());
        }
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
    /// Returns the time until which a write is waited for.
    fn awaited(&self, key: &Key, run: &StagedUpdateRun) -> Option<Instant> {
        let placement = placement_of(run);
        self.index.read(|index| {
            let awaited = &index.awaited;
            let of_run = [&awaited.runs, &awaited.approvals].map(|one| one.until(key));
            let of_placement =
                [&awaited.bindings, &awaited.snapshots].map(|one| one.until(&placement));
            let until = of_run.into_iter().chain(of_placement).flatten();
            until.max()
        })
    }

    async fn advance(&self, key: &Key, run: &StagedUpdateRun) -> Result<(), BoxError> {
        let placement = placement_of(run);
        let Some(known) = Known::read(&self.index, key) else {
            return Ok(());
        };
        let asks_for_latest = known.asks_for_latest();
        let is_answered = |index: &Index| index.runs.is_answered(&placement, run);
        if asks_for_latest && !self.index.read(is_answered) {
            // Nothing else makes one: what does wakes the run then.
            self.index.queues.snapshots.add(placement);
            return Ok(());
        }
        // What was edited before it was made is in the latest snapshot.
        let burst = self.index.bursts.pending(&placement);
        let burst = burst.filter(|_| asks_for_latest);
        if let Some(until) = burst.or_else(|| known.waits(self.opening)) {
            self.index.queues.updates.add_at(key.clone(), until);
            return Ok(());
        }
        let now = (self.clock)();
        let mut plan = known.plan(self.opening, now);
        if plan.has_failed {
            // A failure is for good: it is not decided on what one watch shows later than another.
            let Some(certain) = known.certain(&self.hub).await? else {
                return Ok(());
            };
            plan = certain.plan(self.opening, now);
        }
        let UpdatePlan {
            status,
            writes,
            wake_at,
            ..
        } = plan;
        let written = perform(&writes, |write| self.take(key, &placement, write)).await;
        if let Some(at) = wake_at {
            self.index.queues.updates.add_at_time(key.clone(), at, now);
        }
        if let Some(after) = status {
            self.tell(key, run, &after).await?;
        }
        written
    }

    async fn take(&self, key: &Key, placement: &Key, write: &UpdateWrite) -> Result<(), BoxError> {
        let (hub, index) = (&self.hub, &self.index);
        let approvals = hub.of_scope::<ApprovalRequest>(&key.namespace);
        let echo = |name: &str, replaced| Echo {
            of: |writes| &mut writes.approvals,
            object: Key::new(&*key.namespace, name),
            owner: key,
            replaced,
        };
        match write {
            UpdateWrite::Binding(write) => rollout::take(index, hub, placement, write).await?,
            UpdateWrite::Ask(request) => {
                let create = hub.create("approval", &approvals, &**request);
                let echo = echo(request.metadata.name(), None);
                match index.awaiting(echo, create).await {
                    // The watch is about to show it.
                    Err(error) if exists(&error) => {}
                    created => drop(created?),
                }
            }
            UpdateWrite::Accept { name, patch } => {
                let echo = echo(name, Some(patch.resource_version()));
                let accept = hub.patch_status("approval_status", &approvals, name, patch);
                unless_gone(index.awaiting(echo, accept).await)?;
            }
            UpdateWrite::Withdraw { name, uid } => {
                let same = Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: None,
                };
                let delete = hub.delete("approval", &approvals, name, Some(same));
                index.awaiting(echo(name, None), delete).await?;
            }
        }
        Ok(())
    }

    /// Gives a run the finalizer with which it waits for its approval requests. Returns `true` if it had to.
    async fn hold(&self, key: &Key, run: &StagedUpdateRun) -> Result<bool, BoxError> {
        let mut finalizers = run.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|one| one == UPDATE_RUN_FINALIZER) {
            return Ok(false);
        }
        finalizers.push(UPDATE_RUN_FINALIZER.to_owned());
        self.set_finalizers(key, run, &finalizers).await
    }

    /// Ends a run: what it has asked for goes with it. The clusters stay as they are.
    async fn end(&self, key: &Key, run: &StagedUpdateRun) -> Result<(), BoxError> {
        let mut finalizers = run.metadata.finalizers.clone().unwrap_or_default();
        let before = finalizers.len();
        finalizers.retain(|one| one != UPDATE_RUN_FINALIZER);
        if finalizers.len() == before {
            return Ok(());
        }
        let requests = self.index.read(|index| index.runs.approvals.of(key));
        let approvals = self.hub.of_scope::<ApprovalRequest>(&key.namespace);
        let left = requests.iter().filter(|one| !one.metadata.is_deleting());
        let names: Vec<_> = left.map(|one| one.metadata.name()).collect();
        perform(&names, async |name| {
            self.hub.delete("approval", &approvals, name, None).await?;
            Ok(())
        })
        .await?;
        self.set_finalizers(key, run, &finalizers).await?;
        Ok(())
    }

    async fn set_finalizers(
        &self,
        key: &Key,
        run: &StagedUpdateRun,
        finalizers: &[String],
    ) -> Result<bool, BoxError> {
        let version = run.metadata.resource_version();
        let body = json!({ "metadata": { "finalizers": finalizers } });
        let patch = guarded(Some(version), body);
        let runs = self.hub.of_scope::<StagedUpdateRun>(&key.namespace);
        let write = self.hub.patch("run_finalizers", &runs, &key.name, &patch);
        let written = self.index.awaiting(itself(key, version), write).await;
        Ok(unless_gone(written)?.is_some())
    }

    async fn tell(
        &self,
        key: &Key,
        run: &StagedUpdateRun,
        after: &UpdateRunStatus,
    ) -> Result<(), BoxError> {
        let before = run.status.clone().unwrap_or_default();
        let Some(patch) = merge_between(&json!(before), &json!(after)) else {
            return Ok(());
        };
        let version = run.metadata.resource_version();
        let patch = guarded(Some(version), json!({ "status": patch }));
        let runs = self.hub.of_scope::<StagedUpdateRun>(&key.namespace);
        let write = self
            .hub
            .patch_status("run_status", &runs, &key.name, &patch);
        let written = self.index.awaiting(itself(key, version), write).await;
        if unless_gone(written)?.is_some()
            && let Some(events) = &self.events
            && let Some(event) = events::transition(&before, after)
        {
            events.record(run.object_ref(&run.scope()), event);
        }
        Ok(())
    }
}

/// Returns the echo of a write to a run itself.
fn itself<'a>(run: &'a Key, version: &'a str) -> Echo<'a> {
    Echo::of_itself(|writes| &mut writes.runs, run, version)
}
