//! The objects in the member that belong to Works.

use std::sync::Arc;

use apply::{ManifestRef, Ownership, Unit, WriteStyle};
use fleet_api::Work;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::dynamic::Selected;
use kube::runtime::watcher::Config;
use objects::difference::Difference;
use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Adoption, Comparison, Extent, Removal, Versions};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use placement_rules::ownership::Own;
use placement_rules::strategy::is_forced;
use placement_rules::{drift, hash, ownership, takeover, waves};
use serde_json::Value;

/// The `AppliedWork`s that exist in the member; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners(Arc<Mutex<ownership::Owners>>);

impl Owners {
    pub(crate) fn insert(&self, owner: &ObjectMeta) {
        let (uid, name) = (owner.uid().to_owned(), owner.name().to_owned());
        self.0.lock().insert(uid, name);
    }

    pub(crate) fn remove(&self, owner: &ObjectMeta) {
        self.0.lock().remove(owner.uid());
    }
}

/// A Work, and its `AppliedWork`.
#[derive(Debug)]
pub(crate) struct PlacedWork {
    pub(crate) work: Work,
    pub(crate) owner: Own,
}

/// The Works of the cluster, as the owners of their objects.
#[derive(Debug)]
pub(crate) struct PlacedObjects {
    /// The namespace of the Works.
    pub(crate) namespace: String,
    pub(crate) owners: Owners,
}

impl Ownership for PlacedObjects {
    type Source = PlacedWork;

    fn managers(&self) -> Managers {
        ownership::MANAGERS
    }

    fn watched(&self) -> Selected {
        Selected {
            // No label tells: KubeFleet's objects have none.
            keeps: ownership::is_placed,
            ..Config::default().into()
        }
    }

    fn unit_of(&self, object: &impl Metadata) -> Option<Key> {
        let owners = self.owners.0.lock();
        let name = ownership::owner_of(object, &owners)?;
        Some(Key::new(&self.namespace, name))
    }

    fn write_style(&self, unit: &Unit<'_, PlacedWork>) -> WriteStyle {
        if is_forced(unit.source.work.spec.apply_strategy.as_ref()) {
            WriteStyle::Apply
        } else {
            WriteStyle::ApplyUnforced
        }
    }

    fn written(&self, _: &Value) -> Option<Written> {
        None
    }

    fn retains_replicas(&self, _: &Value) -> bool {
        false
    }

    fn wave(&self, one: &ManifestRef<'_, PlacedWork>) -> usize {
        waves::wave(one.manifest) as usize
    }

    fn adoption(&self, unit: &Unit<'_, PlacedWork>, manifest: &Value, object: &Value) -> Adoption {
        let PlacedWork { work, owner } = unit.source;
        ownership::adoption(work, owner, &self.owners.0.lock(), (manifest, object))
    }

    fn comparison(
        &self,
        unit: &Unit<'_, PlacedWork>,
        manifest: &Value,
        object: Option<&Value>,
    ) -> Comparison {
        let PlacedWork { work, owner } = unit.source;
        let is_owned = object.is_some_and(|object| owner.has(object));
        takeover::comparison(work, manifest, object, is_owned)
    }

    fn differences(
        &self,
        manifest: &Value,
        versions: Option<Versions<'_>>,
        extent: Extent,
    ) -> Vec<Difference> {
        drift::compared(manifest, versions, extent)
    }

    fn ignored(&self) -> fn(&str) -> bool {
        hash::is_reserved
    }

    fn adopts_unseen(&self, unit: &Unit<'_, PlacedWork>) -> bool {
        takeover::adopts_unseen(&unit.source.work)
    }

    fn removal(&self, unit: &Unit<'_, PlacedWork>, object: &Value) -> Removal {
        let PlacedWork { work, owner } = unit.source;
        ownership::removal(work, owner, &self.owners.0.lock(), object)
    }
}
