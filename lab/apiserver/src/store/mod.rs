//! The store: every object in its serialized form, and the recent events of each collection.

mod collection;
mod object;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock;
use crate::error::ApiError;
use crate::kinds::{ClusterIps, CollectionId, DEFINITIONS, Definition, Kind, Registry};
use crate::metadata;

pub(crate) use collection::{Change, Collection, Event, Forgotten};
pub(crate) use object::Object;

/// The address of an object: its collection, and its key there.
pub(crate) type Place = (CollectionId, String);

/// Work for the [`collector`](crate::collector).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// An object is terminating, or something that its deletion waits for has changed.
    Terminating(Place),
    /// The object with this UID is gone, and others refer to it as their owner.
    OwnerGone(String),
    /// An object refers to owners that it did not refer to before.
    Owned(Place),
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The latest resource version.
    pub(crate) version: u64,
    pub(crate) registry: Registry,
    collections: BTreeMap<CollectionId, Collection>,
    /// The objects that refer to an owner, by its UID.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// The address of each object, by its UID.
    places: BTreeMap<String, Place>,
    /// Work that the collector has not done yet.
    pub(crate) triggers: VecDeque<Trigger>,
    pub(crate) cluster_ips: ClusterIps,
    pub(crate) random: fastrand::Rng,
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: 1,
            registry: Registry::default(),
            collections: BTreeMap::new(),
            dependents: BTreeMap::new(),
            places: BTreeMap::new(),
            triggers: VecDeque::new(),
            cluster_ips: ClusterIps::default(),
            // A fixed seed: UIDs and generated names are the same in every run.
            random: fastrand::Rng::with_seed(0),
        }
    }
}

impl State {
    /// Returns the objects of a kind.
    pub(crate) fn collection(&mut self, id: &CollectionId) -> &mut Collection {
        self.collections.entry(id.clone()).or_default()
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = (&CollectionId, &Collection)> {
        self.collections.iter()
    }

    pub(crate) fn find(&self, id: &CollectionId, key: &str) -> Option<&Arc<Object>> {
        self.collections.get(id)?.objects.get(key)
    }

    /// Returns the address of the object with a UID.
    pub(crate) fn place(&self, uid: &str) -> Option<&Place> {
        self.places.get(uid)
    }

    /// Returns the objects that refer to an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Stores an object in its storage version under a new resource version, and returns it.
    pub(crate) fn put(&mut self, kind: &Kind, mut object: Value) -> Value {
        let prepared = self.prepare(kind, &mut object);
        self.commit(kind, prepared, &object);
        object
    }

    /// Serializes an object for [`Self::commit`], under the next resource version.
    pub(crate) fn prepare(&self, kind: &Kind, object: &mut Value) -> Object {
        let version = self.version + 1;
        metadata::set(object, "resourceVersion", version.to_string());
        Object::new(kind, object, version)
    }

    /// Stores a prepared object and records the event.
    pub(crate) fn commit(&mut self, kind: &Kind, prepared: Object, object: &Value) {
        self.version = prepared.version;
        let stored = Arc::new(prepared);
        let id = kind.collection();
        let objects = &mut self.collection(&id).objects;
        let before = objects.insert(stored.key.clone(), Arc::clone(&stored));
        self.index(&id, before.as_deref(), Some(&stored));
        if kind.is("", "services") {
            self.cluster_ips.take(object);
        }
        if kind.is_definition()
            && let Ok(definition) = Definition::read(object)
        {
            self.define(definition);
        }
        self.collection(&id).record(Event {
            change: if before.is_some() {
                Change::Modified
            } else {
                Change::Added
            },
            object: stored,
            before,
        });
    }

    /// Serves the kinds of a definition. Stored objects are pruned to the new schema here, as
    /// kube-apiserver prunes them on every read.
    fn define(&mut self, definition: Definition) {
        let Definition {
            group,
            plural,
            kinds,
        } = definition;
        let id = (group, plural);
        if let Some(stored) = kinds.iter().find(|kind| kind.storage.version.is_none()) {
            let version = self.version;
            let is_new = !self.collections.contains_key(&id);
            let collection = self.collection(&id);
            // A watch from before the definition existed must expire, not wait.
            if is_new {
                collection.forgotten = version;
            }
            for object in collection.objects.values_mut() {
                if let Ok(mut value) = object.value() {
                    stored.schema.prune(&mut value);
                    stored.schema.default(&mut value);
                    *object = Arc::new(Object::new(stored, &mut value, object.version));
                }
            }
        }
        self.registry.replace(&id.0, &id.1, kinds);
    }

    /// Removes an object under a new resource version.
    pub(crate) fn remove(&mut self, kind: &Kind, key: &str) -> Result<(), ApiError> {
        let id = kind.collection();
        let Some(before) = self.find(&id, key).cloned() else {
            return Ok(());
        };
        let mut object = before.value()?;
        self.version += 1;
        metadata::set(&mut object, "resourceVersion", self.version.to_string());
        if kind.is("", "services") {
            self.cluster_ips.give_back(&object);
        }
        let deleted = Arc::new(Object::new(kind, &mut object, self.version));
        self.collection(&id).objects.remove(key);
        self.index(&id, Some(&before), None);
        self.wake_container(kind, key);
        self.collection(&id).record(Event {
            change: Change::Deleted,
            object: deleted,
            before: Some(before),
        });
        Ok(())
    }

    /// Updates the indices by UID and owner, and triggers the collector.
    fn index(&mut self, id: &CollectionId, before: Option<&Object>, now: Option<&Object>) {
        if let Some(before) = before {
            for owner in &before.owners {
                self.forget_owner(owner, &(id.clone(), before.key.clone()));
            }
            if now.is_none() {
                self.places.remove(&before.uid);
                if self.dependents.contains_key(&before.uid) {
                    self.triggers
                        .push_back(Trigger::OwnerGone(before.uid.clone()));
                }
            }
        }
        let Some(now) = now else { return };
        let place = (id.clone(), now.key.clone());
        self.places.insert(now.uid.clone(), place.clone());
        for owner in &now.owners {
            self.dependents
                .entry(owner.clone())
                .or_default()
                .insert(place.clone());
        }
        if now.is_terminating {
            self.triggers.push_back(Trigger::Terminating(place));
        } else if !now.owners.is_empty() && before.is_none_or(|before| before.owners != now.owners)
        {
            self.triggers.push_back(Trigger::Owned(place));
        }
    }

    fn forget_owner(&mut self, owner: &str, dependent: &Place) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
        // Foreground deletion of the owner may have waited for this dependent.
        if let Some(place) = self.place(owner).cloned() {
            self.wake_if_terminating(place);
        }
    }

    /// Triggers the namespace or definition whose deletion may have waited for this object.
    fn wake_container(&mut self, kind: &Kind, key: &str) {
        if let Some((namespace, _)) = key.split_once('/') {
            let namespaces = (String::new(), "namespaces".to_owned());
            self.wake_if_terminating((namespaces, namespace.to_owned()));
        }
        if kind.custom {
            let definitions = (DEFINITIONS.0.to_owned(), DEFINITIONS.1.to_owned());
            self.wake_if_terminating((definitions, kind.resource().to_string()));
        }
    }

    fn wake_if_terminating(&mut self, place: Place) {
        if self
            .find(&place.0, &place.1)
            .is_some_and(|object| object.is_terminating)
        {
            self.triggers.push_back(Trigger::Terminating(place));
        }
    }

    /// Ends the watches of a collection whose definition is gone.
    pub(crate) fn end(&mut self, id: &CollectionId) {
        let version = self.version;
        let collection = self.collection(id);
        collection.ended = version;
        collection.changed.notify();
    }

    /// Returns a new UID.
    pub(crate) fn uid(&mut self) -> String {
        let random = self.random.u128(..);
        // Version 4, variant 1 (RFC 9562 section 5.4).
        let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let (time, rest) = hex.split_at(8);
        let (mid, rest) = rest.split_at(4);
        let (high, rest) = rest.split_at(4);
        let (clock, node) = rest.split_at(4);
        format!("{time}-{mid}-{high}-{clock}-{node}")
    }

    /// Returns the suffix of a generated name. The alphabet omits vowels so that no words appear
    /// (`apimachinery/pkg/util/rand`).
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(LETTERS[self.random.usize(..LETTERS.len())]))
            .collect()
    }
}

/// The system namespaces, which exist from the start.
pub(crate) const NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Returns the state of a new server: the system namespaces and the API's own Service.
pub(crate) fn new(now: Timestamp) -> State {
    let mut state = State::default();
    for name in NAMESPACES {
        let namespace = json!({ "metadata": { "name": name } });
        state.begin_with("namespaces", namespace, now);
    }
    let service = json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "targetPort": 6443 }],
        },
    });
    state.begin_with("services", service, now);
    state
}

impl State {
    /// Stores an object of the core group that exists from the start.
    fn begin_with(&mut self, plural: &str, mut object: Value, now: Timestamp) {
        let Ok(kind) = self.registry.get("", "v1", plural) else {
            return;
        };
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.as_str().into();
        metadata::set(&mut object, "uid", self.uid());
        metadata::set(&mut object, "creationTimestamp", clock::seconds(now));
        crate::kinds::complete(&kind, &mut object);
        self.put(&kind, object);
    }
}
