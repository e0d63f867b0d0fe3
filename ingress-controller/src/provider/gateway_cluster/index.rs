//! An index of our objects of one kind in the gateway cluster: those the watch has shown, and our own
//! writes it has not shown yet. Without the latter, two reconciles in quick succession would create and
//! delete twice, and an ingress could be released with objects left behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::reverse_index::ReverseIndex;
use traffic::ingress::kubernetes::ingress_of;

use super::kind::GatewayKind;

#[derive(Debug)]
pub(super) struct ObjectIndex<K> {
    watched: Cache<K>,
    pending: BTreeMap<Key, PendingWrite<K>>,
    /// From an object to the ingress it belongs to.
    by_ingress: ReverseIndex<Key, Key>,
    /// From a route to its hosts.
    by_host: ReverseIndex<Key, String>,
}

/// A write of ours that the watch has not shown yet.
#[derive(Debug)]
enum PendingWrite<K> {
    Stored(Arc<K>),
    Deleted { uid: Option<String> },
}

impl<K> Default for ObjectIndex<K> {
    fn default() -> Self {
        Self {
            watched: Cache::default(),
            pending: BTreeMap::new(),
            by_ingress: ReverseIndex::default(),
            by_host: ReverseIndex::default(),
        }
    }
}

impl<K: GatewayKind> ObjectIndex<K> {
    /// Applies an event of the watch and returns the ingresses it concerns.
    pub(super) fn observe(&mut self, event: Event<Decoded<K>>) -> Vec<Key> {
        let mut concerned = Vec::new();
        let superseded = self.superseded_by(&event);
        // The ingress of the pending version, and below that of the version the watch shows: they may
        // differ.
        for key in &superseded {
            concerned.extend(self.ingress(key));
            self.pending.remove(key);
        }
        for Transition { key, old, new } in self.watched.observe(event) {
            let versions = old.iter().chain(&new);
            concerned.extend(versions.filter_map(|object| ingress_of(object.meta())));
            if let (Some(write), Some(seen)) = (self.pending.get(&key), &new)
                && write.is_included_in(seen.meta())
            {
                self.pending.remove(&key);
            }
            self.index(&key);
        }
        for key in &superseded {
            concerned.extend(self.ingress(key));
            self.index(key);
        }
        concerned
    }

    /// Returns the objects whose pending write is older than this event, even if the event does not
    /// show it: a deleted object, and all of them after a complete list.
    fn superseded_by(&self, event: &Event<Decoded<K>>) -> Vec<Key> {
        let pending = self.pending.iter();
        match event {
            Event::InitDone => pending.map(|(key, _)| key.clone()).collect(),
            // The uid, because the pending write may be of a successor with the same name.
            Event::Delete(gone) => pending
                .filter(|(key, write)| {
                    **key == Key::of(gone) && write.uid() == gone.metadata().uid.as_ref()
                })
                .map(|(key, _)| key.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the object `key`, if it exists.
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        match self.pending.get(key) {
            Some(PendingWrite::Stored(object)) => Some(object),
            Some(PendingWrite::Deleted { .. }) => None,
            None => self.watched.get(key),
        }
    }

    /// Returns the objects of `ingress`.
    pub(super) fn of(&self, ingress: &Key) -> impl Iterator<Item = &Arc<K>> {
        let keys = self.by_ingress.sources(ingress);
        keys.filter_map(|key| self.get(key))
    }

    /// Returns the objects that route `host`.
    pub(super) fn with_host(&self, host: &str) -> impl Iterator<Item = &Arc<K>> {
        let keys = self.by_host.sources(host);
        keys.filter_map(|key| self.get(key))
    }

    /// Returns the ingress of every object, with repetitions.
    pub(super) fn ingresses(&self) -> impl Iterator<Item = Key> {
        let objects = self.watched.iter().map(|(_, object)| object);
        objects.filter_map(|object| ingress_of(object.meta()))
    }

    /// Takes in the response to a creation or an update.
    pub(super) fn stored(&mut self, object: K) {
        let key = Key::of(&object);
        let known = self.watched.get(&key);
        // The event of a write may overtake its response.
        if known.is_some_and(|known| is_as_new(known.meta(), object.meta())) {
            return;
        }
        let write = PendingWrite::Stored(Arc::new(object));
        self.pending.insert(key.clone(), write);
        self.index(&key);
    }

    /// Takes in the response to a deletion.
    pub(super) fn deleted(&mut self, object: &K) {
        let key = Key::of(object);
        let uid = object.meta().uid.clone();
        self.pending.remove(&key);
        let known = self.watched.get(&key);
        if known.is_some_and(|known| known.meta().uid == uid) {
            let write = PendingWrite::Deleted { uid };
            self.pending.insert(key.clone(), write);
        }
        self.index(&key);
    }

    /// Returns the ingress of the object `key`, if that exists.
    fn ingress(&self, key: &Key) -> Option<Key> {
        self.get(key).and_then(|object| ingress_of(object.meta()))
    }

    fn index(&mut self, key: &Key) {
        let ingress = self.ingress(key);
        self.by_ingress.replace(key, ingress.into_iter().collect());
        let hosts = self.get(key).map(|object| object.hosts());
        self.by_host.replace(key, hosts.unwrap_or_default());
    }
}

impl<K: Resource> PendingWrite<K> {
    fn uid(&self) -> Option<&String> {
        match self {
            Self::Stored(object) => object.meta().uid.as_ref(),
            Self::Deleted { uid } => uid.as_ref(),
        }
    }

    /// Returns `true` if a watch that shows `seen` has passed this write.
    fn is_included_in(&self, seen: &ObjectMeta) -> bool {
        match self {
            Self::Stored(written) => is_as_new(seen, written.meta()),
            Self::Deleted { uid } => seen.uid != *uid,
        }
    }
}

/// Returns `true` if `seen` is at least as new as `written`. Resource versions of one kind compare as
/// numbers (Kubernetes API concepts, "Resource versions"). If one is no number, `seen` counts as new,
/// because a pending write that is never superseded would hide the object forever.
fn is_as_new(seen: &ObjectMeta, written: &ObjectMeta) -> bool {
    let version = |meta: &ObjectMeta| meta.resource_version.as_ref()?.parse::<u128>().ok();
    match (version(seen), version(written)) {
        (Some(seen), Some(written)) => seen >= written,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    const ANNOTATION: &str = "karmada-rs.io/multi-cluster-ingress";

    fn object(uid: &str, version: u32) -> Service {
        let mut object = Service::default();
        object.metadata.name = Some("s".to_owned());
        object.metadata.namespace = Some("ns".to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(version.to_string());
        object.metadata.annotations = Some([(ANNOTATION.to_owned(), "i".to_owned())].into());
        object
    }

    fn applied(object: Service) -> Event<Decoded<Service>> {
        Event::Apply(Decoded::Valid(object))
    }

    fn deleted(object: Service) -> Event<Decoded<Service>> {
        Event::Delete(Decoded::Valid(object))
    }

    /// Returns the version of the one object, found by its key and by its ingress.
    fn shown(index: &ObjectIndex<Service>) -> Option<String> {
        let version = |object: &Arc<Service>| object.metadata.resource_version.clone();
        let by_key = index.get(&Key::new("ns", "s")).and_then(version);
        let by_ingress = index.of(&Key::new("ns", "i")).next().and_then(version);
        assert_eq!(by_key, by_ingress);
        by_key
    }

    /// A stored object shows at once and until the watch catches up.
    #[test]
    fn stored_object_shows_at_once() {
        let mut index = ObjectIndex::default();
        index.stored(object("a", 9));
        assert_eq!(shown(&index).as_deref(), Some("9"));
        index.observe(applied(object("a", 8)));
        assert_eq!(shown(&index).as_deref(), Some("9"), "an older event");
        index.observe(applied(object("a", 10)));
        assert_eq!(shown(&index).as_deref(), Some("10"));
    }

    /// An event that overtakes the response wins.
    #[test]
    fn overtaking_event_wins() {
        let mut index = ObjectIndex::default();
        index.observe(applied(object("a", 10)));
        index.stored(object("a", 9));
        assert_eq!(shown(&index).as_deref(), Some("10"));
    }

    /// A deleted object is gone at once and may return as another object.
    #[test]
    fn deleted_object_is_gone() {
        let mut index = ObjectIndex::default();
        index.observe(applied(object("a", 1)));
        index.deleted(&object("a", 1));
        assert_eq!(shown(&index), None);
        index.observe(applied(object("a", 2)));
        assert_eq!(shown(&index), None, "an event from before the deletion");
        index.observe(deleted(object("a", 3)));
        assert_eq!(shown(&index), None);
        index.observe(applied(object("b", 4)));
        assert_eq!(shown(&index).as_deref(), Some("4"));
    }

    /// An object created again is not lost with the deletion of the former.
    #[test]
    fn recreated_object_is_kept() {
        let mut index = ObjectIndex::default();
        index.observe(applied(object("a", 1)));
        index.deleted(&object("a", 1));
        index.stored(object("b", 3));
        index.observe(deleted(object("a", 2)));
        assert_eq!(shown(&index).as_deref(), Some("3"));
        index.observe(deleted(object("b", 4)));
        assert_eq!(shown(&index), None);
    }

    /// A complete list supersedes all writes and concerns their ingresses.
    #[test]
    fn complete_list_supersedes_writes() {
        let mut index = ObjectIndex::default();
        index.stored(object("a", 9));
        index.observe(Event::Init);
        assert_eq!(index.observe(Event::InitDone), [Key::new("ns", "i")]);
        assert_eq!(shown(&index), None);

        index.observe(applied(object("b", 10)));
        index.deleted(&object("b", 10));
        index.observe(Event::Init);
        index.observe(Event::InitApply(Decoded::Valid(object("b", 10))));
        assert_eq!(index.observe(Event::InitDone), [Key::new("ns", "i")]);
        assert_eq!(shown(&index).as_deref(), Some("10"), "a list from before");
    }

    /// An object of ours that the watch shows only when it is gone concerns its ingress.
    #[test]
    fn unseen_deletion_concerns_its_ingress() {
        let mut index = ObjectIndex::default();
        index.stored(object("a", 9));
        assert_eq!(
            index.observe(deleted(object("a", 10))),
            [Key::new("ns", "i")]
        );
        assert_eq!(shown(&index), None);
    }

    /// An event concerns the ingress of the object before and after.
    #[test]
    fn moved_object_concerns_both_ingresses() {
        let mut index = ObjectIndex::default();
        assert_eq!(
            index.observe(applied(object("a", 1))),
            [Key::new("ns", "i")]
        );
        let mut moved = object("a", 2);
        let annotations = moved.metadata.annotations.as_mut().unwrap();
        annotations.insert(ANNOTATION.to_owned(), "j".to_owned());
        let both = [Key::new("ns", "i"), Key::new("ns", "j")];
        assert_eq!(index.observe(applied(moved)), both);
        assert_eq!(index.ingresses().collect::<Vec<_>>(), both[1..]);
    }
}
