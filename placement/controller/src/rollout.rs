//! Takes the next step of one placement's rollout.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_api::placement::ResourceIdentifier;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use objects::write::Plan;
use objects::{Key, Metadata};
use parking_lot::Mutex;
use placement_rules::envelope::Opening;
use placement_rules::overrides::{Overrides, OverridesFacts, contents, selects};
use placement_rules::rollout::{RolloutFacts, plan};
use placement_rules::snapshot::{has_lost_part, latest_resources};
use placement_rules::strategy::is_external;
use tokio::time::Instant;

use crate::index::{Index, Placed, group};
use crate::overrides::{Pending, Snapshot};
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::BINDINGS;

/// Reconciles the bindings of placements with their latest snapshots.
pub(crate) struct RolloutReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Which objects are opened.
    pub(crate) opening: Opening,
    pub(crate) contents: Mutex<BTreeMap<Key, Contents>>,
    pub(crate) progress_deadline: SignedDuration,
    pub(crate) clock: fn() -> Timestamp,
}

/// The objects that a placement with overrides places: those of one snapshot never change.
pub(crate) struct Contents {
    /// The uid of the master of its group.
    snapshot: String,
    objects: Arc<Vec<ResourceIdentifier>>,
}

impl Controller for RolloutReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::placement_keys)
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(BINDINGS, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        let known = self.index.read(|index| {
            let placed = index.placed(key)?;
            let overrides = index.overrides.of_placement(key, &placed.bindings);
            Some((placed, index.fleet.all(now), overrides))
        });
        let Some((placed, members, overrides)) = known else {
            self.contents.lock().remove(key);
            return Ok(());
        };
        // Runs give its clusters the snapshots, or the one that is being made wakes it again.
        let is_waiting = is_external(&placed.placement) || has_lost_part(placed.snapshots());
        let latest = latest_resources(placed.snapshots());
        let Some(latest) = latest.filter(|_| placed.is_served() && !is_waiting) else {
            return Ok(());
        };
        // Only those that may be about something in it are reason enough to read it.
        let objects = if overrides.latest.is_empty() && overrides.pending.is_empty() {
            Arc::default()
        } else {
            self.contents(key, &placed, latest)
        };
        if let Some(until) = waits(&overrides.pending, &objects) {
            self.index.queues.rollout.add_at(key.clone(), until);
            return Ok(());
        }
        let clusters: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.name(), member.reach()))
            .collect();
        let fleet: Vec<_> = members.iter().map(|member| &*member.cluster).collect();
        let [newest, listed] = [&overrides.latest, &overrides.listed]
            .map(|snapshots| snapshots.iter().map(Snapshot::view).collect::<Vec<_>>());
        let overrides = Overrides::of(&OverridesFacts {
            placement: &placed.placement,
            latest: &newest,
            listed: &listed,
            objects: &objects,
            clusters: &fleet,
        });
        let Plan {
            writes, wake_at, ..
        } = plan(&RolloutFacts {
            placement: &placed.placement,
            snapshot: latest.name(),
            overrides: &overrides,
            bindings: &placed.bindings(),
            clusters: &clusters,
            progress_deadline: self.progress_deadline,
            now,
        });
        let subject = Subject::new(BINDINGS, key);
        self.hub.committer.commit(&writes, Some(&subject)).await?;
        if let Some(at) = wake_at {
            self.index.queues.rollout.add_at_time(key.clone(), at, now);
        }
        Ok(())
    }
}

/// Returns the time until which a placement of these objects waits for snapshots of overrides: objects that are written
/// together arrive together.
pub(crate) fn waits(pending: &[Pending], objects: &[ResourceIdentifier]) -> Option<Instant> {
    let now = Instant::now();
    let concerned = pending.iter().filter(|one| {
        let mut objects = objects.iter();
        one.until > now && objects.any(|object| selects(&one.spec, &one.namespace, object))
    });
    concerned.map(|one| one.until).max()
}

impl RolloutReconciler {
    /// Returns the objects in the latest group of snapshots.
    fn contents(
        &self,
        key: &Key,
        placed: &Placed,
        latest: &ObjectMeta,
    ) -> Arc<Vec<ResourceIdentifier>> {
        if let Some(known) = self.contents.lock().get(key)
            && known.snapshot == latest.uid()
        {
            return Arc::clone(&known.objects);
        }
        let group = group(&placed.snapshots, latest.name());
        let group: Vec<_> = group.iter().map(|snapshot| snapshot.object()).collect();
        let objects = Arc::new(contents(&group, self.opening));
        let known = Contents {
            snapshot: latest.uid().to_owned(),
            objects: Arc::clone(&objects),
        };
        self.contents.lock().insert(key.clone(), known);
        objects
    }
}
