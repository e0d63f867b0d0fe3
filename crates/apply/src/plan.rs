//! The write that brings an object to its manifest.

use objects::Metadata;
use objects::drift::contains;
use objects::managed_fields::{Managers, TakeOver, all_fields};
use objects::metadata;
use objects::ownership::{Adoption, Instruction, Retain, Retainer, WriteStyle};
use objects::replacement::{has_same_metadata, keep_replicas, replacement};
use objects::retain::{pinned, retain, retain_replicas, without_generated};
use objects::write::Action;
use serde_json::Value;

use crate::manifest_set::LastWrite;
use crate::ownership::Ownership;

/// Plans the actions that bring an object to its manifest, one after the other; none if it is as the manifest has it. Before
/// an application may come a patch by which the fields of other managers become ours. A creation fails if another creates
/// the object meanwhile, an application if it has another uid, or is not forced and others have set a field otherwise, and
/// a replacement if it has another version.
///
/// `object` is the cluster's, read live: a write without a look would take over an object that is not ours. From a cache,
/// without its managed fields, only that nothing is to be done may be concluded.
///
/// # Errors
/// Fails with the reason, and the way out, if the object must not be touched.
pub fn plan<O: Ownership>(
    instruction: &Instruction,
    manifest: &Value,
    object: Option<&Value>,
    last: LastWrite,
) -> Result<Vec<Action>, String> {
    let Some(object) = object else {
        return Ok(vec![creation(instruction, manifest)]);
    };
    if object.is_deleting() {
        let reason =
            "the object is being deleted in the member; it is created again once it is gone";
        return Err(reason.to_owned());
    }
    let fields = match &instruction.adopt {
        Adoption::Owned => TakeOver::FromPredecessors,
        Adoption::Adopt { fields } => *fields,
        Adoption::Refuse { reason } => return Err(reason.clone()),
    };
    Ok(match instruction.style {
        WriteStyle::Apply | WriteStyle::ApplyUnforced => {
            application::<O>(instruction, manifest, object, fields, last)
        }
        WriteStyle::Replace => {
            let body = replacing::<O>(&instruction.retain, manifest, object);
            if is_settled(O::MANAGERS, object, &body, last) {
                return Ok(Vec::new());
            }
            let body = gathering(O::MANAGERS, body, object);
            vec![Action::Replace(body)]
        }
    })
}

/// Plans the creation of an object that is not there.
pub(crate) fn creation(instruction: &Instruction, manifest: &Value) -> Action {
    let body = without_generated(manifest);
    // An apply takes over an object that is there by now.
    let adopts = !matches!(instruction.adopt, Adoption::Refuse { .. });
    if adopts && !instruction.style.replaces() {
        Action::Apply {
            body,
            is_forced: false,
        }
    } else {
        Action::Create(body)
    }
}

/// Plans the write of a new manifest to an object from a cache that has nothing but our fields, so that nothing is to be
/// taken over. Returns `None` if only a live look at the object can tell.
pub(crate) fn rewrite<O: Ownership>(
    instruction: &Instruction,
    manifest: &Value,
    object: &Value,
) -> Option<Action> {
    let is_owned = instruction.adopt == Adoption::Owned;
    if !is_owned || object.is_deleting() || object.uid().is_empty() {
        return None;
    }
    Some(match instruction.style {
        // Which replicas are retained is in the managed fields.
        WriteStyle::Apply | WriteStyle::ApplyUnforced if instruction.retain.replicas => {
            return None;
        }
        WriteStyle::Apply | WriteStyle::ApplyUnforced => Action::Apply {
            body: pinned(retain(manifest, Some(object)), object),
            is_forced: instruction.style.is_forced(),
        },
        // And so are the labels that go, unless the object tells.
        WriteStyle::Replace => {
            (O::WRITTEN)(object)?;
            Action::Replace(replacing::<O>(&instruction.retain, manifest, object))
        }
    })
}

/// Plans a server-side apply.
fn application<O: Ownership>(
    instruction: &Instruction,
    manifest: &Value,
    object: &Value,
    fields: TakeOver,
    last: LastWrite,
) -> Vec<Action> {
    let managers = O::MANAGERS;
    let is_forced = instruction.style.is_forced();
    let fields = if is_forced { fields } else { TakeOver::Sharing };
    let mut body = retain(manifest, Some(object));
    if instruction.retain.replicas {
        retain_replicas(&mut body, object, managers);
    }
    // Others keep the fields that they have replaced, unless these are taken from them.
    let is_replaced = fields != TakeOver::Sharing && managers.others_have_replaced(object, &body);
    let is_applied = if last == LastWrite::OfManifest {
        // Nothing has left the manifest, and fields that a take-over left to others it may have from them.
        has_all(object, &body)
    } else {
        contains(object, &body, managers.owned(object)) && !managers.own_more_than(object, &body)
    };
    if is_applied && !is_replaced {
        return Vec::new();
    }
    let taken = managers.take_over(object, fields, &body);
    let body = pinned(body, object);
    let application = Action::Apply { body, is_forced };
    let actions = taken.map(Action::Json).into_iter().chain([application]);
    actions.collect()
}

/// Returns `true` if the object has everything of `body`, whoever owns it.
fn has_all(object: &Value, body: &Value) -> bool {
    let fields = all_fields(object);
    contains(
        object,
        body,
        Some(&fields).filter(|fields| !fields.is_null()),
    )
}

/// Returns the body that replaces `object`.
pub(crate) fn replacing<O: Ownership>(retain: &Retain, manifest: &Value, object: &Value) -> Value {
    let written = (O::WRITTEN)(object).unwrap_or_else(|| O::MANAGERS.written(object));
    let mut body = replacement(manifest, object, &written);
    if let Retainer::Rule(edit) = retain.by {
        edit(&mut body, object);
    }
    if retain.replicas {
        keep_replicas(&mut body, object);
    }
    body
}

/// Returns `body` with the managed fields by which the fields of others become ours. A replacement takes their fields
/// away, but for those that have the manifest's value, or that of a default: they would go on looking like changes.
fn gathering(managers: Managers, mut body: Value, object: &Value) -> Value {
    if let Some(entries) = managers.gathered(object) {
        metadata::set(&mut body, "managedFields", entries);
    }
    body
}

/// Returns `true` if a replacement by `body` would change nothing: the object has all of it, and nothing else but
/// the cluster's defaults. These are fields of our updates, too, so that fields that have left the manifest are told from them
/// only if the manifest that was written last is known.
fn is_settled(managers: Managers, object: &Value, body: &Value, last: LastWrite) -> bool {
    let has_defaults = match last {
        LastWrite::OfManifest => true,
        // Most kinds without generation have none.
        LastWrite::Undated => object.generation().is_some(),
        LastWrite::Unknown => false,
    };
    has_same_metadata(object, body)
        && has_all(object, body)
        && !managers.others_have_more_than(object, body)
        && !managers.others_have_replaced(object, body)
        && (has_defaults || !managers.have_more_than(object, body))
}
