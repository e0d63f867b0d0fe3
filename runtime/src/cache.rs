//! What a watch has told so far of one kind, and what each event changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Key;
use kube::Resource;
use kube::runtime::watcher::Event;

use crate::watch::Guarded;

/// The last good version of every object of one kind.
#[derive(Debug)]
pub struct Cache<K> {
    objects: BTreeMap<Key, Arc<K>>,
    unread: BTreeSet<Key>,
    /// While a list is under way, the keys it has not shown yet.
    unlisted: BTreeSet<Key>,
}

/// What an event changed.
#[derive(Debug)]
pub struct Transition<K> {
    /// The object.
    pub key: Key,
    /// What it was; none when it is new.
    pub old: Option<Arc<K>>,
    /// What it is; none when it is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unread: BTreeSet::new(),
            unlisted: BTreeSet::new(),
        }
    }
}

impl<K: Resource> Cache<K> {
    /// Takes an event in. An object that cannot be read keeps its last good version; a version
    /// already known changes nothing; what a complete list does not show is gone.
    pub fn observe(&mut self, event: Event<Guarded<K>>) -> Vec<Transition<K>> {
        match event {
            Event::Init => {
                self.unlisted = self.objects.keys().chain(&self.unread).cloned().collect();
                Vec::new()
            }
            Event::Apply(object) | Event::InitApply(object) => {
                self.apply(object).into_iter().collect()
            }
            Event::Delete(object) => {
                let key = key_of(&object);
                self.remove(key).into_iter().collect()
            }
            Event::InitDone => std::mem::take(&mut self.unlisted)
                .into_iter()
                .filter_map(|key| self.remove(key))
                .collect(),
        }
    }

    /// The last good version of an object.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// Every object with its key, in the order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// The objects that exist but never had a version we could read. What they ask for is unknown.
    pub fn unread(&self) -> &BTreeSet<Key> {
        &self.unread
    }

    fn apply(&mut self, object: Guarded<K>) -> Option<Transition<K>> {
        let key = key_of(&object);
        self.unlisted.remove(&key);
        match object {
            Guarded::Good(object) => {
                self.unread.remove(&key);
                let known = self.objects.get(&key);
                if known.is_some_and(|known| same_version(&**known, &object)) {
                    return None;
                }
                let new = Arc::new(object);
                let old = self.objects.insert(key.clone(), Arc::clone(&new));
                Some(Transition {
                    key,
                    old,
                    new: Some(new),
                })
            }
            Guarded::Bad { error, .. } => {
                tracing::warn!(object = %key, error, "Unreadable object, keeping its last good version");
                if !self.objects.contains_key(&key) {
                    self.unread.insert(key);
                }
                None
            }
        }
    }

    fn remove(&mut self, key: Key) -> Option<Transition<K>> {
        self.unlisted.remove(&key);
        self.unread.remove(&key);
        let old = self.objects.remove(&key)?;
        Some(Transition {
            key,
            old: Some(old),
            new: None,
        })
    }
}

fn key_of<K: Resource>(object: &Guarded<K>) -> Key {
    Key::of(object)
}

fn same_version(known: &impl Resource, object: &impl Resource) -> bool {
    let (known, object) = (known.meta(), object.meta());
    known.resource_version.is_some()
        && known.resource_version == object.resource_version
        && known.uid == object.uid
}
