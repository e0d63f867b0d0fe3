//! A cache of the objects of one kind, fed by a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::write::{ObjectRef, Write};

use crate::expectations::{Expectations, Shown, is_as_new};
use crate::watch::Decoded;

/// The last valid version of every object of one kind.
#[derive(Debug)]
pub(crate) struct Cache<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// Objects that exist but never had a valid version.
    unread: BTreeSet<Key>,
    /// Objects whose newest version is invalid, so that an earlier one is in effect.
    stale: BTreeSet<Key>,
    /// During a list, the known keys it has not returned yet.
    unlisted: BTreeSet<Key>,
    /// Objects of which a read or a write has told a newer version than the watch.
    ahead: BTreeSet<Key>,
    /// The uids of objects that a write has deleted, which the watch has still to show.
    deleted: BTreeMap<Key, Option<String>>,
    /// Who waits for our writes to these objects.
    expected: Option<(Expectations, ApiResource)>,
}

/// The numbers of objects of one kind whose newest version does not decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undecoded {
    /// Those that never decoded: their content is unknown.
    pub unread: usize,
    /// Those of which an earlier version is in effect.
    pub stale: usize,
}

/// A change of one object.
#[derive(Debug)]
pub struct Transition<K> {
    /// The object's key.
    pub key: Key,
    /// The version before; `None` if the object is new.
    pub old: Option<Arc<K>>,
    /// The version after; `None` if the object is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Transition<K> {
    /// Returns `true` if the object is new or gone, or its two versions `differ`.
    pub fn differs(&self, differ: impl FnOnce(&K, &K) -> bool) -> bool {
        match (self.old.as_deref(), self.new.as_deref()) {
            (Some(old), Some(new)) => differ(old, new),
            _ => true,
        }
    }

    /// Iterates over the versions before and after.
    pub fn versions(&self) -> impl Iterator<Item = &K> {
        let versions = self.old.iter().chain(&self.new);
        versions.map(|version| &**version)
    }

    /// Returns the versions before and after, each as `V` shows it.
    pub fn views<'a, V>(&'a self) -> [Option<V>; 2]
    where
        &'a K: Into<V>,
    {
        let versions = [&self.old, &self.new];
        versions.map(|version| version.as_deref().map(Into::into))
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unread: BTreeSet::new(),
            stale: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            ahead: BTreeSet::new(),
            deleted: BTreeMap::new(),
            expected: None,
        }
    }
}

impl<K> Cache<K> {
    /// Returns the last valid version of an object.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// Iterates over the objects in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// Returns the keys of objects that exist but never decoded: their content is unknown.
    pub(crate) fn unread(&self) -> &BTreeSet<Key> {
        &self.unread
    }

    /// Returns `true` if the newest version of an object is invalid, and an earlier one in effect.
    pub(crate) fn is_stale(&self, key: &Key) -> bool {
        self.stale.contains(key)
    }

    /// Returns the number of objects that exist, decoded or not.
    pub(crate) fn existing(&self) -> usize {
        self.objects.len() + self.unread.len()
    }

    /// Counts the objects whose newest version does not decode.
    pub(crate) fn undecoded(&self) -> Undecoded {
        Undecoded {
            unread: self.unread.len(),
            stale: self.stale.len(),
        }
    }
}

impl<K: Resource + Clone + Default> Cache<K> {
    /// Has the events show our writes to the objects, which the API has as `resource`.
    pub(crate) fn expecting(self, expectations: &Expectations, resource: ApiResource) -> Self {
        Self {
            expected: Some((expectations.clone(), resource)),
            ..self
        }
    }

    /// Applies an event of the watch, as [`Store::observe`](crate::store::Store::observe) says, and returns the changes.
    pub(crate) fn observe(&mut self, event: Event<Decoded<K>>) -> Vec<Transition<K>> {
        match event {
            Event::Init => {
                // A list may follow a gap in the watch: deletions within it show only as absence.
                self.unlisted = self.objects.keys().chain(&self.unread).cloned().collect();
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = Key::of(&object);
                let known = self.objects.get(&key);
                // The API may have been restored from a backup.
                if !known.is_some_and(|known| same_version(&**known, &object)) {
                    self.ahead.remove(&key);
                }
                self.deleted.remove(&key);
                self.apply(object).into_iter().collect()
            }
            Event::Apply(object) => self.apply(object).into_iter().collect(),
            Event::Delete(object) => {
                let key = Key::of(&object);
                self.deleted.remove(&key);
                let ahead = self.objects.get(&key).filter(|_| self.ahead.contains(&key));
                // The name is another object's by now.
                if ahead.is_some_and(|known| known.meta().uid != object.meta().uid) {
                    return Vec::new();
                }
                self.remove(key).into_iter().collect()
            }
            Event::InitDone => {
                self.deleted.clear();
                std::mem::take(&mut self.unlisted)
                    .into_iter()
                    .filter_map(|key| self.remove(key))
                    .collect()
            }
        }
    }

    /// Takes in a version of a known object that a read has shown, or a write has made, and returns the change. If it is
    /// newer than that of the watch, it is in effect until the watch has caught up.
    pub(crate) fn read_ahead(&mut self, object: K) -> Option<Transition<K>> {
        let key = Key::of(&object);
        let known = self.objects.get(&key)?;
        if is_at_least(&**known, &object) {
            return None;
        }
        self.ahead.insert(key.clone());
        Some(self.replace(key, object))
    }

    /// Takes in an object as [`Self::read_ahead`] does, also one that the watch has not shown yet.
    pub(crate) fn add_ahead(&mut self, object: K) -> Option<Transition<K>> {
        let key = Key::of(&object);
        if self.objects.contains_key(&key) {
            return self.read_ahead(object);
        }
        // A list that has begun need not have it.
        self.unlisted.insert(key.clone());
        self.ahead.insert(key.clone());
        Some(self.replace(key, object))
    }

    /// Takes in that a write has deleted `object`, and returns the change. Any version that the watch still shows is older.
    pub(crate) fn remove_ahead(&mut self, object: &ObjectRef) -> Option<Transition<K>> {
        let ObjectRef { key, uid, .. } = object;
        if self.objects.get(key)?.meta().uid != *uid {
            return None;
        }
        self.deleted.insert(key.clone(), uid.clone());
        self.ahead.remove(key);
        let old = self.objects.remove(key);
        Some(Transition {
            key: key.clone(),
            old,
            new: None,
        })
    }

    /// Takes in a known object as a write has `made` it, which is `stored` now, and returns the change: the next decisions
    /// count it before the watch shows it.
    pub(crate) fn written_as(
        &mut self,
        write: &Write,
        stored: &ObjectRef,
        made: impl FnOnce(&K) -> Option<K>,
    ) -> Option<Transition<K>> {
        let known = self.objects.get(&stored.key)?;
        // A newer one has it already, or another object has the name.
        if known.meta().resource_version != write.object.version {
            return None;
        }
        let object = made(known)?;
        if stored.version == write.object.version {
            // The API keeps less of it: nobody is to write that again and again.
            return Some(self.replace(stored.key.clone(), object));
        }
        self.read_ahead(object)
    }

    fn apply(&mut self, object: Decoded<K>) -> Option<Transition<K>> {
        let key = Key::of(&object);
        let version = object.meta().resource_version.clone();
        let change = self.change(key.clone(), object);
        self.show(&key, &Shown::Version(version));
        change
    }

    fn change(&mut self, key: Key, object: Decoded<K>) -> Option<Transition<K>> {
        self.unlisted.remove(&key);
        if let Some(deleted) = self.deleted.get(&key) {
            if *deleted == object.meta().uid {
                return None;
            }
            self.deleted.remove(&key);
        }
        let known = self.objects.get(&key);
        let object = match object {
            Decoded::Valid(object) => object,
            Decoded::Invalid { metadata, error } if metadata.deletion_timestamp.is_some() => {
                tracing::warn!(object = %key, error, "Unreadable object is being deleted, letting it go");
                let mut object = known.map(|known| K::clone(known)).unwrap_or_default();
                *object.meta_mut() = *metadata;
                object
            }
            Decoded::Invalid { error, .. } => {
                tracing::warn!(object = %key, error, "Unreadable object, keeping its last good version");
                let undecoded = if known.is_some() {
                    &mut self.stale
                } else {
                    &mut self.unread
                };
                undecoded.insert(key);
                return None;
            }
        };
        self.unread.remove(&key);
        self.stale.remove(&key);
        let is_same = known.is_some_and(|known| same_version(&**known, &object));
        let is_ahead = self.ahead.contains(&key);
        // At the same version the watch shows more than who has written it knew.
        if is_same && !is_ahead {
            return None;
        }
        if is_ahead && !is_same && known.is_some_and(|known| is_at_least(&**known, &object)) {
            return None;
        }
        self.ahead.remove(&key);
        Some(self.replace(key, object))
    }

    fn replace(&mut self, key: Key, object: K) -> Transition<K> {
        let new = Arc::new(object);
        let old = self.objects.insert(key.clone(), Arc::clone(&new));
        // That of another one of the name may be the first to show that the former is gone.
        if old
            .as_ref()
            .is_some_and(|old| old.meta().uid != new.meta().uid)
        {
            self.show(&key, &Shown::Absence);
        }
        Transition {
            key,
            old,
            new: Some(new),
        }
    }

    /// Tells those who wait for a write that the watch shows it.
    fn show(&self, key: &Key, shown: &Shown) {
        if let Some((expectations, resource)) = &self.expected {
            expectations.observe(resource, key, shown);
        }
    }

    fn remove(&mut self, key: Key) -> Option<Transition<K>> {
        self.unlisted.remove(&key);
        self.unread.remove(&key);
        self.stale.remove(&key);
        self.ahead.remove(&key);
        let old = self.objects.remove(&key);
        self.show(&key, &Shown::Absence);
        let old = old?;
        Some(Transition {
            key,
            old: Some(old),
            new: None,
        })
    }
}

/// Returns `true` if `known` is a version of the same object that is as new as another one, or newer.
fn is_at_least(known: &impl Resource, other: &impl Resource) -> bool {
    let (known, other) = (known.meta(), other.meta());
    let versions = [known, other].map(|one| one.resource_version.as_deref());
    known.uid == other.uid && is_as_new(versions[0], versions[1])
}

/// Compares the uid too: an object created again may have any resource version.
fn same_version(known: &impl Resource, object: &impl Resource) -> bool {
    let (known, object) = (known.meta(), object.meta());
    known.resource_version.is_some()
        && known.resource_version == object.resource_version
        && known.uid == object.uid
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;
    use proptest::prelude::*;
    use serde_json::{from_value, json};

    use super::*;

    fn metadata(name: u8, version: u32) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_string()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        }
    }

    fn map(name: u8, version: u32) -> ConfigMap {
        ConfigMap {
            metadata: metadata(name, version),
            ..ConfigMap::default()
        }
    }

    fn valid(name: u8, version: u32) -> Decoded<ConfigMap> {
        Decoded::Valid(map(name, version))
    }

    fn invalid(name: u8, version: u32) -> Decoded<ConfigMap> {
        let error = "no such field".to_owned();
        Decoded::Invalid {
            metadata: Box::new(metadata(name, version)),
            error,
        }
    }

    fn deleting(mut object: Decoded<ConfigMap>) -> Decoded<ConfigMap> {
        let time = serde_json::from_str("\"2026-11-20T08:00:00Z\"").unwrap();
        object.meta_mut().deletion_timestamp = Some(time);
        object
    }

    fn counts(cache: &Cache<ConfigMap>) -> (usize, usize) {
        let Undecoded { unread, stale } = cache.undecoded();
        (unread, stale)
    }

    fn key(name: u8) -> Key {
        Key::cluster_scoped(name.to_string())
    }

    fn versions(cache: &Cache<ConfigMap>) -> BTreeMap<Key, Option<String>> {
        let maps = cache.iter();
        maps.map(|(key, map)| (key.clone(), map.metadata.resource_version.clone()))
            .collect()
    }

    fn of(uid: &str, version: u32) -> ConfigMap {
        let mut map = map(1, version);
        map.metadata.uid = Some(uid.to_owned());
        map
    }

    /// Applies an event and returns the version that is in effect.
    fn shown(cache: &mut Cache<ConfigMap>, event: Event<Decoded<ConfigMap>>) -> Option<String> {
        cache.observe(event);
        let known = cache.get(&key(1))?;
        known.metadata.resource_version.clone()
    }

    fn applied(uid: &str, version: u32) -> Event<Decoded<ConfigMap>> {
        Event::Apply(Decoded::Valid(of(uid, version)))
    }

    fn deleted(uid: &str, version: u32) -> Event<Decoded<ConfigMap>> {
        Event::Delete(Decoded::Valid(of(uid, version)))
    }

    /// An object that a write has created is there until the watch catches up, which it may have done before the answer.
    #[test]
    fn created_object_shows_at_once() {
        let mut cache = Cache::default();
        assert!(cache.add_ahead(of("a", 9)).is_some());
        assert_eq!(shown(&mut cache, applied("a", 8)).as_deref(), Some("9"));
        assert_eq!(shown(&mut cache, applied("a", 10)).as_deref(), Some("10"));
        assert!(cache.add_ahead(of("a", 9)).is_none());
        assert_eq!(shown(&mut cache, deleted("a", 11)), None);
        // One that the watch shows only when it is gone.
        cache.add_ahead(of("b", 12));
        assert_eq!(cache.observe(deleted("b", 13)).len(), 1);
    }

    /// An object that a write has deleted is gone at once, and another object may have its name before the watch shows that.
    #[test]
    fn deleted_object_is_gone() {
        let mut cache = Cache::default();
        cache.observe(applied("a", 1));
        let [other, a] = ["other", "a"].map(|uid| ObjectRef::of(&of(uid, 1), &()));
        assert!(cache.remove_ahead(&other).is_none());
        assert!(cache.remove_ahead(&a).is_some());
        assert_eq!(shown(&mut cache, applied("a", 2)), None, "from before");
        cache.add_ahead(of("b", 4));
        for late in [applied("a", 2), deleted("a", 3)] {
            assert_eq!(shown(&mut cache, late).as_deref(), Some("4"));
        }
        assert_eq!(shown(&mut cache, deleted("b", 5)), None);
        assert_eq!(shown(&mut cache, applied("c", 6)).as_deref(), Some("6"));
    }

    /// A complete list supersedes the answers to writes.
    #[test]
    fn complete_list_supersedes_writes() {
        let mut cache = Cache::default();
        cache.observe(Event::Init);
        cache.add_ahead(of("a", 9));
        assert_eq!(cache.observe(Event::InitDone).len(), 1);
        cache.observe(applied("b", 10));
        cache.remove_ahead(&ObjectRef::of(&of("b", 10), &()));
        cache.observe(Event::Init);
        let listed = Event::InitApply(Decoded::Valid(of("b", 10)));
        assert_eq!(shown(&mut cache, listed).as_deref(), Some("10"));
        let done = shown(&mut cache, Event::InitDone);
        assert_eq!(done.as_deref(), Some("10"));
    }

    /// A list shows more of a written object than its writer knew.
    #[test]
    fn list_completes_written_object() {
        let mut cache = Cache::default();
        cache.add_ahead(of("a", 9));
        cache.observe(Event::Init);
        for changes in [1, 0] {
            let listed = Event::InitApply(Decoded::Valid(of("a", 9)));
            assert_eq!(cache.observe(listed).len(), changes);
        }
    }

    /// An object that becomes invalid keeps its last valid version.
    #[test]
    fn invalid_object_keeps_last_version() {
        let mut cache = Cache::default();
        cache.observe(Event::Apply(valid(1, 1)));
        assert!(cache.observe(Event::Apply(invalid(1, 2))).is_empty());
        assert_eq!(versions(&cache)[&key(1)].as_deref(), Some("1"));
        assert!(cache.unread().is_empty());
    }

    /// An object that was never valid is unread until it is valid or gone.
    #[test]
    fn never_valid_is_unread() {
        let mut cache = Cache::default();
        cache.observe(Event::InitApply(invalid(1, 1)));
        cache.observe(Event::InitApply(invalid(2, 2)));
        assert_eq!(cache.unread().len(), 2);
        assert_eq!(cache.observe(Event::Apply(valid(1, 3))).len(), 1);
        assert!(cache.observe(Event::Delete(invalid(2, 4))).is_empty());
        assert!(cache.unread().is_empty());
    }

    /// An object read once is stale until it is valid or gone.
    #[test]
    fn read_once_is_stale() {
        let mut cache = Cache::default();
        for name in [1, 2, 3] {
            cache.observe(Event::Apply(valid(name, 1)));
            cache.observe(Event::Apply(invalid(name, 2)));
        }
        assert_eq!(counts(&cache), (0, 3));
        cache.observe(Event::Apply(valid(1, 3)));
        assert_eq!(counts(&cache), (0, 2));
        assert!(cache.is_stale(&key(2)) && !cache.is_stale(&key(1)));
        cache.observe(Event::Delete(invalid(2, 3)));
        assert_eq!(counts(&cache), (0, 1));
        // A list without the third.
        for event in [Event::Init, Event::InitApply(valid(1, 3)), Event::InitDone] {
            cache.observe(event);
        }
        assert_eq!(counts(&cache), (0, 0));
        // The version that was good before may come back with a list.
        cache.observe(Event::Apply(invalid(1, 4)));
        assert!(cache.observe(Event::Apply(valid(1, 3))).is_empty());
        assert_eq!(counts(&cache), (0, 0));
    }

    /// An unreadable object that is being deleted is let go with its last content.
    #[test]
    fn deleting_unreadable_is_let_go() {
        let mut cache = Cache::default();
        let mut map = map(1, 1);
        map.data = Some([("k".to_owned(), "v".to_owned())].into());
        cache.observe(Event::Apply(Decoded::Valid(map)));
        cache.observe(Event::Apply(invalid(1, 2)));
        cache.observe(Event::Apply(invalid(2, 3)));
        assert_eq!(counts(&cache), (1, 1));
        for (name, content) in [(1, 1), (2, 0)] {
            let changes = cache.observe(Event::Apply(deleting(invalid(name, 4))));
            let [change] = changes.as_slice() else {
                panic!("{changes:?}");
            };
            let map = change.new.as_ref().unwrap();
            assert!(map.metadata.deletion_timestamp.is_some());
            // Finalizers are removed from this version.
            assert_eq!(map.metadata.resource_version.as_deref(), Some("4"));
            assert_eq!(map.data.iter().flatten().count(), content);
        }
        assert_eq!(counts(&cache), (0, 0));
    }

    /// An object that was read is in effect until the watch has caught up with it, or lists anew.
    #[test]
    fn read_version_outlasts_older() {
        let mut cache = Cache::default();
        let unshown = cache.read_ahead(map(1, 1));
        assert!(unshown.is_none());
        cache.observe(Event::Apply(valid(1, 5)));
        assert!(cache.read_ahead(map(1, 4)).is_none());
        assert!(cache.read_ahead(map(1, 10)).is_some());
        for (shown, in_effect, is_change) in [
            (9, "10", false),
            (10, "10", true),
            (10, "10", false),
            (11, "11", true),
            (7, "7", true),
        ] {
            let changes = cache.observe(Event::Apply(valid(1, shown)));
            let version = versions(&cache)[&key(1)].clone();
            assert_eq!(version.as_deref(), Some(in_effect), "{shown}");
            assert_eq!(!changes.is_empty(), is_change, "{shown}");
        }
        cache.read_ahead(map(1, 20));
        cache.observe(Event::InitApply(valid(1, 8)));
        assert_eq!(versions(&cache)[&key(1)].as_deref(), Some("8"));
    }

    /// An object that was written is in effect before the watch shows it, unless that is ahead.
    #[test]
    fn written_version_is_in_effect() {
        for (shown, expected) in [(1, Some("a")), (2, None)] {
            let mut cache = Cache::default();
            cache.observe(Event::Apply(valid(1, 1)));
            let decided_on = ObjectRef::of(&**cache.get(&key(1)).unwrap(), &());
            let stored = ObjectRef {
                version: Some("2".to_owned()),
                ..decided_on.clone()
            };
            let write = Write::merge("map", decided_on, json!({ "data": { "k": "a" } }));
            cache.observe(Event::Apply(valid(1, shown)));
            let change = cache.written_as(&write, &stored, |known| {
                from_value(write.applied(known, &stored)?).ok()
            });
            let data = change.and_then(|change| change.new?.data.clone());
            let value = data.as_ref().map(|data| data["k"].as_str());
            assert_eq!(value, expected);
            assert_eq!(versions(&cache)[&key(1)].as_deref(), Some("2"));
        }
    }

    /// A list of known versions changes nothing.
    #[test]
    fn known_versions_change_nothing() {
        let mut cache = Cache::default();
        cache.observe(Event::Apply(valid(1, 1)));
        for event in [Event::Init, Event::InitApply(valid(1, 1)), Event::InitDone] {
            assert!(cache.observe(event).is_empty());
        }
    }

    proptest! {
        /// A complete list leaves the same as a replay of every change.
        #[test]
        fn list_equals_replay(
            changes in prop::collection::vec((0_u8..5, any::<bool>()), 0..30),
            missed_after in 0_u32..30,
        ) {
            let (mut replayed, mut listed) = (Cache::default(), Cache::default());
            let mut existing = BTreeMap::new();
            for (version, (name, exists)) in (1..).zip(changes) {
                let event = if exists {
                    existing.insert(name, version);
                    Event::Apply(valid(name, version))
                } else {
                    existing.remove(&name);
                    Event::Delete(valid(name, version))
                };
                replayed.observe(event.clone());
                if version <= missed_after {
                    listed.observe(event);
                }
            }
            listed.observe(Event::Init);
            for (name, version) in existing {
                listed.observe(Event::InitApply(valid(name, version)));
            }
            listed.observe(Event::InitDone);
            prop_assert_eq!(versions(&listed), versions(&replayed));
        }
    }
}
