//! What is stored: every object as the text that clients get, and what happened to each lately.

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

/// Where an object is: its collection, and its key there.
pub(crate) type Place = (CollectionId, String);

/// Something that may have consequences: see [`crate::collector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An object is waiting to go, or what it waits for has changed.
    Terminating(Place),
    /// An object with this UID is gone, and others name it as their owner.
    OwnerGone(String),
    /// An object names owners that it did not name before.
    Owned(Place),
}

/// Everything that is stored.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The newest version there is.
    pub(crate) version: u64,
    pub(crate) registry: Registry,
    collections: BTreeMap<CollectionId, Collection>,
    /// Which objects name an owner, by its UID.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// Where each object is, by its UID.
    places: BTreeMap<String, Place>,
    /// What the collector has not looked at yet.
    pub(crate) causes: VecDeque<Cause>,
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
            causes: VecDeque::new(),
            cluster_ips: ClusterIps::default(),
            random: fastrand::Rng::with_seed(0),
        }
    }
}

impl State {
    /// The objects of a kind; none yet if nothing was ever stored.
    pub(crate) fn collection(&mut self, id: &CollectionId) -> &mut Collection {
        self.collections.entry(id.clone()).or_default()
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = (&CollectionId, &Collection)> {
        self.collections.iter()
    }

    pub(crate) fn find(&self, id: &CollectionId, key: &str) -> Option<&Arc<Object>> {
        self.collections.get(id)?.objects.get(key)
    }

    /// Where the object with a UID is.
    pub(crate) fn place(&self, uid: &str) -> Option<&Place> {
        self.places.get(uid)
    }

    /// Who names an object as its owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Stores an object, in its storage version, with a new resource version.
    pub(crate) fn put(&mut self, kind: &Kind, mut object: Value) -> Value {
        let prepared = self.prepare(kind, &mut object);
        self.commit(kind, prepared, &object);
        object
    }

    /// The first half of [`Self::put`]: the object as it would be stored.
    pub(crate) fn prepare(&self, kind: &Kind, object: &mut Value) -> Object {
        let version = self.version + 1;
        metadata::set(object, "resourceVersion", version.to_string());
        Object::new(kind, object, version)
    }

    /// The second half of [`Self::put`].
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

    /// Serves the kinds of a definition. What is stored loses the fields it knows no more, as a
    /// real server drops them whenever it reads.
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

    /// Removes an object.
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

    /// Keeps the indices by UID and owner, and notes what has consequences.
    fn index(&mut self, id: &CollectionId, before: Option<&Object>, now: Option<&Object>) {
        if let Some(before) = before {
            for owner in &before.owners {
                self.forget_owner(owner, &(id.clone(), before.key.clone()));
            }
            if now.is_none() {
                self.places.remove(&before.uid);
                if self.dependents.contains_key(&before.uid) {
                    self.causes.push_back(Cause::OwnerGone(before.uid.clone()));
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
            self.causes.push_back(Cause::Terminating(place));
        } else if !now.owners.is_empty() && before.is_none_or(|before| before.owners != now.owners)
        {
            self.causes.push_back(Cause::Owned(place));
        }
    }

    fn forget_owner(&mut self, owner: &str, dependent: &Place) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
        if let Some(place) = self.place(owner).cloned() {
            self.wake_if_terminating(place);
        }
    }

    /// A namespace or definition may wait for the object that is gone.
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
            self.causes.push_back(Cause::Terminating(place));
        }
    }

    /// Ends the watches of a collection whose definition is gone.
    pub(crate) fn end(&mut self, id: &CollectionId) {
        let version = self.version;
        let collection = self.collection(id);
        collection.ended = version;
        collection.changed.tell();
    }

    /// A new UID.
    pub(crate) fn uid(&mut self) -> String {
        let random = self.random.u128(..);
        // Version 4, variant 1 (RFC 9562).
        let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let (time, rest) = hex.split_at(8);
        let (mid, rest) = rest.split_at(4);
        let (high, rest) = rest.split_at(4);
        let (clock, node) = rest.split_at(4);
        format!("{time}-{mid}-{high}-{clock}-{node}")
    }

    /// The end of a generated name.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(LETTERS[self.random.usize(..LETTERS.len())]))
            .collect()
    }
}

/// The system's namespaces, which exist from the start.
pub(crate) const NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A state as it is when the server starts: with the system's namespaces and the API's own Service.
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
