//! Picks the clusters of one placement: writes its bindings, and then the reasons to the snapshot of its policy.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use objects::Key;
use placement_rules::pick::{SchedulingFacts, plan};
use placement_rules::snapshot::latest_policy;
use tokio::time::Instant;

use crate::deletion;
use crate::fleet::Member;
use crate::index::{Index, Placed};
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::BINDINGS;

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

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(BINDINGS, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        let known = (self.index).read(|index| Some((index.placed(key)?, index.fleet.all(now))));
        let Some((placed, members)) = known else {
            return deletion::sweep(&self.index, &self.hub, key).await;
        };
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
        let (committer, subject) = (&self.hub.committer, Subject::new(BINDINGS, key));
        for writes in plan(&facts) {
            committer.commit(&writes, Some(&subject)).await?;
        }
        Ok(())
    }
}
