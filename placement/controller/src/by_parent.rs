//! Objects that are found by what they were made for.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::cache::{Transition, Undecoded};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::Scope;
use objects::reverse_index::ReverseIndex;

use crate::scoped::Scoped;

/// The objects of one kind, of both scopes, found by what they were made for.
#[derive(Debug)]
pub(crate) struct ByParent<K> {
    parent: fn(&ObjectMeta) -> Option<Key>,
    objects: Scoped<K>,
    parents: ReverseIndex<Key, Key>,
}

impl<K> ByParent<K> {
    /// Creates it of these objects; `parent` returns what one was made for.
    pub(crate) fn new(parent: fn(&ObjectMeta) -> Option<Key>, objects: Scoped<K>) -> Self {
        Self {
            parent,
            objects,
            parents: ReverseIndex::default(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// Returns the objects that were made for `parent`.
    pub(crate) fn of(&self, parent: &Key) -> Vec<Arc<K>> {
        let keys = self.parents.sources(parent);
        keys.filter_map(|key| self.objects.get(key).map(Arc::clone))
            .collect()
    }

    /// Returns the number of objects that were made for `parent`.
    pub(crate) fn count(&self, parent: &Key) -> usize {
        self.parents.sources(parent).count()
    }

    /// Returns what any of the objects was made for.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &Key> {
        let keys = self.objects.iter().map(|(key, _)| key);
        keys.flat_map(|key| self.parents.targets(key))
    }

    /// Returns what an object was made for.
    pub(crate) fn parent(&self, key: &Key) -> Option<&Key> {
        self.parents.targets(key).first()
    }

    /// Counts the objects of a scope that do not decode.
    pub(crate) fn undecoded(&self, scope: Scope) -> Undecoded {
        self.objects.undecoded(scope)
    }
}

impl<K: Resource + Clone + Default> ByParent<K> {
    /// Applies an event of the watch of a scope and returns the changes.
    pub(crate) fn observe(&mut self, scope: Scope, event: Event<Decoded<K>>) -> Vec<Transition<K>> {
        let changes = self.objects.observe(scope, event);
        for change in &changes {
            let parent = change.new.as_deref().map(Resource::meta);
            let parent = parent.and_then(self.parent);
            self.parents
                .replace(&change.key, parent.into_iter().collect());
        }
        changes
    }

    /// Returns what an object was made for, before and after a change.
    pub(crate) fn concerned(&self, change: &Transition<K>) -> BTreeSet<Key> {
        let versions = [&change.old, &change.new].into_iter().flatten();
        versions
            .filter_map(|version| (self.parent)(version.meta()))
            .collect()
    }
}
