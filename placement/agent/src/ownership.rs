//! The objects in the member that belong to Works.

use std::sync::Arc;

use apply::{ManifestRef, Ownership, Unit, WriteStyle};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::fleet::Work;
use karmada_rules::placement::{ownership, waves};
use karmada_runtime::dynamic::Selected;
use kube::runtime::watcher::Config;
use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Adoption, Removal};
use objects::{Key, Metadata};
use parking_lot::Mutex;
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
    /// The uid of the `AppliedWork`.
    pub(crate) owner: String,
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

    fn write_style(&self, _: &Unit<'_, PlacedWork>) -> WriteStyle {
        WriteStyle::Apply
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

    fn adoption(&self, unit: &Unit<'_, PlacedWork>, _: &Value, object: &Value) -> Adoption {
        let PlacedWork { work, owner } = unit.source;
        ownership::adoption(work, owner, &self.owners.0.lock(), object)
    }

    fn removal(&self, unit: &Unit<'_, PlacedWork>, object: &Value) -> Removal {
        ownership::removal(&unit.source.owner, &self.owners.0.lock(), object)
    }
}
