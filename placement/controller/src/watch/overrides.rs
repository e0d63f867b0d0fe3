//! The watches of overrides and of their snapshots.

use fleet_api::overrides::{OverrideSnapshot, OverrideSpec};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::{Key, Metadata};
use placement_rules::overrides::{listed, named_placement};

use super::SharedIndex;
use crate::overrides::InScope;

impl SharedIndex {
    /// Applies an event of an override.
    pub(super) fn observe_override<K: InScope>(&self, event: Event<Decoded<K>>) {
        let (changes, concerned) =
            self.change(|index| K::scope_mut(&mut index.overrides).observe(event));
        self.queues.overrides.add_all(concerned);
        for change in &changes {
            for version in [&change.old, &change.new].into_iter().flatten() {
                self.wake_overridden(version.spec(), &change.key.namespace);
            }
        }
    }

    /// Applies an event of a snapshot of an override, and wakes the bindings that list it.
    pub(super) fn observe_override_snapshot<K: InScope>(&self, event: Event<Decoded<K::Snapshot>>) {
        let (changes, concerned) =
            self.change(|index| K::scope_mut(&mut index.overrides).observe_snapshots(event));
        self.queues.overrides.add_all(concerned);
        for change in &changes {
            // Nothing else of one ever changes.
            let ((None, Some(version)) | (Some(version), None)) = (&change.old, &change.new) else {
                continue;
            };
            let spec = &version.spec().override_spec;
            let Key { namespace, name } = &change.key;
            self.wake_overridden(spec, namespace);
            let bindings = self.read(|index| index.overridden_by(spec, namespace));
            let listing = bindings.iter().filter(|binding| {
                listed(&binding.spec).any(|listed| listed == (&**namespace, &**name))
            });
            let listing = listing.map(|binding| binding.metadata.key());
            self.queues.works.add_all(listing);
        }
    }

    /// Wakes the placements that an override in a namespace may be about.
    fn wake_overridden(&self, spec: &OverrideSpec, namespace: &str) {
        if let Some(placement) = named_placement(spec, namespace) {
            self.queues.rollout.add(placement);
            return;
        }
        let placements = self.read(|index| {
            let keys = index.placements.iter().map(|(key, _)| key.clone());
            keys.collect::<Vec<_>>()
        });
        self.queues.rollout.add_all(placements);
    }
}
