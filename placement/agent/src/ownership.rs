//! The objects in the member that belong to Works.

use std::sync::Arc;

use apply::{ManifestRef, Ownership};
use fleet_api::Work;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::dynamic::Selected;
use kube::runtime::watcher::Config;
use objects::managed_fields::Managers;
use objects::ownership::{Instruction, Removal};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use placement_rules::ownership::Own;
use placement_rules::{hash, ownership};
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

/// Selects the objects of Works.
pub(crate) fn selected() -> Selected {
    Selected {
        // No label tells: KubeFleet's objects have none.
        keeps: ownership::is_placed,
        ..Config::default().into()
    }
}

impl Ownership for PlacedObjects {
    type Source = PlacedWork;

    const MANAGERS: Managers = ownership::MANAGERS;

    const IGNORED: fn(&str) -> bool = hash::is_reserved;

    fn set_of(&self, object: &impl Metadata) -> Option<Key> {
        let owners = self.owners.0.lock();
        let name = ownership::owner_of(object, &owners)?;
        Some(Key::new(&self.namespace, name))
    }

    fn instruction(
        &self,
        one: &ManifestRef<'_, PlacedWork>,
        object: Option<&Value>,
    ) -> Instruction {
        let PlacedWork { work, owner } = one.set.source;
        let owners = self.owners.0.lock();
        ownership::instruction(work, owner, &owners, (one.manifest, object))
    }

    fn removal(&self, PlacedWork { work, owner }: &PlacedWork, object: &Value) -> Removal {
        ownership::removal(work, owner, &self.owners.0.lock(), object)
    }
}
