//! The owner of a cluster's objects, and its decisions about them.

use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Instruction, Removal};
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::Value;

use crate::manifest_set::ManifestRef;

/// An owner of objects in a cluster, such as all Works of one member. The engine shows it each state of an object that it
/// finds, and is told in one [`Instruction`] how to treat that.
pub trait Ownership: Send + Sync + 'static {
    /// The object that lists the manifests of a set.
    type Source: Sync;

    /// The managers by which the fields that were written are known.
    const MANAGERS: Managers;

    /// Reads the labels and annotations that the last write of an object had, if the object tells. If not, those are meant
    /// that the managed fields show as ours.
    const WRITTEN: fn(&Value) -> Option<Written> = |_| None;

    /// Tells by their keys which labels and annotations are not compared, and are no news of an object that is left.
    const IGNORED: fn(&str) -> bool = |_| false;

    /// Tells the kinds whose objects go when their set has no manifest for them any more, by
    /// [`Applier::prune`](crate::Applier::prune).
    const PRUNED: fn(&GroupVersionKind) -> bool = |_| false;

    /// Returns the set that an object names as its own.
    fn set_of(&self, object: &impl Metadata) -> Option<Key>;

    /// Tells how to treat a manifest, by the object that is found where it goes, if one is.
    fn instruction(
        &self,
        one: &ManifestRef<'_, Self::Source>,
        object: Option<&Value>,
    ) -> Instruction;

    /// Asks the script or the webhook that has a say in it for the object that replaces `object`, where the engine would
    /// replace it by `body`.
    ///
    /// # Errors
    /// Fails with its reason.
    fn retain(
        &self,
        body: Value,
        _object: &Value,
    ) -> impl Future<Output = Result<Value, String>> + Send {
        async { Ok(body) }
    }

    /// Decides about an object when its set goes, or its manifest leaves the set or is withheld.
    fn removal(&self, source: &Self::Source, object: &Value) -> Removal;
}
