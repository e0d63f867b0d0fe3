//! Keeps the `ClusterProfile` of one cluster of the fleet, by which programs of others find it.

use std::sync::Arc;

use fleet_api::ClusterProfile;
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use kube::api::Preconditions;
use objects::{Key, Metadata};
use placement_rules::profile::{ProfileFacts, ProfileWrite, plan};

use crate::identity::NAMESPACE;
use crate::requests::{HubApi, exists, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Reconciles profiles of clusters.
pub(crate) struct ProfileReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for ProfileReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| {
            let members = index.fleet.members.iter();
            members.map(|(key, _)| key.clone()).collect()
        })
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        let of_profile = Key::new(NAMESPACE, &*key.name);
        let known = self.index.read(|index| {
            // Many hubs have no inventory.
            let member = index
                .serves_profiles
                .then(|| index.fleet.member(&key.name, now));
            let profile = index.profiles.get(&of_profile).cloned();
            let awaited = index.awaited.profiles.until(key);
            Some((member??, profile, awaited))
        });
        let Some((member, profile, awaited)) = known else {
            return Ok(());
        };
        if let Some(until) = awaited {
            self.index.queues.profiles.add_at(key.clone(), until);
            return Ok(());
        }
        let write = plan(&ProfileFacts {
            cluster: &member.cluster,
            obstacle: member.obstacle,
            profile: profile.as_deref(),
            namespace: NAMESPACE,
            now,
        });
        let Some(write) = write else {
            return Ok(());
        };
        let echo = Echo {
            of: |writes| &mut writes.profiles,
            object: of_profile,
            owner: key,
            replaced: profile.as_ref().map(|one| one.metadata.resource_version()),
        };
        self.take(&key.name, write, echo).await
    }
}

impl ProfileReconciler {
    async fn take(&self, name: &str, write: ProfileWrite, echo: Echo<'_>) -> Result<(), BoxError> {
        let (hub, index) = (&self.hub, &self.index);
        let profiles = hub.within::<ClusterProfile>(NAMESPACE);
        match write {
            ProfileWrite::Create(new) => {
                let create = hub.create("cluster_profile", &profiles, &*new);
                match index.awaiting(echo, create).await {
                    // The watch is about to show it.
                    Err(error) if exists(&error) => {}
                    created => drop(created?),
                }
            }
            ProfileWrite::Patch(patch) => {
                let patch = hub.patch("cluster_profile", &profiles, name, &patch);
                unless_gone(index.awaiting(echo, patch).await)?;
            }
            ProfileWrite::Status(patch) => {
                let target = "cluster_profile_status";
                let patch = hub.patch_status(target, &profiles, name, &patch);
                unless_gone(index.awaiting(echo, patch).await)?;
            }
            ProfileWrite::Delete { uid } => {
                let same = Preconditions {
                    uid: Some(uid),
                    resource_version: None,
                };
                let delete = hub.delete("cluster_profile", &profiles, name, Some(same));
                index.awaiting(echo, delete).await?;
            }
        }
        Ok(())
    }
}
