//! Says where one placement stands, and `copy` where those can read it who may read in its namespace only.

mod copy;

use std::sync::Arc;

use fleet_api::Placement;
use fleet_api::placement::PlacementStatus;
use jiff::{SignedDuration, Timestamp};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use objects::condition::upsert;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use placement_rules::snapshot::{has_lost_part, latest_policy, latest_resources};
use placement_rules::status::{StatusFacts, given_snapshot, plan};
use tokio::time::Instant;

use crate::deletion;
use crate::events::transitions;
use crate::index::{Index, Placed, Selected, group};
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::STATUSES;

/// The time between two looks at the rest of a placement that is being deleted.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Reconciles the status of placements.
pub(crate) struct StatusReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) progress_deadline: SignedDuration,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for StatusReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::placement_keys)
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(STATUSES, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let known = self.index.read(|index| {
            let placed = index.placed(key)?;
            Some((placed, index.selected.get(key).cloned()))
        });
        let Some((placed, selected)) = known else {
            return Ok(());
        };
        let now = (self.clock)();
        let (status, wake_at) = if placed.placement.metadata.is_deleting() {
            self.of_end(&placed, now)
        } else {
            self.of_placement(&placed, selected, now)
        };
        if let Some(at) = wake_at {
            self.index.queues.status.add_at_time(key.clone(), at, now);
        }
        let (status, copied) = self.copied(&placed.placement, status, now).await;
        let told = match status {
            Some(after) => self.tell(&placed.placement, &after).await,
            None => Ok(()),
        };
        told.and(copied)
    }
}

impl StatusReconciler {
    fn of_placement(
        &self,
        placed: &Placed,
        selected: Option<Selected>,
        now: Timestamp,
    ) -> (Option<PlacementStatus>, Option<Timestamp>) {
        // While that is not known, its status stays.
        let Some(selected) = selected.filter(|_| !has_lost_part(placed.snapshots())) else {
            return (None, None);
        };
        let (snapshot, bindings) = (latest_resources(placed.snapshots()), placed.bindings());
        let given = given_snapshot(&placed.placement, &bindings);
        let given = given.map_or_else(Vec::new, |name| group(&placed.snapshots, name));
        let given = given.iter().map(|one| one.object());
        let given: Vec<_> = given.flat_map(|one| one.spec.selected_resources).collect();
        let held = self.index.read(|index| index.held(placed));
        plan(&StatusFacts {
            placement: &placed.placement,
            selection: selected.as_ref(),
            policy: latest_policy(&placed.policies()),
            snapshot,
            given: &given,
            bindings: &bindings,
            held: &held,
            progress_deadline: self.progress_deadline,
            now,
        })
    }

    fn of_end(
        &self,
        placed: &Placed,
        now: Timestamp,
    ) -> (Option<PlacementStatus>, Option<Timestamp>) {
        let removing = deletion::removing(&self.index, placed, now);
        let status = removing.map(|removing| {
            let mut after = placed.placement.status.clone().unwrap_or_default();
            upsert(&mut after.conditions, removing);
            after
        });
        let is_left = !placed.bindings().is_empty();
        (status, is_left.then(|| now + LOOK_AGAIN))
    }

    async fn tell(&self, placement: &Placement, after: &PlacementStatus) -> Result<(), BoxError> {
        let before = placement.status.clone().unwrap_or_default();
        let scope = placement.scope();
        let object = ObjectRef::of(placement, &scope);
        let Some(write) = Write::status_between("placement_status", object, &before, after) else {
            return Ok(());
        };
        let subject = Subject::new(STATUSES, &placement.metadata.key());
        let outcome = self.hub.committer.write(&write, Some(&subject)).await?;
        if outcome.is_stored()
            && let Some(events) = &self.events
        {
            for event in transitions(scope, &before, after) {
                events.record(write.object.reference(), event);
            }
        }
        Ok(())
    }
}
