//! The objects of two kinds that differ in nothing but their scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::store::Store;
use kube::Resource;
use objects::{Key, Scope};

/// The objects of both scopes, each scope fed by a watch of its own.
#[derive(Debug)]
pub(crate) struct Scoped<K, T = ()> {
    cluster: Store<K, T>,
    namespaced: Store<K, T>,
}

impl<K: Resource<DynamicType = Scope> + Clone + Default> Scoped<K> {
    /// Creates it without objects; the versions that the watches show end `expectations`.
    pub(crate) fn expecting(expectations: &Expectations) -> Self {
        Self::by(|_| BTreeSet::new(), expectations)
    }
}

impl<K: Resource<DynamicType = Scope> + Clone + Default, T> Scoped<K, T> {
    /// Does the same, and finds an object by the keys that `refers` returns of it.
    pub(crate) fn by(refers: fn(&K) -> BTreeSet<T>, expectations: &Expectations) -> Self {
        Self {
            cluster: Store::by(refers).expecting(expectations, &Scope::Cluster),
            namespaced: Store::by(refers).expecting(expectations, &Scope::Namespaced),
        }
    }
}

impl<K, T> Scoped<K, T> {
    /// Returns the objects of a scope, for its watch.
    pub(crate) fn store_mut(&mut self, scope: Scope) -> &mut Store<K, T> {
        match scope {
            Scope::Cluster => &mut self.cluster,
            Scope::Namespaced => &mut self.namespaced,
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        match Scope::of(&key.namespace) {
            Scope::Cluster => self.cluster.get(key),
            Scope::Namespaced => self.namespaced.get(key),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.cluster.iter().chain(self.namespaced.iter())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.cluster.keys().chain(self.namespaced.keys())
    }
}

impl<K, T: Clone + Ord> Scoped<K, T> {
    /// Returns the objects that refer to `target`.
    pub(crate) fn of(&self, target: &T) -> Vec<Arc<K>> {
        let objects = self.cluster.of(target).chain(self.namespaced.of(target));
        objects.map(Arc::clone).collect()
    }

    /// Returns the keys of the objects that refer to `target`.
    pub(crate) fn keys_of(&self, target: &T) -> impl Iterator<Item = &Key> {
        let of_cluster = self.cluster.keys_of(target);
        of_cluster.chain(self.namespaced.keys_of(target))
    }

    /// Returns the references of both versions of an object.
    pub(crate) fn concerned(&self, change: &Transition<K>) -> BTreeSet<T> {
        // The same for both scopes.
        self.cluster.concerned(change)
    }
}
