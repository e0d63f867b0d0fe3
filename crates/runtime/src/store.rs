//! The watched objects of one kind, by key and by their references.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::reverse_index::ReverseIndex;
use objects::write::{ObjectRef, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::{Cache, Transition, Undecoded};
use crate::expectations::Expectations;
use crate::watch::Decoded;

/// The last valid version of every object of the kind `K`, by key and by each `T` that it refers to.
#[derive(Debug)]
pub struct Store<K, T = ()> {
    objects: Cache<K>,
    references: ReverseIndex<Key, T>,
    refers: fn(&K) -> BTreeSet<T>,
    is_kept: fn(&Key) -> bool,
    keep: fn(&mut K),
    is_news: fn(&K, &mut K) -> bool,
    judge: fn(&K) -> Verdict,
    is_listed: bool,
}

/// The verdict of a store about an object that decodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The newest version.
    Valid,
    /// As if it did not decode, for this reason: its last good version stays in effect.
    Unreadable(String),
    /// As if it did not exist.
    Ignored,
}

/// The changes that one event has brought to the objects of a kind.
#[derive(Debug, Default)]
pub struct Changes<K> {
    /// The change of each object.
    pub objects: Vec<Transition<K>>,
    /// The objects that had never decoded, and now do or are gone.
    pub mended: BTreeSet<Key>,
    /// The objects that have appeared, and do not decode.
    pub unread: BTreeSet<Key>,
    /// True if every object has been listed for the first time.
    pub is_first_list: bool,
}

impl<K, T> Default for Store<K, T> {
    fn default() -> Self {
        Self {
            objects: Cache::default(),
            references: ReverseIndex::default(),
            refers: |_| BTreeSet::new(),
            is_kept: |_| true,
            keep: |_| {},
            is_news: |_, _| true,
            judge: |_| Verdict::Valid,
            is_listed: false,
        }
    }
}

impl<K, T> Store<K, T> {
    /// Creates a store that finds an object by the references that `refers` returns.
    pub fn by(refers: fn(&K) -> BTreeSet<T>) -> Self {
        Self {
            refers,
            ..Self::default()
        }
    }

    /// Keeps only the objects with such keys. The others do not exist for the store.
    #[must_use]
    pub fn only(self, is_kept: fn(&Key) -> bool) -> Self {
        Self { is_kept, ..self }
    }

    /// Takes an object that decodes by the verdict of `judge`.
    #[must_use]
    pub fn judging(self, judge: fn(&K) -> Verdict) -> Self {
        Self { judge, ..self }
    }

    /// Returns the last valid version of an object.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// Returns `true` if an object exists, decoded or not.
    pub fn exists(&self, key: &Key) -> bool {
        self.get(key).is_some() || self.unread().contains(key)
    }

    /// Iterates over the objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// Iterates over the keys of the objects, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.iter().map(|(key, _)| key)
    }

    /// Returns the keys of objects that exist but never decoded: their content is unknown.
    pub fn unread(&self) -> &BTreeSet<Key> {
        self.objects.unread()
    }

    /// Returns `true` if the newest version of an object is invalid, and an earlier one in effect.
    pub fn is_stale(&self, key: &Key) -> bool {
        self.objects.is_stale(key)
    }

    /// Returns the number of objects that exist, decoded or not.
    pub fn existing(&self) -> usize {
        self.objects.existing()
    }

    /// Returns `true` once every object has been listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Counts the objects whose newest version does not decode.
    pub fn undecoded(&self) -> Undecoded {
        self.objects.undecoded()
    }
}

impl<K: Resource + Clone + Default, T> Store<K, T> {
    /// Has the events show our writes to the objects.
    #[must_use]
    pub fn expecting(self, expectations: &Expectations, kind: &K::DynamicType) -> Self {
        self.expecting_as(expectations, ApiResource::erase::<K>(kind))
    }

    /// Has the events show the same of objects that the API has as `resource`, and that are read as this kind.
    #[must_use]
    pub fn expecting_as(self, expectations: &Expectations, resource: ApiResource) -> Self {
        Self {
            objects: self.objects.expecting(expectations, resource),
            ..self
        }
    }
}

impl<K: Resource + PartialEq, T> Store<K, T> {
    /// Keeps of each object the part that `keep` leaves: nobody reads the rest, so that a version that differs in nothing else
    /// is no change.
    #[must_use]
    pub fn keeping(self, keep: fn(&mut K)) -> Self {
        Self {
            keep,
            is_news: differs,
            ..self
        }
    }
}

impl<K, T: Clone + Ord> Store<K, T> {
    /// Iterates over the keys of the objects that refer to `target`, in order.
    pub fn keys_of(&self, target: &T) -> impl Iterator<Item = &Key> + use<'_, K, T> {
        self.references.sources(target)
    }

    /// Iterates over the objects that refer to `target`, in the order of their keys.
    pub fn of(&self, target: &T) -> impl Iterator<Item = &Arc<K>> + use<'_, K, T> {
        self.keys_of(target).filter_map(|key| self.get(key))
    }

    /// Returns the references of an object, in order.
    pub fn targets(&self, key: &Key) -> &[T] {
        self.references.targets(key)
    }

    /// Notes the references of an object after a change.
    fn refer(&mut self, change: &Transition<K>) {
        let targets = change.new.as_deref().map(self.refers);
        self.references
            .replace(&change.key, targets.unwrap_or_default());
    }

    fn referred(&mut self, change: Option<Transition<K>>) -> Option<Transition<K>> {
        change.inspect(|change| self.refer(change))
    }

    /// Returns the references of both versions of an object.
    pub fn concerned(&self, change: &Transition<K>) -> BTreeSet<T> {
        change.versions().flat_map(self.refers).collect()
    }
}

impl<K: Resource + Clone + Default, T: Clone + Ord> Store<K, T> {
    /// Applies an event of the watch and returns the changes. An invalid object keeps its last valid version, a known
    /// resource version is no change, and an object missing from a complete list is gone. An invalid object that is being
    /// deleted is valid with its last content, or none, since only its metadata matter then.
    pub fn observe(&mut self, event: Event<Decoded<K>>) -> Changes<K> {
        let key = match &event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                Some(Key::of(object))
            }
            Event::Init | Event::InitDone => None,
        };
        if key.as_ref().is_some_and(|key| !(self.is_kept)(key)) {
            return Changes::default();
        }
        let mut event = self.judged(event);
        let is_first_list = matches!(event, Event::InitDone) && !self.is_listed;
        self.is_listed |= is_first_list;
        let is_news = match &mut event {
            Event::Apply(Decoded::Valid(object)) | Event::InitApply(Decoded::Valid(object)) => {
                (self.keep)(object);
                let known = self.objects.get(&Key::of(object));
                known.is_none_or(|known| (self.is_news)(known, object))
            }
            _ => true,
        };
        let before = self.unread_of(key.as_ref());
        let mut objects = self.objects.observe(event);
        objects.retain(|_| is_news);
        for change in &objects {
            self.refer(change);
        }
        let now = self.unread_of(key.as_ref());
        Changes {
            mended: before.difference(&now).cloned().collect(),
            unread: now.difference(&before).cloned().collect(),
            objects,
            is_first_list,
        }
    }

    /// Returns the objects that do not decode and never did: this one alone, if an event is about one.
    fn unread_of(&self, key: Option<&Key>) -> BTreeSet<Key> {
        let unread = self.objects.unread();
        match key {
            Some(key) => unread.get(key).cloned().into_iter().collect(),
            None => unread.clone(),
        }
    }

    fn judged(&self, event: Event<Decoded<K>>) -> Event<Decoded<K>> {
        let verdict = match &event {
            Event::Apply(Decoded::Valid(object)) | Event::InitApply(Decoded::Valid(object)) => {
                (self.judge)(object)
            }
            _ => Verdict::Valid,
        };
        match (event, verdict) {
            (Event::Apply(object), Verdict::Unreadable(error)) => {
                Event::Apply(unreadable(&object, error))
            }
            (Event::InitApply(object), Verdict::Unreadable(error)) => {
                Event::InitApply(unreadable(&object, error))
            }
            (Event::Apply(object) | Event::InitApply(object), Verdict::Ignored) => {
                Event::Delete(object)
            }
            (event, _) => event,
        }
    }

    /// Takes in a version of a known object that a read has shown, and returns the change. If it is newer than that of the
    /// watch, it is in effect until the watch has caught up.
    pub fn read_ahead(&mut self, mut object: K) -> Option<Transition<K>> {
        (self.keep)(&mut object);
        let change = self.objects.read_ahead(object);
        self.referred(change)
    }

    /// Takes in an object as [`Self::read_ahead`] does, also one that the watch has not shown yet.
    pub fn add_ahead(&mut self, mut object: K) -> Option<Transition<K>> {
        (self.keep)(&mut object);
        let change = self.objects.add_ahead(object);
        self.referred(change)
    }

    /// Takes in an object that a write has created, which is `stored` now, and returns the change.
    pub fn created(&mut self, mut object: K, stored: &ObjectRef) -> Option<Transition<K>> {
        let metadata = object.meta_mut();
        metadata.uid.clone_from(&stored.uid);
        metadata.resource_version.clone_from(&stored.version);
        metadata.generation = stored.generation;
        self.add_ahead(object)
    }

    /// Takes in that a write has deleted `object`, and returns the change. Any version that the watch still shows is older.
    pub fn deleted(&mut self, object: &ObjectRef) -> Option<Transition<K>> {
        let change = self.objects.remove_ahead(object);
        self.referred(change)
    }
}

impl<K, T> Store<K, T>
where
    K: Resource + Clone + Default + Serialize + DeserializeOwned,
    T: Clone + Ord,
{
    /// Takes in a known object as a write has made it, which is `stored` now, and returns the change: the next decisions
    /// count it before the watch shows it.
    pub fn written(&mut self, write: &Write, stored: &ObjectRef) -> Option<Transition<K>> {
        let keep = self.keep;
        let change = self.objects.written_as(write, stored, |known| {
            let mut object: K = serde_json::from_value(write.applied(known, stored)?).ok()?;
            keep(&mut object);
            Some(object)
        });
        self.referred(change)
    }
}

fn unreadable<K: Resource>(object: &Decoded<K>, error: String) -> Decoded<K> {
    Decoded::Invalid {
        metadata: Box::new(object.meta().clone()),
        error,
    }
}

/// Returns `true` if two versions of an object differ in more than their resource versions.
fn differs<K: Resource + PartialEq>(known: &K, object: &mut K) -> bool {
    let known_version = known.meta().resource_version.clone();
    let version = std::mem::replace(&mut object.meta_mut().resource_version, known_version);
    let differs = *known != *object;
    object.meta_mut().resource_version = version;
    differs
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn map(version: u32, data: &Value) -> Event<Decoded<ConfigMap>> {
        let metadata = json!({ "name": "a", "resourceVersion": version.to_string() });
        let object = from_value(json!({ "metadata": metadata, "data": data }));
        Event::Apply(Decoded::Valid(object.unwrap()))
    }

    fn unreadable() -> Decoded<ConfigMap> {
        let metadata = json!({ "name": "b", "resourceVersion": "1" });
        Decoded::Invalid {
            metadata: Box::new(from_value(metadata).unwrap()),
            error: "no such field".to_owned(),
        }
    }

    /// An object is found by its references of now, and a change concerns those of before, too.
    #[test]
    fn look_up_follows_object() {
        let mut store = Store::by(|map: &ConfigMap| {
            let data = map.data.iter().flatten();
            data.map(|(_, target)| target.clone()).collect()
        });
        store.observe(map(1, &json!({ "to": "x" })));
        let changes = store.observe(map(2, &json!({ "to": "y" }))).objects;
        let [x, y] = ["x", "y"].map(str::to_owned);
        assert_eq!((store.of(&x).count(), store.of(&y).count()), (0, 1));
        let concerned = BTreeSet::from([x, y.clone()]);
        assert_eq!(store.concerned(&changes[0]), concerned);
        store.observe(Event::Init);
        store.observe(Event::InitDone);
        assert_eq!(store.keys_of(&y).count(), 0);
    }

    /// A version that differs in dropped parts is no change, and the newest one all the same.
    #[test]
    fn dropped_part_changes_nothing() {
        let mut store: Store<ConfigMap> = Store::default().keeping(|map| {
            let data = map.data.get_or_insert_default();
            data.remove("beat");
        });
        for (version, data, changes) in [
            (1, json!({ "beat": "1" }), 1),
            (2, json!({ "beat": "2" }), 0),
            (3, json!({ "kept": "1" }), 1),
        ] {
            let observed = store.observe(map(version, &data));
            assert_eq!(observed.objects.len(), changes, "{version}");
            let known = store.get(&Key::cluster_scoped("a")).unwrap();
            let newest = known.metadata.resource_version.clone();
            assert_eq!(newest, Some(version.to_string()));
        }
    }

    /// An object whose key is not kept does not exist, decoded or not.
    #[test]
    fn unkept_key_does_not_exist() {
        let mut store: Store<ConfigMap> = Store::default().only(|key| key.name == "c");
        store.observe(map(1, &json!({})));
        let changes = store.observe(Event::Apply(unreadable()));
        assert!(changes.objects.is_empty() && changes.mended.is_empty());
        assert!(
            !["a", "b"]
                .map(Key::cluster_scoped)
                .iter()
                .any(|key| store.exists(key))
        );
    }

    /// An object that is ignored does not exist, and one that is not readable keeps its last good version.
    #[test]
    fn object_is_judged() {
        let mut store: Store<ConfigMap> = Store::default().judging(|map| {
            let data = map.data.as_ref().and_then(|data| data.get("is"));
            match data.map(String::as_str) {
                Some("odd") => Verdict::Unreadable("it is odd".to_owned()),
                Some("other") => Verdict::Ignored,
                _ => Verdict::Valid,
            }
        });
        let key = Key::cluster_scoped("a");
        let changes = store.observe(map(1, &json!({ "is": "odd" })));
        assert_eq!(changes.unread, [key.clone()].into());
        store.observe(map(2, &json!({ "is": "good" })));
        store.observe(map(3, &json!({ "is": "odd" })));
        let known = store.get(&key).unwrap();
        assert_eq!(known.metadata.resource_version.as_deref(), Some("2"));
        store.observe(map(4, &json!({ "is": "other" })));
        assert!(!store.exists(&key));
    }

    /// An object that never decoded is mended once it does, or is gone.
    #[test]
    fn gone_unread_object_is_mended() {
        let mut store: Store<ConfigMap> = Store::default();
        assert!(store.observe(Event::Apply(unreadable())).mended.is_empty());
        let key = Key::cluster_scoped("b");
        assert!(store.exists(&key) && store.get(&key).is_none());
        let mended = store.observe(Event::Delete(unreadable())).mended;
        assert_eq!(mended, BTreeSet::from([key]));
    }
}
