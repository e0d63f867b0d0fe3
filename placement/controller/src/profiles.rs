//! Keeps the `ClusterProfile` of one cluster of the fleet, by which programs of others find it.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use objects::Key;
use placement_rules::profile::{ProfileFacts, plan};
use tokio::time::Instant;

use crate::identity::NAMESPACE;
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::PROFILES;

/// Reconciles profiles of clusters.
pub(crate) struct ProfileReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for ProfileReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| index.fleet.keys())
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(PROFILES, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        let of_profile = Key::new(NAMESPACE, &*key.name);
        let known = self.index.read(|index| {
            // Many hubs have no inventory.
            let member = index
                .serves_profiles()
                .then(|| index.fleet.member(&key.name, now));
            let profile = index.profiles.get(&of_profile).cloned();
            Some((member??, profile))
        });
        let Some((member, profile)) = known else {
            return Ok(());
        };
        let write = plan(&ProfileFacts {
            cluster: &member.cluster,
            obstacle: member.obstacle,
            profile: profile.as_deref(),
            namespace: NAMESPACE,
            now,
        });
        if let Some(write) = write {
            let subject = Subject::new(PROFILES, key);
            self.hub.committer.write(&write, Some(&subject)).await?;
        }
        Ok(())
    }
}
