//! Takes away the objects of a set that goes, or of manifests that have left it or are withheld.

use std::collections::BTreeSet;

use futures::StreamExt;
use karmada_runtime::write::WriteMode;
use objects::condition::{AnyCondition, TRUE, find};
use objects::ownership::{ObservedObject, Removal};
use objects::write::{Guard, ObjectRef, Write};
use objects::{Metadata, group_kind};
use serde_json::Value;

use crate::applier::{Applier, CONCURRENCY};
use crate::error::MemberError;
use crate::manifest_set::{ManifestRef, ManifestSet, Object};
use crate::ownership::Ownership;
use crate::requests::{DELETE, RELEASE};
use crate::result::Synced;

impl<O: Ownership> Applier<O> {
    /// Deletes or releases the objects of a set. Returns those that are still there, because the cluster is not done with
    /// their deletion.
    ///
    /// # Errors
    /// Fails with the first error about an object that could not be given up, after all were tried; at once if the
    /// cluster cannot be worked on.
    pub async fn remove(
        &self,
        writes: &WriteMode,
        set: &ManifestSet<'_, O::Source>,
    ) -> Result<Vec<Remaining>, MemberError> {
        let refs: Vec<_> = set.refs().collect();
        // No closure: a future that holds one is not known to be `Send`.
        let mut removals = Vec::new();
        for one in &refs {
            removals.push(self.remove_manifest(writes, one));
        }
        let removals = futures::stream::iter(removals).buffered(CONCURRENCY);
        let mut removals = removals.zip(futures::stream::iter(0..));
        let (mut left, mut failed) = (Vec::new(), None);
        while let Some((removed, place)) = removals.next().await {
            match removed {
                Ok(Removed::Gone) => {}
                Ok(Removed::Deleting { finalizers }) => left.push(Remaining { place, finalizers }),
                Err(error) if error.is_of_member() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(left), Err)
    }

    /// Deletes the objects that name `set`, which has no manifest for them any more, of the kinds that are
    /// [pruned](Ownership::PRUNED).
    ///
    /// # Errors
    /// Fails as [`Self::remove`] does.
    pub async fn prune(
        &self,
        writes: &WriteMode,
        set: &ManifestSet<'_, O::Source>,
    ) -> Result<(), MemberError> {
        let listed: BTreeSet<Object> = set.refs().map(|one| one.object()).collect();
        let left: Vec<Object> = {
            let prunable = self.prunable.lock();
            let named = prunable.sources(&set.key);
            named
                .filter(|object| !listed.contains(object))
                .cloned()
                .collect()
        };
        let left = left
            .iter()
            .filter_map(|(kind, key)| self.watches.get(kind, key));
        let left: Vec<Value> = left.map(|object| object.value()).collect();
        let set = ManifestSet {
            key: set.key.clone(),
            manifests: left.iter().collect(),
            withheld: BTreeSet::new(),
            terms: String::new(),
            ..*set
        };
        self.remove(writes, &set).await.map(drop)
    }

    /// Takes away the object of a manifest that is withheld. `cached` is the object as the watch shows it.
    pub(crate) async fn withhold(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        cached: ObservedObject,
    ) -> Synced {
        if cached == ObservedObject::Absent {
            return Synced::observed(cached);
        }
        if let Err(error) = self.remove_manifest(writes, one).await {
            return Synced::failed(error, cached);
        }
        let mut records = self.records.lock();
        records.unsettle(one);
        records.touch(&one.set.key);
        Synced {
            written: cached.seen().is_some(),
            ..Synced::observed(ObservedObject::Absent)
        }
    }

    async fn remove_manifest(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
    ) -> Result<Removed, MemberError> {
        self.give_up(one);
        match self.requests.object_ref(one).await {
            Ok(object_ref) => self.remove_object(writes, one, &object_ref).await,
            // An object that cannot exist was never applied.
            Err(MemberError::NotServed { .. } | MemberError::Manifest { .. }) => Ok(Removed::Gone),
            Err(error) => Err(error),
        }
    }

    async fn remove_object(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
    ) -> Result<Removed, MemberError> {
        // The cache is behind at worst: then the uid is that of a former object.
        let cached = self.watches.get(&one.kind(), &one.key());
        let cached = cached.map(|object| object.value());
        let kept = self.kept(one, cached.as_ref());
        match self.removal(one, cached.as_ref()) {
            Removal::Delete { uid } => {
                let write = deletion(object_ref, uid);
                match self.requests.write(writes, &write).await {
                    Ok(deleted) => return Ok(Removed::of(deleted.as_ref())),
                    // It is gone, or another is in its place.
                    Err(error) if error.is_missing() || error.is_conflict() => {}
                    Err(error) => return Err(error),
                }
            }
            // Its end wakes the set.
            Removal::Nothing if kept != Removed::Gone && self.awaits(one) => return Ok(kept),
            Removal::Nothing | Removal::Release { .. } => {}
        }
        let object = self.requests.get(object_ref).await?;
        let removed = match self.removal(one, object.as_ref()) {
            Removal::Nothing => return Ok(self.kept(one, object.as_ref())),
            Removal::Delete { uid } => {
                let write = deletion(object_ref, uid);
                let deleted = self.requests.write(writes, &write).await;
                deleted.map(|deleted| Removed::of(deleted.as_ref()))
            }
            Removal::Release { patch } => {
                let write = Write::merge(RELEASE, object_ref.clone(), patch);
                let released = self.requests.write(writes, &write).await;
                released.map(|_| Removed::Gone)
            }
        };
        match removed {
            Err(error) if error.is_missing() => Ok(Removed::Gone),
            removed => removed,
        }
    }

    fn removal(&self, one: &ManifestRef<'_, O::Source>, object: Option<&Value>) -> Removal {
        object.map_or(Removal::Nothing, |object| {
            self.ownership.removal(one.set.source, object)
        })
    }

    /// Returns the fate of an object about which nothing is to be done: it is being deleted, or not the set's.
    fn kept(&self, one: &ManifestRef<'_, O::Source>, object: Option<&Value>) -> Removed {
        Removed::of(object.filter(|object| self.is_of_set(one, object)))
    }
}

/// Deletes the object that has this uid.
fn deletion(object_ref: &ObjectRef, uid: String) -> Write {
    let object = ObjectRef {
        uid: Some(uid),
        ..object_ref.clone()
    };
    Write::delete(DELETE, object).guarded(Guard::Uid)
}

/// The fate of an object that was given up.
#[derive(Debug, PartialEq, Eq)]
enum Removed {
    /// It is gone, or not the set's any more.
    Gone,
    /// Its deletion has begun.
    Deleting {
        /// The finalizers for which it waits.
        finalizers: Vec<String>,
    },
}

/// An object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// The place of its manifest.
    pub place: usize,
    /// The finalizers that hold it.
    pub finalizers: Vec<String>,
}

impl Removed {
    /// Reads the answer to a deletion: the object, if it is not gone yet.
    fn of(deleted: Option<&Value>) -> Self {
        let Some(object) = deleted.filter(|object| object.is_deleting()) else {
            return Self::Gone;
        };
        let finalizers = object.finalizers().chain(finalizers_within(object));
        Self::Deleting {
            finalizers: finalizers.map(str::to_owned).collect(),
        }
    }
}

/// Returns the finalizers within a namespace for which its deletion waits, as far as its status names them.
fn finalizers_within(object: &Value) -> Option<&str> {
    if group_kind(object) != ("", "Namespace") {
        return None;
    }
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let remaining = find(conditions, "NamespaceFinalizersRemaining")?;
    if remaining.status() != TRUE {
        return None;
    }
    let (_, finalizers) = remaining.get("message")?.as_str()?.split_once(": ")?;
    Some(finalizers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Case F101: a namespace waits for the objects in it, and its status says for which finalizers.
    #[test]
    fn namespace_names_its_holders() {
        let message = "Some content in the namespace has finalizers remaining: example.com/settle in 2 resource instances";
        let condition = |status: &str| {
            json!([{ "type": "NamespaceContentRemaining", "status": "True",
                    "message": "Some resources are remaining: ledgers.example.com has 2 resource instances" },
                { "type": "NamespaceFinalizersRemaining", "status": status, "message": message }])
        };
        for (kind, conditions, expected) in [
            (
                "Namespace",
                condition("True"),
                vec!["own", "example.com/settle in 2 resource instances"],
            ),
            ("Namespace", condition("False"), vec!["own"]),
            ("Namespace", json!(null), vec!["own"]),
            ("Secret", condition("True"), vec!["own"]),
        ] {
            let object = json!({ "apiVersion": "v1", "kind": kind,
                "metadata": { "name": "shop", "finalizers": ["own"],
                    "deletionTimestamp": "2026-11-30T00:00:00Z" },
                "status": { "conditions": conditions } });
            let finalizers = expected.into_iter().map(str::to_owned).collect();
            let removed = Removed::of(Some(&object));
            assert_eq!(removed, Removed::Deleting { finalizers }, "{object}");
        }
    }
}
