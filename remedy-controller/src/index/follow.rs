//! The changes of clusters and remedies, and those that only the clock brings.

use jiff::Timestamp;
use karmada_api::condition::owned;
use karmada_api::{Cluster, Remedy};
use karmada_runtime::cache::Transition;
use objects::Key;
use tokio::time::Instant;
use traffic::remedy::{Decision, Mode};

use super::{Index, Reference};

impl Index {
    /// Follows a cluster from one version to the next, and returns it, and those that are admitted thereby.
    pub(crate) fn follow_cluster(&mut self, change: &Transition<Cluster>) -> Vec<Key> {
        let key = &change.key;
        self.note_conditions(change);
        self.concern(change);
        let mut woken = Vec::new();
        if change.new.is_some() {
            woken.push(key.clone());
        } else {
            self.arrived.remove(key);
            self.noted_over_bound.remove(key);
            self.noted_observing.remove(key);
        }
        woken.extend(self.claim([key]));
        woken
    }

    /// Follows a remedy from one version to the next, and returns the clusters of both if it decides otherwise.
    pub(crate) fn follow_remedy(&mut self, change: &Transition<Remedy>) -> Vec<Key> {
        let now = self.now();
        if !change.differs(|old, new| decides_otherwise(old, new, now)) {
            return Vec::new();
        }
        let concerned = self.remedies.concerned(change);
        self.claim_all(&concerned)
    }

    /// Takes in a look at the clock, and returns the clusters of the remedies that have expired since.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<Key> {
        let expired = self.expiries.look(now).into_iter();
        let expired: Vec<Key> = expired.map(Key::cluster_scoped).collect();
        let references = expired.iter().flat_map(|key| self.remedies.targets(key));
        let concerned = references.cloned().collect();
        self.concerned.extend(expired);
        self.claim_all(&concerned)
    }

    /// Returns every cluster, after the claims of each are updated.
    pub(crate) fn every_cluster(&mut self) -> Vec<Key> {
        self.claim_all(&[Reference::EveryCluster].into())
    }

    /// Remembers the remedies that may refer to a cluster which appears or disappears, or to a type of
    /// condition that does, and when its conditions changed.
    fn concern(&mut self, Transition { key, old, new }: &Transition<Cluster>) {
        let (old, new) = (old.as_deref(), new.as_deref());
        if old.is_some() != new.is_some() {
            let naming = self.remedies.keys_of(&Reference::Cluster(key.name.clone()));
            self.concerned.extend(naming.cloned());
        }
        for kind in self.condition_types.replace(old, new) {
            let requiring = self.remedies.keys_of(&Reference::Condition(kind));
            self.concerned.extend(requiring.cloned());
        }
        if new.is_some() && old.map(Cluster::conditions) != new.map(Cluster::conditions) {
            let arrived = self.arrived.entry(key.clone());
            arrived.or_insert_with(Instant::now);
        }
    }

    fn note_conditions(&mut self, transition: &Transition<Cluster>) {
        let (Some(old), Some(new)) = (&transition.old, &transition.new) else {
            self.changed.remove(&transition.key);
            return;
        };
        for condition in owned(new.conditions()) {
            let before = old.condition(&condition.type_);
            let is_same = before.is_some_and(|before| {
                before.status == condition.status && before.reason == condition.reason
            });
            if !is_same {
                let changed = self.changed.entry(transition.key.clone()).or_default();
                changed.insert(condition.type_.clone(), condition.clone());
            }
        }
    }
}

/// Returns `true` if two versions of a remedy may require something else of a cluster at `now`.
fn decides_otherwise(old: &Remedy, new: &Remedy, now: Timestamp) -> bool {
    old.spec != new.spec
        || Decision::of(old) != Decision::of(new)
        || Mode::of(old, now) != Mode::of(new, now)
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
}
