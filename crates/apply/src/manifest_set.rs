//! The manifests of one owner.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use objects::{GroupVersionKind, Key, Metadata};
use serde_json::Value;

/// The manifests that belong together in a cluster: they are applied in their order, and taken away together.
#[derive(Debug)]
pub struct ManifestSet<'a, S> {
    /// The object that lists the manifests.
    pub source: &'a S,
    /// Its key.
    pub key: Key,
    /// Its generation.
    pub generation: Option<i64>,
    /// The manifests.
    pub manifests: Vec<&'a Value>,
    /// The places of those whose objects are to be in the cluster later, and not now.
    pub withheld: BTreeSet<usize>,
    /// The further facts on which the owner's answers depend: with others, every object that was left is looked at again.
    pub terms: String,
    /// True if nothing is created or changed.
    pub suspended: bool,
    /// The word of the source's status about the last write of the objects.
    pub last_write: LastWrite,
    /// Its further words: the [notes](crate::Synced::note) on the manifests.
    pub notes: &'a str,
}

/// The knowledge about the last write of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWrite {
    /// It had the manifest as it is now.
    OfManifest,
    /// The same, by somebody who does not note the generation that was written: it may have been an earlier one.
    Undated,
    /// It may have had another manifest, with fields that have left it.
    Unknown,
}

impl<S> ManifestSet<'_, S> {
    /// Returns the manifests in their order.
    pub fn refs(&self) -> impl Iterator<Item = ManifestRef<'_, S>> {
        let manifests = self.manifests.iter().enumerate();
        manifests.map(|(ordinal, &manifest)| ManifestRef {
            set: self,
            ordinal,
            manifest,
        })
    }
}

/// One manifest of a set.
#[derive(Debug)]
pub struct ManifestRef<'a, S> {
    /// The set.
    pub set: &'a ManifestSet<'a, S>,
    /// The place of the manifest in it.
    pub ordinal: usize,
    /// The manifest.
    pub manifest: &'a Value,
}

impl<S> ManifestRef<'_, S> {
    /// Returns the kind of its object; empty texts if it cannot be read.
    pub(crate) fn kind(&self) -> GroupVersionKind {
        GroupVersionKind::of(self.manifest)
    }

    /// Returns the key of its object; empty texts if it cannot be read.
    pub(crate) fn key(&self) -> Key {
        self.manifest.key()
    }

    /// Returns its object.
    pub(crate) fn object(&self) -> Object {
        (self.kind(), self.key())
    }

    /// Returns its hash.
    pub(crate) fn hash(&self) -> u64 {
        hash(&self.manifest.to_string())
    }

    /// Returns its object's kind and key, or its place if it has none, for messages.
    pub(crate) fn name(&self) -> String {
        let (kind, key) = (self.kind().kind, self.key());
        if kind.is_empty() || key.name.is_empty() {
            format!("manifest {}", self.ordinal)
        } else {
            format!("{kind} {key}")
        }
    }
}

/// An object of the cluster.
pub(crate) type Object = (GroupVersionKind, Key);

/// Returns the hash of a value, which is one for the time of this process.
pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
