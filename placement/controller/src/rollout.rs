//! Takes the next step of one placement's rollout.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use karmada_api::fleet::ClusterResourceBinding;
use karmada_rules::placement::rollout::{RolloutFacts, RolloutPlan, RolloutWrite, plan};
use karmada_rules::placement::snapshot::{has_lost_part, latest_resources};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use kube::api::Preconditions;
use objects::{Key, Metadata};

use crate::index::Index;
use crate::requests::{HubApi, perform, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Reconciles the bindings of placements with their latest snapshots.
pub(crate) struct RolloutReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    pub(crate) progress_deadline: SignedDuration,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for RolloutReconciler {
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
            return Ok(());
        };
        if let Some(until) = awaited {
            self.index.queues.rollout.add_at(key.clone(), until);
            return Ok(());
        }
        let Some(latest) = latest_resources(placed.snapshots()) else {
            return Ok(());
        };
        if !placed.is_served() || has_lost_part(placed.snapshots()) {
            return Ok(());
        }
        let clusters: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.name(), member.reach()))
            .collect();
        let RolloutPlan { writes, wake_at } = plan(&RolloutFacts {
            placement: &placed.placement,
            snapshot: latest.name(),
            bindings: &placed.bindings(),
            clusters: &clusters,
            progress_deadline: self.progress_deadline,
            now,
        });
        perform(&writes, |write| self.take(key, write)).await?;
        if let Some(at) = wake_at {
            self.index.queues.rollout.add_at_time(key.clone(), at, now);
        }
        Ok(())
    }
}

impl RolloutReconciler {
    async fn take(&self, placement: &Key, write: &RolloutWrite) -> Result<(), BoxError> {
        let bindings = self.hub.all::<ClusterResourceBinding>();
        let (RolloutWrite::Delete { name, .. }
        | RolloutWrite::Spec { name, .. }
        | RolloutWrite::Status { name, .. }) = write;
        let echo = |replaced| Echo {
            of: |writes| &mut writes.bindings,
            object: Key::cluster_scoped(&**name),
            owner: placement,
            replaced,
        };
        match write {
            RolloutWrite::Delete {
                resource_version, ..
            } => {
                let same = Preconditions {
                    uid: None,
                    resource_version: Some(resource_version.clone()),
                };
                let delete = self.hub.delete("binding", &bindings, name, Some(same));
                self.index.awaiting(echo(None), delete).await?;
            }
            RolloutWrite::Spec { patch, .. } => {
                let echo = echo(Some(patch.resource_version()));
                let write = self.hub.patch("binding", &bindings, name, patch);
                unless_gone(self.index.awaiting(echo, write).await)?;
            }
            RolloutWrite::Status { patch, .. } => {
                let echo = echo(Some(patch.resource_version()));
                let target = "binding_status";
                let write = self.hub.patch_status(target, &bindings, name, patch);
                unless_gone(self.index.awaiting(echo, write).await)?;
            }
        }
        Ok(())
    }
}
