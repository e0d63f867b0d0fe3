//! The answers that the engine needs about whose an object is.

use std::collections::BTreeSet;

use karmada_runtime::dynamic::Selected;
use objects::difference::Difference;
use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Adoption, Comparison, Extent, Removal, Versions};
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::Value;

use crate::unit::{ManifestRef, Unit};

/// An owner of objects in a cluster, such as all Works of one member. Each answer is a pure decision.
pub trait Ownership: Send + Sync + 'static {
    /// The object that lists the manifests of a unit.
    type Source: Sync;

    /// Returns the managers by which the fields that were written are known.
    fn managers(&self) -> Managers;

    /// Returns which objects of a kind are watched: all that may belong to a unit.
    fn watched(&self) -> Selected;

    /// Returns the unit that an object names as its own.
    fn unit_of(&self, object: &impl Metadata) -> Option<Key>;

    /// Decides how the objects of a unit are written.
    fn write_style(&self, unit: &Unit<'_, Self::Source>) -> WriteStyle;

    /// Returns the labels and annotations that the last write of an object had, if the object tells. If not, those
    /// are meant that the managed fields show as ours.
    fn written(&self, object: &Value) -> Option<Written>;

    /// Returns `true` if another controller in the cluster sets the replicas of a manifest's object.
    fn retains_replicas(&self, manifest: &Value) -> bool;

    /// Returns the node ports of a manifest that a cluster which refuses them may have otherwise.
    fn allocated_node_ports(
        &self,
        _unit: &Unit<'_, Self::Source>,
        _manifest: &Value,
    ) -> BTreeSet<u16> {
        BTreeSet::new()
    }

    /// Keeps in `body`, which is to replace `object`, what programs in the cluster have set there and may.
    fn retain(&self, _body: &mut Value, _object: &Value) {}

    /// Returns a fingerprint of the script or the webhook that has a say in what replaces the object of a manifest; `None`
    /// if there is none.
    fn customization(&self, _manifest: &Value) -> Option<u64> {
        None
    }

    /// Returns what replaces `object` where the engine would replace it by `body`, if anybody has a say in it.
    ///
    /// # Errors
    /// Fails with the reason of whoever has.
    fn customize(
        &self,
        body: Value,
        _object: &Value,
    ) -> impl Future<Output = Result<Value, String>> + Send {
        async { Ok(body) }
    }

    /// Returns the wave of a manifest: it is applied once all of earlier waves have been tried, and together with
    /// those of its own.
    fn wave(&self, one: &ManifestRef<'_, Self::Source>) -> usize {
        one.ordinal
    }

    /// Decides what the unit may do with an object that exists where `manifest` is to be applied.
    fn adoption(&self, unit: &Unit<'_, Self::Source>, manifest: &Value, object: &Value)
    -> Adoption;

    /// Decides when a manifest is compared with its object, if there is one. An object that a comparison keeps from being
    /// written, or that is only compared, must be among those that the watches are sent.
    fn comparison(
        &self,
        _unit: &Unit<'_, Self::Source>,
        _manifest: &Value,
        _object: Option<&Value>,
    ) -> Comparison {
        Comparison::Never
    }

    /// Returns what counts of the differences between a manifest and its object; `versions` are absent if there is none.
    fn differences(
        &self,
        _manifest: &Value,
        _versions: Option<Versions<'_>>,
        _extent: Extent,
    ) -> Vec<Difference> {
        Vec::new()
    }

    /// Returns which labels and annotations, by their keys, say nothing about whether an object is left as it is.
    fn ignored(&self) -> fn(&str) -> bool {
        |_| false
    }

    /// Returns `true` if an object may be taken over without a look at it, as one that is there by the time of its creation.
    fn adopts_unseen(&self, _unit: &Unit<'_, Self::Source>) -> bool {
        true
    }

    /// Returns `true` if the objects of a kind go when their unit has no manifest for them any more, by
    /// [`Applier::prune`](crate::Applier::prune).
    fn prunes(&self, _kind: &GroupVersionKind) -> bool {
        false
    }

    /// Decides what becomes of an object when its unit goes, or its manifest leaves the unit or is withheld.
    fn removal(&self, unit: &Unit<'_, Self::Source>, object: &Value) -> Removal;
}

/// The way to write an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStyle {
    /// Server-side apply: fields that others own stay, and a field that leaves the manifest goes.
    Apply,
    /// The same, but a field that another has set otherwise is not taken from it: that is an error.
    ApplyUnforced,
    /// Replacement, at the version that was read, by the manifest and what is the cluster's: whatever else was there
    /// goes.
    Replace,
}
