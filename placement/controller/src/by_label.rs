//! Objects that are found by the value of a label.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::reverse_index::ReverseIndex;
use objects::{Key, Metadata};

/// The objects of one kind, found by the value of one label.
#[derive(Debug)]
pub(crate) struct ByLabel<K> {
    label: &'static str,
    objects: Cache<K>,
    by_value: ReverseIndex<Key, String>,
}

impl<K> ByLabel<K> {
    pub(crate) fn new(label: &'static str) -> Self {
        Self {
            label,
            objects: Cache::default(),
            by_value: ReverseIndex::default(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// Returns the objects whose label has this value.
    pub(crate) fn of(&self, value: &str) -> Vec<Arc<K>> {
        let keys = self.by_value.sources(value);
        keys.filter_map(|key| self.objects.get(key).map(Arc::clone))
            .collect()
    }

    /// Returns the number of objects whose label has this value.
    pub(crate) fn count(&self, value: &str) -> usize {
        self.by_value.sources(value).count()
    }

    pub(crate) fn undecoded(&self) -> Undecoded {
        self.objects.undecoded()
    }
}

impl<K: Resource + Clone + Default> ByLabel<K> {
    /// Applies an event of the watch and returns the changes.
    pub(crate) fn observe(&mut self, event: Event<Decoded<K>>) -> Vec<Transition<K>> {
        let changes = self.objects.observe(event);
        for change in &changes {
            let value = self.value(change.new.as_deref().map(Resource::meta));
            self.by_value
                .replace(&change.key, value.into_iter().collect());
        }
        changes
    }

    /// Returns the values of the label before and after a change.
    pub(crate) fn values(&self, change: &Transition<K>) -> Vec<String> {
        let versions = [&change.old, &change.new];
        let values = versions.map(|version| self.value(version.as_deref().map(Resource::meta)));
        let mut values: Vec<_> = values.into_iter().flatten().collect();
        values.dedup();
        values
    }

    fn value(&self, metadata: Option<&ObjectMeta>) -> Option<String> {
        metadata?.label(self.label).map(str::to_owned)
    }
}
