//! The objects of two kinds that differ in nothing but their scope.

use std::sync::Arc;

use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::Scope;

/// The objects of both scopes, each scope fed by a watch of its own.
#[derive(Debug)]
pub(crate) struct Scoped<K> {
    cluster: Cache<K>,
    namespaced: Cache<K>,
}

impl<K: Resource<DynamicType = Scope> + Clone + Default> Scoped<K> {
    /// Creates it without objects; what the watches show ends `expectations`.
    pub(crate) fn expecting(expectations: &Expectations) -> Self {
        let [cluster, namespaced] = [Scope::Cluster, Scope::Namespaced]
            .map(|scope| Cache::<K>::expecting(expectations, &scope));
        Self {
            cluster,
            namespaced,
        }
    }
}

impl<K> Scoped<K> {
    /// Creates it for a kind whose objects all have namespaces.
    pub(crate) fn namespaced(namespaced: Cache<K>) -> Self {
        Self {
            cluster: Cache::default(),
            namespaced,
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.of(Scope::of(&key.namespace)).get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.cluster.iter().chain(self.namespaced.iter())
    }

    /// Counts the objects of a scope that do not decode.
    pub(crate) fn undecoded(&self, scope: Scope) -> Undecoded {
        self.of(scope).undecoded()
    }

    fn of(&self, scope: Scope) -> &Cache<K> {
        match scope {
            Scope::Cluster => &self.cluster,
            Scope::Namespaced => &self.namespaced,
        }
    }
}

impl<K: Resource + Clone + Default> Scoped<K> {
    /// Applies an event of the watch of a scope and returns the changes.
    pub(crate) fn observe(&mut self, scope: Scope, event: Event<Decoded<K>>) -> Vec<Transition<K>> {
        match scope {
            Scope::Cluster => self.cluster.observe(event),
            Scope::Namespaced => self.namespaced.observe(event),
        }
    }
}
