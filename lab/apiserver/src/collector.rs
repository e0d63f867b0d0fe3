//! The namespace, definition and garbage collection controllers of a Kubernetes cluster. They run
//! to completion before the response to the request that triggered them, whereas a real cluster
//! takes a moment.

use std::sync::Arc;

use serde_json::Value;

use crate::deletion::{self, Propagation};
use crate::error::ApiError;
use crate::kinds::{CollectionId, INSTANCES_FINALIZER, Kind};
use crate::metadata::{self, FOREGROUND, ORPHAN};
use crate::store::{Place, State, Trigger};

/// Processes triggers until none is left, including those that this raises itself.
pub(crate) fn settle(state: &mut State, now: &str) -> Result<(), ApiError> {
    while let Some(trigger) = state.triggers.pop_front() {
        match trigger {
            Trigger::Terminating(place) => finish(state, &place, now)?,
            Trigger::Owned(place) => check_owners(state, &place, now)?,
            Trigger::OwnerGone(uid) => {
                for dependent in state.dependents(&uid) {
                    check_owners(state, &dependent, now)?;
                }
            }
        }
    }
    Ok(())
}

fn kind_of(state: &State, id: &CollectionId) -> Option<Arc<Kind>> {
    state.registry.of_collection(&id.0, &id.1).cloned()
}

fn read(state: &State, place: &Place) -> Result<Option<Value>, ApiError> {
    state
        .find(&place.0, &place.1)
        .map(|object| object.value())
        .transpose()
}

/// Advances the deletion of a terminating object by one step.
fn finish(state: &mut State, place: &Place, now: &str) -> Result<(), ApiError> {
    let (Some(kind), Some(object)) = (kind_of(state, &place.0), read(state, place)?) else {
        return Ok(());
    };
    if !metadata::is_terminating(&object) {
        return Ok(());
    }
    if kind.is_namespace() {
        return empty_namespace(state, &kind, &place.1, &object, now);
    }
    if metadata::has_finalizer(&object, INSTANCES_FINALIZER) && kind.is_definition() {
        return delete_instances(state, &kind, &object, now);
    }
    let uid = metadata::text(&object, "uid").to_owned();
    if metadata::has_finalizer(&object, ORPHAN) {
        for dependent in state.dependents(&uid) {
            disown(state, &dependent, &[&uid])?;
        }
        return deletion::release(state, &kind, object, ORPHAN);
    }
    if metadata::has_finalizer(&object, FOREGROUND) {
        let blocking = blocking_dependents(state, &uid)?;
        for dependent in &blocking {
            delete_dependent(state, dependent, now)?;
        }
        // Dependents with finalizers are still there and raise a trigger once they are gone.
        if blocking_dependents(state, &uid)?.is_empty()
            && let Some(object) = read(state, place)?
        {
            return deletion::release(state, &kind, object, FOREGROUND);
        }
    }
    Ok(())
}

fn empty_namespace(
    state: &mut State,
    kind: &Kind,
    name: &str,
    namespace: &Value,
    now: &str,
) -> Result<(), ApiError> {
    let prefix = format!("{name}/");
    for place in places(state, |key| key.starts_with(&prefix)) {
        delete(state, &place, now)?;
    }
    let is_empty = places(state, |key| key.starts_with(&prefix)).is_empty();
    // Finalizers in `metadata` hold the namespace beyond its contents.
    if is_empty && metadata::finalizers(namespace).next().is_none() {
        state.remove(kind, name)?;
    }
    Ok(())
}

fn places(state: &State, wanted: impl Fn(&str) -> bool) -> Vec<Place> {
    (state.collections())
        .flat_map(|(id, collection)| collection.objects.keys().map(move |key| (id, key)))
        .filter(|(_, key)| wanted(key))
        .map(|(id, key)| (id.clone(), key.clone()))
        .collect()
}

fn delete_instances(
    state: &mut State,
    kind: &Kind,
    definition: &Value,
    now: &str,
) -> Result<(), ApiError> {
    let (group, plural) = (
        &definition["spec"]["group"],
        &definition["spec"]["names"]["plural"],
    );
    let id = (
        group.as_str().unwrap_or_default().to_owned(),
        plural.as_str().unwrap_or_default().to_owned(),
    );
    let keys: Vec<String> = state.collection(&id).objects.keys().cloned().collect();
    for key in keys {
        delete(state, &(id.clone(), key), now)?;
    }
    if state.collection(&id).objects.is_empty() {
        deletion::release(state, kind, definition.clone(), INSTANCES_FINALIZER)?;
        let name = metadata::text(definition, "name");
        if state.find(&kind.collection(), name).is_none() {
            state.registry.remove(&id.0, &id.1);
            state.end(&id);
        }
    }
    Ok(())
}

fn delete(state: &mut State, place: &Place, now: &str) -> Result<(), ApiError> {
    if let Some(kind) = kind_of(state, &place.0) {
        deletion::delete(state, &kind, &place.1, None, now)?;
    }
    Ok(())
}

/// Returns the dependents with `blockOwnerDeletion`, which foreground deletion waits for.
fn blocking_dependents(state: &State, uid: &str) -> Result<Vec<Place>, ApiError> {
    let mut blocking = Vec::new();
    for dependent in state.dependents(uid) {
        let Some(object) = read(state, &dependent)? else {
            continue;
        };
        let owners = object["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        let mut of_owner = owners.filter(|owner| owner["uid"] == uid);
        if of_owner.any(|owner| owner["blockOwnerDeletion"] == true) {
            blocking.push(dependent);
        }
    }
    Ok(blocking)
}

fn delete_dependent(state: &mut State, place: &Place, now: &str) -> Result<(), ApiError> {
    let (Some(kind), Some(object)) = (kind_of(state, &place.0), read(state, place)?) else {
        return Ok(());
    };
    if metadata::is_terminating(&object) {
        return Ok(());
    }
    let has_dependents = !state.dependents(metadata::text(&object, "uid")).is_empty();
    // Foreground deletion descends: a dependent with dependents of its own waits for them first.
    let propagation = if has_dependents {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    deletion::delete(state, &kind, &place.1, Some(propagation), now)?;
    Ok(())
}

/// Deletes an object all of whose owners are gone. While an owner is left, only removes the
/// references to the others.
fn check_owners(state: &mut State, place: &Place, now: &str) -> Result<(), ApiError> {
    let Some(object) = read(state, place)? else {
        return Ok(());
    };
    let owners: Vec<&str> = metadata::owners(&object).collect();
    // An owner that never existed counts as gone, as for the garbage collector of Kubernetes.
    let gone: Vec<&str> = owners
        .iter()
        .copied()
        .filter(|uid| state.place(uid).is_none())
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    if gone.len() < owners.len() {
        return disown(state, place, &gone);
    }
    let Some(kind) = kind_of(state, &place.0) else {
        return Ok(());
    };
    deletion::delete(state, &kind, &place.1, Some(Propagation::Background), now)?;
    Ok(())
}

/// Removes owner references from an object.
fn disown(state: &mut State, place: &Place, uids: &[&str]) -> Result<(), ApiError> {
    let (Some(kind), Some(mut object)) = (kind_of(state, &place.0), read(state, place)?) else {
        return Ok(());
    };
    let metadata = metadata::of(&mut object);
    if let Some(owners) = metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)
    {
        owners.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(&uid)));
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
    state.put(&kind, object);
    Ok(())
}
