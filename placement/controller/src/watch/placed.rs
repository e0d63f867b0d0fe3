//! The watches of placements, and of what is made of them.

use fleet_api::names::{IS_LATEST, RESOURCE_INDEX, cluster_of_member_namespace};
use fleet_api::{
    Binding, ClusterResourcePlacementEviction, ClusterResourcePlacementStatus, Placement,
    PolicySnapshot,
};
use karmada_runtime::cache::Transition;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::core::ObjectMeta;
use kube::runtime::watcher::Event;
use objects::Scope;
use objects::{Key, Metadata};
use placement_rules::parents::placement_of;

use super::SharedIndex;
use crate::index::{Index, StoredSnapshot, StoredWork};

impl SharedIndex {
    /// Applies an event of a placement, and wakes every loop that decides about it.
    pub(super) fn observe_placement(&self, scope: Scope, event: Event<Decoded<Placement>>) {
        let changes = self.change(|index| index.placements.observe(scope, event));
        for change in &changes {
            let key = &change.key;
            if is_status(change) {
                if !self.is_deleting(key) {
                    self.tell(key.clone());
                }
                continue;
            }
            self.tell(key.clone());
            self.want();
            for queue in [
                &self.queues.snapshots,
                &self.queues.schedule,
                &self.queues.rollout,
            ] {
                queue.add(key.clone());
            }
            self.wake_runs(key);
        }
    }

    /// Applies an event of a policy's snapshot.
    pub(super) fn observe_policy(&self, scope: Scope, event: Event<Decoded<PolicySnapshot>>) {
        let changes = self.change(|index| index.policies.observe(scope, event));
        for change in &changes {
            for key in self.read(|index| index.policies.concerned(change)) {
                self.tell(key.clone());
                // Also for a status: both wait for the one that was written.
                self.queues.schedule.add(key.clone());
                self.queues.rollout.add(key.clone());
                self.wake_runs(&key);
                if !is_status(change) {
                    self.queues.snapshots.add(key);
                }
            }
        }
    }

    /// Applies an event of a snapshot, and wakes the bindings that may wait for it.
    pub(super) fn observe_snapshot(&self, scope: Scope, event: Event<Decoded<StoredSnapshot>>) {
        let changes = self.change(|index| index.snapshots.observe(scope, event));
        for change in &changes {
            let (placements, bindings) =
                self.read(|index| (index.snapshots.concerned(change), naming(index, change)));
            for key in placements {
                self.queues.snapshots.add(key.clone());
                self.queues.rollout.add(key.clone());
                self.wake_runs(&key);
                self.tell(key);
            }
            self.queues.works.add_all(bindings);
        }
    }

    /// Applies an event of a binding.
    pub(super) fn observe_binding(&self, scope: Scope, event: Event<Decoded<Binding>>) {
        let changes = self.change(|index| {
            let changes = index.bindings.observe(scope, event);
            for change in &changes {
                let cluster = change.new.as_ref().map(|new| &new.spec.target_cluster);
                let cluster = cluster.cloned().into_iter().collect();
                index.by_cluster.replace(&change.key, cluster);
            }
            changes
        });
        for change in &changes {
            self.queues.works.add(change.key.clone());
            // What is left of an override stays for those that list it.
            let unlisted = self.read(|index| index.overrides.unlisted(change));
            self.queues.overrides.add_all(unlisted);
            for key in self.read(|index| index.bindings.concerned(change)) {
                self.queues.rollout.add(key.clone());
                self.wake_runs(&key);
                let is_deleting = self.is_deleting(&key);
                if !is_deleting {
                    // What is left of one that is going is told from time to time.
                    self.tell(key.clone());
                }
                if !is_status(change) || is_deleting {
                    // Another binding is needed, a snapshot is named no longer, or this was the last one.
                    self.queues.schedule.add(key.clone());
                    self.queues.snapshots.add(key);
                }
            }
        }
    }

    /// Applies an event of an eviction, and wakes the evictions of its placement.
    pub(super) fn observe_eviction(&self, event: Event<Decoded<ClusterResourcePlacementEviction>>) {
        let changes = self.change(|index| index.evictions.observe(event));
        let evictions = changes.into_iter().filter_map(|change| change.new);
        let placements =
            evictions.map(|eviction| Key::cluster_scoped(&*eviction.spec.placement_name));
        self.queues.evictions.add_all(placements);
    }

    /// Applies an event of the copy of a placement's status, and has the placement tell: it may be gone, or changed.
    pub(super) fn observe_status_copy(
        &self,
        event: Event<Decoded<ClusterResourcePlacementStatus>>,
    ) {
        for change in self.change(|index| index.status_copies.observe(event)) {
            self.tell(Key::cluster_scoped(change.key.name));
        }
    }

    fn is_leaving(&self, cluster: &str) -> bool {
        self.read(|index| {
            let cluster = index.fleet.get(cluster);
            cluster.is_some_and(|cluster| cluster.metadata.is_deleting())
        })
    }

    /// Returns `true` if a placement is being deleted.
    pub(crate) fn is_deleting(&self, placement: &Key) -> bool {
        self.read(|index| {
            let placement = index.placements.get(placement);
            placement.is_some_and(|placement| placement.metadata.is_deleting())
        })
    }

    /// Applies an event of a Work, and wakes its binding.
    pub(super) fn observe_work(&self, event: Event<Decoded<StoredWork>>) {
        let changes = self.change(|index| index.works.observe(Scope::Namespaced, event));
        for change in &changes {
            let bindings = self.read(|index| index.works.concerned(change));
            self.queues.works.add_all(bindings);
            // A cluster that is leaving waits for its Works.
            if let Some(cluster) = cluster_of_member_namespace(&change.key.namespace)
                && self.is_leaving(cluster)
            {
                self.queues.membership.add(Key::cluster_scoped(cluster));
            }
        }
    }
}

/// Returns the bindings that name the group of snapshots to which one belongs, or whose master is lost.
fn naming(index: &Index, change: &Transition<StoredSnapshot>) -> Vec<Key> {
    let Some(snapshot) = change.new.as_deref().map(Resource::meta) else {
        return Vec::new();
    };
    let group = |metadata: &ObjectMeta| metadata.label(RESOURCE_INDEX).map(str::to_owned);
    let placement = placement_of(snapshot).unwrap_or_default();
    let bindings = index.bindings.of(&placement).into_iter();
    let naming = bindings.filter(|binding| {
        let master = Key::new(&*placement.namespace, &*binding.spec.resource_snapshot_name);
        let master = index.snapshots.get(&master);
        // The label of the latest says nothing to a binding.
        let is_news = change.old.is_none() || snapshot.label(IS_LATEST).is_none();
        is_news && master.is_some_and(|master| group(master.meta()) == group(snapshot))
    });
    naming.map(|binding| binding.metadata.key()).collect()
}

/// Returns `true` if nothing but the status differs.
fn is_status<K: Resource>(change: &Transition<K>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return false;
    };
    let (old, new) = (old.meta(), new.meta());
    old.uid == new.uid
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.finalizers == new.finalizers
        && old.deletion_timestamp == new.deletion_timestamp
}
