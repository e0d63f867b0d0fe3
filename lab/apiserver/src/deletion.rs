//! How an object goes: at once, or once nothing holds it any more.

use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::{INSTANCES_FINALIZER, Kind};
use crate::metadata::{self, FOREGROUND, ORPHAN};
use crate::store::State;

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay, and name it no more.
    Orphan,
}

/// Deletes an object, or marks it as to be deleted. Returns its last state, and whether it is gone;
/// none if it is not there.
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

/// An object that is to be deleted and held by something; none if nothing holds it.
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
            if let Some(generation) = object["metadata"]["generation"].as_i64() {
                metadata::set(&mut object, "generation", generation.saturating_add(1));
            }
        }
    }
    Some(object)
}

/// Sets the finalizers that the propagation asks for.
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

/// Stores an object with a finalizer less, or removes it if that was the last.
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
