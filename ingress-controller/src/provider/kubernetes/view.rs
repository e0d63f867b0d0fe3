//! What is known of our objects of one kind in the gateway cluster: what the watch told, and our own
//! writes that it has not told of yet. Without these a reconcile that follows another closely would
//! create and delete twice, and an ingress could be let go with objects left behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::Key;
use karmada_rules::ingress::kubernetes::ingress_of;
use karmada_rules::reverse_index::ReverseIndex;
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Guarded;
use kube::Resource;
use kube::runtime::watcher::Event;

#[derive(Debug)]
pub(super) struct View<K> {
    watched: Cache<K>,
    written: BTreeMap<Key, Written<K>>,
    /// Objects and the ingress each was made for.
    of_ingress: ReverseIndex<Key, Key>,
}

/// A write of ours that the watch has not told of.
#[derive(Debug)]
enum Written<K> {
    Stored(Arc<K>),
    Deleted { uid: Option<String> },
}

impl<K> Default for View<K> {
    fn default() -> Self {
        Self {
            watched: Cache::default(),
            written: BTreeMap::new(),
            of_ingress: ReverseIndex::default(),
        }
    }
}

impl<K: Resource> View<K> {
    /// Takes an event of the watch in and says which ingresses it concerns.
    pub(super) fn observe(&mut self, event: Event<Guarded<K>>) -> Vec<Key> {
        let mut concerned = Vec::new();
        let told = self.told_by(&event);
        for key in &told {
            concerned.extend(self.ingress(key));
            self.written.remove(key);
        }
        for Transition { key, old, new } in self.watched.observe(event) {
            let versions = old.iter().chain(&new);
            concerned.extend(versions.filter_map(|object| ingress_of(object.meta())));
            let written = self.written.get(&key);
            if let (Some(written), Some(seen)) = (written, &new)
                && written.is_told_by(seen.meta())
            {
                self.written.remove(&key);
            }
            self.index(&key);
        }
        for key in &told {
            concerned.extend(self.ingress(key));
            self.index(key);
        }
        concerned
    }

    /// The writes that the watch is past with this event, whatever it shows of them: of an object
    /// that is gone, and after a complete list all.
    fn told_by(&self, event: &Event<Guarded<K>>) -> Vec<Key> {
        let written = self.written.iter();
        match event {
            Event::InitDone => written.map(|(key, _)| key.clone()).collect(),
            Event::Delete(gone) => written
                .filter(|(key, write)| {
                    **key == Key::of(gone) && write.uid() == gone.metadata().uid.as_ref()
                })
                .map(|(key, _)| key.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The object `key`, if it exists.
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        match self.written.get(key) {
            Some(Written::Stored(object)) => Some(object),
            Some(Written::Deleted { .. }) => None,
            None => self.watched.get(key),
        }
    }

    /// The objects made for `ingress`.
    pub(super) fn of(&self, ingress: &Key) -> impl Iterator<Item = &Arc<K>> {
        let keys = self.of_ingress.sources(ingress);
        keys.filter_map(|key| self.get(key))
    }

    /// Every ingress that an object was made for.
    pub(super) fn ingresses(&self) -> impl Iterator<Item = Key> {
        let objects = self.watched.iter().map(|(_, object)| object);
        objects.filter_map(|object| ingress_of(object.meta()))
    }

    /// The API server has stored `object`.
    pub(super) fn stored(&mut self, object: K) {
        let key = Key::of(&object);
        let known = self.watched.get(&key);
        if known.is_some_and(|known| is_as_new(known.meta(), object.meta())) {
            return;
        }
        let written = Written::Stored(Arc::new(object));
        self.written.insert(key.clone(), written);
        self.index(&key);
    }

    /// The API server has deleted `object`.
    pub(super) fn deleted(&mut self, object: &K) {
        let key = Key::of(object);
        let uid = object.meta().uid.clone();
        self.written.remove(&key);
        let known = self.watched.get(&key);
        if known.is_some_and(|known| known.meta().uid == uid) {
            self.written.insert(key.clone(), Written::Deleted { uid });
        }
        self.index(&key);
    }

    /// The ingress that the object `key` was made for, if it exists.
    fn ingress(&self, key: &Key) -> Option<Key> {
        self.get(key).and_then(|object| ingress_of(object.meta()))
    }

    fn index(&mut self, key: &Key) {
        let ingress = self.ingress(key);
        self.of_ingress.replace(key, ingress.into_iter().collect());
    }
}

impl<K: Resource> Written<K> {
    fn uid(&self) -> Option<&String> {
        match self {
            Self::Stored(object) => object.meta().uid.as_ref(),
            Self::Deleted { uid } => uid.as_ref(),
        }
    }

    /// Whether a watch that shows `seen` is past this write.
    fn is_told_by(&self, seen: &ObjectMeta) -> bool {
        match self {
            Self::Stored(written) => is_as_new(seen, written.meta()),
            Self::Deleted { uid } => seen.uid != *uid,
        }
    }
}

/// Whether `seen` is at least as new as `written`. Resource versions of one kind are compared as
/// numbers (Kubernetes API concepts, "Resource versions"); one that is no number counts as new.
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

    fn applied(object: Service) -> Event<Guarded<Service>> {
        Event::Apply(Guarded::Good(object))
    }

    fn deleted(object: Service) -> Event<Guarded<Service>> {
        Event::Delete(Guarded::Good(object))
    }

    /// The versions that the view shows of the one object, by its key and by its ingress.
    fn shown(view: &View<Service>) -> Option<String> {
        let version = |object: &Arc<Service>| object.metadata.resource_version.clone();
        let by_key = view.get(&Key::new("ns", "s")).and_then(version);
        let by_ingress = view.of(&Key::new("ns", "i")).next().and_then(version);
        assert_eq!(by_key, by_ingress);
        by_key
    }

    #[test]
    fn what_was_stored_shows_at_once_and_until_the_watch_is_as_far() {
        let mut view = View::default();
        view.stored(object("a", 9));
        assert_eq!(shown(&view).as_deref(), Some("9"));
        view.observe(applied(object("a", 8)));
        assert_eq!(shown(&view).as_deref(), Some("9"), "an older event");
        view.observe(applied(object("a", 10)));
        assert_eq!(shown(&view).as_deref(), Some("10"));
    }

    #[test]
    fn an_event_that_came_before_the_answer_wins() {
        let mut view = View::default();
        view.observe(applied(object("a", 10)));
        view.stored(object("a", 9));
        assert_eq!(shown(&view).as_deref(), Some("10"));
    }

    #[test]
    fn what_was_deleted_is_gone_at_once_and_may_come_back_as_another_object() {
        let mut view = View::default();
        view.observe(applied(object("a", 1)));
        view.deleted(&object("a", 1));
        assert_eq!(shown(&view), None);
        view.observe(applied(object("a", 2)));
        assert_eq!(shown(&view), None, "an event from before the deletion");
        view.observe(deleted(object("a", 3)));
        assert_eq!(shown(&view), None);
        view.observe(applied(object("b", 4)));
        assert_eq!(shown(&view).as_deref(), Some("4"));
    }

    #[test]
    fn an_object_made_again_is_not_lost_with_the_deletion_of_the_former() {
        let mut view = View::default();
        view.observe(applied(object("a", 1)));
        view.deleted(&object("a", 1));
        view.stored(object("b", 3));
        view.observe(deleted(object("a", 2)));
        assert_eq!(shown(&view).as_deref(), Some("3"));
        view.observe(deleted(object("b", 4)));
        assert_eq!(shown(&view), None);
    }

    #[test]
    fn a_complete_list_ends_all_doubt_and_concerns_whom_it_tells_otherwise() {
        let mut view = View::default();
        view.stored(object("a", 9));
        view.observe(Event::Init);
        assert_eq!(view.observe(Event::InitDone), [Key::new("ns", "i")]);
        assert_eq!(shown(&view), None);

        view.observe(applied(object("b", 10)));
        view.deleted(&object("b", 10));
        view.observe(Event::Init);
        view.observe(Event::InitApply(Guarded::Good(object("b", 10))));
        assert_eq!(view.observe(Event::InitDone), [Key::new("ns", "i")]);
        assert_eq!(shown(&view).as_deref(), Some("10"), "a list from before");
    }

    #[test]
    fn an_object_of_ours_that_the_watch_shows_only_when_it_is_gone_concerns_its_ingress() {
        let mut view = View::default();
        view.stored(object("a", 9));
        assert_eq!(
            view.observe(deleted(object("a", 10))),
            [Key::new("ns", "i")]
        );
        assert_eq!(shown(&view), None);
    }

    #[test]
    fn an_event_concerns_the_ingress_the_object_was_made_for_before_and_after() {
        let mut view = View::default();
        assert_eq!(view.observe(applied(object("a", 1))), [Key::new("ns", "i")]);
        let mut moved = object("a", 2);
        let annotations = moved.metadata.annotations.as_mut().unwrap();
        annotations.insert(ANNOTATION.to_owned(), "j".to_owned());
        let both = [Key::new("ns", "i"), Key::new("ns", "j")];
        assert_eq!(view.observe(applied(moved)), both);
        assert_eq!(view.ingresses().collect::<Vec<_>>(), both[1..]);
    }
}
