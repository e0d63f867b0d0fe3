//! Picks the clusters of one placement: writes its bindings, and then the reasons to the snapshot of its policy.

use std::sync::Arc;

use fleet_api::snapshot::PolicySnapshotStatus;
use fleet_api::{Binding, PolicySnapshot};
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::patch::{guarded, merge_between};
use objects::{Key, Metadata};
use placement_rules::pick::{BindingWrite, SchedulingFacts, SchedulingPlan, plan};
use placement_rules::snapshot::latest_policy;
use serde_json::json;

use crate::deletion;
use crate::fleet::Member;
use crate::index::{Index, Placed};
use crate::requests::{HubApi, exists, perform, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Reconciles the bindings of placements with their policies.
pub(crate) struct Scheduler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Scheduler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::placement_keys)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        let known = self.index.read(|index| {
            let placed = index.placed(key)?;
            let awaited = index.awaited.bindings.until(key);
            Some((placed, awaited, index.fleet.all(now)))
        });
        let Some((placed, awaited, members)) = known else {
            return deletion::sweep(&self.index, &self.hub, key).await;
        };
        if let Some(until) = awaited {
            self.index.queues.schedule.add_at(key.clone(), until);
            return Ok(());
        }
        if placed.is_served() {
            self.schedule(key, &placed, &members, now).await?;
        }
        Ok(())
    }
}

impl Scheduler {
    async fn schedule(
        &self,
        key: &Key,
        placed: &Placed,
        members: &[Member],
        now: Timestamp,
    ) -> Result<(), BoxError> {
        let Some(policy) = latest_policy(&placed.policies()) else {
            return Ok(());
        };
        let clusters: Vec<_> = members.iter().map(Member::as_fleet).collect();
        let facts = SchedulingFacts {
            placement: &placed.placement,
            policy,
            clusters: &clusters,
            bindings: &placed.bindings(),
            now,
        };
        let SchedulingPlan { bindings, status } = plan(&facts);
        perform(&bindings, |write| self.take(key, write)).await?;
        match status {
            Some(status) => self.tell(key, policy, &status).await,
            None => Ok(()),
        }
    }

    async fn take(&self, placement: &Key, write: &BindingWrite) -> Result<(), BoxError> {
        let bindings = self.hub.of_scope::<Binding>(&placement.namespace);
        match write {
            BindingWrite::Create(binding) => {
                let create = self.hub.create("binding", &bindings, &**binding);
                let echo = echo(binding.metadata.name(), placement, None);
                match self.index.awaiting(echo, create).await {
                    // The watch is about to show it.
                    Err(error) if exists(&error) => {}
                    created => drop(created?),
                }
            }
            BindingWrite::Keep { name, patch }
            | BindingWrite::Restore { name, patch }
            | BindingWrite::Unschedule { name, patch } => {
                let echo = echo(name, placement, Some(patch.resource_version()));
                let patch = self.hub.patch("binding", &bindings, name, patch);
                unless_gone(self.index.awaiting(echo, patch).await)?;
            }
        }
        Ok(())
    }

    /// Writes the decisions to the snapshot of the policy.
    async fn tell(
        &self,
        placement: &Key,
        policy: &PolicySnapshot,
        status: &PolicySnapshotStatus,
    ) -> Result<(), BoxError> {
        let before = policy.status.clone().unwrap_or_default();
        let Some(patch) = merge_between(&json!(before), &json!(status)) else {
            return Ok(());
        };
        let metadata = &policy.metadata;
        let patch = guarded(
            Some(metadata.resource_version()),
            json!({ "status": patch }),
        );
        let policies = self.hub.of_scope::<PolicySnapshot>(&placement.namespace);
        let name = metadata.name();
        let tell = self
            .hub
            .patch_status("policy_status", &policies, name, &patch);
        let echo = echo(name, placement, Some(metadata.resource_version()));
        unless_gone(self.index.awaiting(echo, tell).await)?;
        Ok(())
    }
}

fn echo<'a>(name: &str, placement: &'a Key, replaced: Option<&'a str>) -> Echo<'a> {
    Echo {
        of: |writes| &mut writes.bindings,
        object: Key::new(&*placement.namespace, name),
        owner: placement,
        replaced,
    }
}
