//! The slices of an API, by what they are endpoints of.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::reverse_index::ReverseIndex;

/// The slices of an API, by what `G` they are endpoints of.
#[derive(Debug)]
pub(super) struct Slices<G> {
    pub(super) cache: Cache<EndpointSlice>,
    of: ReverseIndex<Key, G>,
}

impl<G> Default for Slices<G> {
    fn default() -> Self {
        Self {
            cache: Cache::default(),
            of: ReverseIndex::default(),
        }
    }
}

impl<G: Clone + Ord> Slices<G> {
    /// Takes in an event, and returns what it concerns. `of` returns what a slice has endpoints of.
    pub(super) fn observe(
        &mut self,
        event: Event<Decoded<EndpointSlice>>,
        of: impl Fn(&EndpointSlice) -> Option<G>,
    ) -> BTreeSet<G> {
        let mut concerned = BTreeSet::new();
        for Transition { key, old: _, new } in self.cache.observe(event) {
            concerned.extend(self.of.targets(&key).iter().cloned());
            let now = new.as_deref().and_then(&of);
            concerned.extend(now.clone());
            self.of.replace(&key, now.into_iter().collect());
        }
        concerned
    }

    /// Returns the slices with endpoints of `group`, by name.
    pub(super) fn of(&self, group: &G) -> Vec<Arc<EndpointSlice>> {
        let keys = self.of.sources(group);
        keys.filter_map(|key| self.cache.get(key).map(Arc::clone))
            .collect()
    }

    /// Returns what there are slices of, once for each slice.
    pub(super) fn groups(&self) -> impl Iterator<Item = &G> {
        let keys = self.cache.iter().map(|(key, _)| key);
        keys.flat_map(|key| self.of.targets(key))
    }

    /// Returns `true` if a slice of this namespace could never be read.
    pub(super) fn has_unread_in(&self, namespace: &str) -> bool {
        self.cache
            .unread()
            .iter()
            .any(|key| key.namespace == namespace)
    }
}
