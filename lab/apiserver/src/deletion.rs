//! Deletion of an object: at once, or after its last finalizer is removed.

use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::{INSTANCES_FINALIZER, Kind};
use crate::metadata::{self, FOREGROUND, ORPHAN};
use crate::store::State;

/// `propagationPolicy`: the fate of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without their reference to it.
    Orphan,
}

/// Deletes an object or marks it as terminating. Returns its last state and `true` if it is gone,
/// or `None` if it does not exist.
pub(crate) fn delete(
    state: &mut State,
    kind: &Kind,
    key: &str,
    propagation: Option<Propagation>,
    now: &str,
) -> Result<Option<(Value, bool)>, ApiError> {
    let Some(stored) = state.find(&kind.collection(), key) else {
        return Ok(None);
    };
    let before = stored.value()?;
    let Some(object) = marked(kind, &before, propagation, now) else {
        state.remove(kind, key)?;
        return Ok(Some((before, true)));
    };
    if object == before {
        return Ok(Some((object, false)));
    }
    Ok(Some((state.put(kind, object), false)))
}

/// Returns the terminating form of an object that a finalizer holds, or `None` if it can be removed
/// at once.
pub(crate) fn marked(
    kind: &Kind,
    object: &Value,
    propagation: Option<Propagation>,
    now: &str,
) -> Option<Value> {
    let mut object = object.clone();
    hold(&mut object, propagation);
    if kind.is_definition() {
        metadata::add_finalizer(&mut object, INSTANCES_FINALIZER);
    }
    if kind.is_namespace() && object["status"].is_object() {
        object["status"]["phase"] = "Terminating".into();
    }
    if metadata::finalizers(&object).next().is_none() && !kind.is_namespace() {
        return None;
    }
    if !metadata::is_terminating(&object) {
        metadata::set(&mut object, "deletionTimestamp", now);
        if !kind.is_namespace() {
            metadata::set(&mut object, "deletionGracePeriodSeconds", 0);
            // A pending deletion changes the work of controllers, so it is a new generation
            // (`rest.BeforeDelete`).
            if let Some(generation) = object["metadata"]["generation"].as_i64() {
                metadata::set(&mut object, "generation", generation.saturating_add(1));
            }
        }
    }
    Some(object)
}

/// Sets the finalizer of a propagation policy.
fn hold(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else {
        return;
    };
    metadata::remove_finalizer(object, FOREGROUND);
    metadata::remove_finalizer(object, ORPHAN);
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => metadata::add_finalizer(object, FOREGROUND),
        Propagation::Orphan => metadata::add_finalizer(object, ORPHAN),
    }
}

/// Removes a finalizer from an object, and the object if that was the last one.
pub(crate) fn release(
    state: &mut State,
    kind: &Kind,
    mut object: Value,
    finalizer: &str,
) -> Result<(), ApiError> {
    metadata::remove_finalizer(&mut object, finalizer);
    if metadata::finalizers(&object).next().is_some() {
        state.put(kind, object);
        return Ok(());
    }
    let key = kind.key(
        metadata::text(&object, "namespace"),
        metadata::text(&object, "name"),
    );
    state.remove(kind, &key)
}
