//! The registry of served kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::builtin;
use super::kind::Kind;
use crate::error::ApiError;

#[derive(Clone, Debug)]
pub(crate) struct Registry {
    /// By group, version and plural.
    kinds: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self {
            kinds: BTreeMap::new(),
        };
        for kind in builtin::all() {
            registry.insert(Arc::clone(kind));
        }
        registry
    }
}

impl Registry {
    /// Returns the kind at a path.
    ///
    /// # Errors
    /// Returns the 404 of kube-apiserver or of its extension server if there is none.
    pub(crate) fn get(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<Arc<Kind>, ApiError> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        if let Some(kind) = self.kinds.get(&key) {
            return Ok(Arc::clone(kind));
        }
        let mut built_in = builtin::all().iter();
        // kube-apiserver answers for the versions of its own kinds, its extension server for all others.
        if built_in.any(|kind| kind.group == group && kind.version == version) {
            Err(ApiError::no_such_path())
        } else {
            Err(ApiError::page_not_found())
        }
    }

    /// Returns all kinds, ordered by group, version and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// Returns the storage version of a collection, or any other version if that is not served.
    pub(crate) fn of_collection(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        let mut versions = self
            .iter()
            .filter(|kind| kind.collection() == (group.to_owned(), plural.to_owned()));
        let first = versions.next()?;
        if first.storage.version.is_none() && first.group == group {
            return Some(first);
        }
        versions
            .find(|kind| kind.storage.version.is_none() && kind.group == group)
            .or(Some(first))
    }

    /// Replaces all versions of a kind.
    pub(crate) fn replace(&mut self, group: &str, plural: &str, kinds: Vec<Kind>) {
        self.remove(group, plural);
        for kind in kinds {
            self.insert(Arc::new(kind));
        }
    }

    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.kinds.retain(|_, kind| !kind.is(group, plural));
    }

    fn insert(&mut self, kind: Arc<Kind>) {
        let key = (
            kind.group.clone(),
            kind.version.clone(),
            kind.plural.clone(),
        );
        self.kinds.insert(key, kind);
    }
}
