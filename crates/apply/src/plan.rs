//! The write that brings an object to its manifest.

use objects::Metadata;
use objects::drift::contains;
use objects::managed_fields::TakeOver;
use objects::ownership::Adoption;
use objects::patch::JsonPatch;
use objects::retain::{pinned, replacement, retain, retain_replicas};
use serde_json::Value;

use crate::ownership::{Ownership, WriteStyle};
use crate::unit::ManifestRef;

/// The write of one manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyPlan {
    /// The object is as the manifest has it.
    Unchanged,
    /// There is no object: a creation that fails if another creates one meanwhile.
    Create {
        /// The object.
        body: Value,
    },
    /// The object differs: a server-side apply that forces its fields.
    Apply {
        /// The object, with the uid of the one that was read.
        body: Value,
        /// The patch to be sent before, by which the fields of other managers become ours.
        take_over: Option<JsonPatch>,
    },
    /// The object differs: an update.
    Replace {
        /// The whole object, with the version of the one that was read.
        body: Value,
    },
    /// The object must not be touched.
    Refuse {
        /// The reason, and the way out.
        reason: String,
    },
}

/// Plans the write of a manifest. `object` is the cluster's, read live: a server-side apply without a look would
/// take over an object that is not ours. From a cache, without its managed fields, only
/// [`ApplyPlan::Unchanged`] may be concluded.
pub fn plan<O: Ownership>(
    ownership: &O,
    one: &ManifestRef<'_, O::Source>,
    object: Option<&Value>,
    style: WriteStyle,
) -> ApplyPlan {
    let (manifest, managers) = (one.manifest, ownership.managers());
    let mut body = retain(manifest, object);
    let Some(object) = object else {
        return ApplyPlan::Create { body };
    };
    if object.is_deleting() {
        let reason =
            "the object is being deleted in the member; it is created again once it is gone";
        return ApplyPlan::Refuse {
            reason: reason.to_owned(),
        };
    }
    let fields = match ownership.adoption(one.unit, manifest, object) {
        Adoption::Owned => TakeOver::FromPredecessors,
        Adoption::Adopt { fields } => fields,
        Adoption::Refuse { reason } => return ApplyPlan::Refuse { reason },
    };
    if ownership.retains_replicas(manifest) {
        retain_replicas(&mut body, object, managers);
    }
    if contains(object, &body, managers.owned(object)) && !managers.own_more_than(object, &body) {
        return ApplyPlan::Unchanged;
    }
    match style {
        WriteStyle::Apply => ApplyPlan::Apply {
            body: pinned(body, object),
            take_over: managers.take_over(object, fields),
        },
        // A replacement takes a field away whoever owns it.
        WriteStyle::Replace => ApplyPlan::Replace {
            body: replacement(body, object, managers),
        },
    }
}

/// Plans the server-side apply of a new manifest to an object from a cache of which we
/// [have applied all](objects::managed_fields::Managers::have_applied_all), so that nothing is to be taken over.
/// Returns `None` if only a live look at the object can tell.
pub fn reapply<O: Ownership>(
    ownership: &O,
    one: &ManifestRef<'_, O::Source>,
    object: &Value,
) -> Option<ApplyPlan> {
    let manifest = one.manifest;
    let is_owned = ownership.adoption(one.unit, manifest, object) == Adoption::Owned;
    // Which replicas are retained is in the managed fields.
    let is_scaled = ownership.retains_replicas(manifest);
    if !is_owned || is_scaled || object.is_deleting() || object.uid().is_empty() {
        return None;
    }
    Some(ApplyPlan::Apply {
        body: pinned(retain(manifest, Some(object)), object),
        take_over: None,
    })
}
