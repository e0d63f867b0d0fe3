//! Access to `metadata` of objects.

use serde_json::{Map, Value, json};

/// The finalizer of foreground deletion: holds an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer that holds an object until its dependents no longer refer to it.
pub(crate) const ORPHAN: &str = "orphan";

/// Returns a string field of the metadata, empty if it is absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the metadata, after replacing it with an empty object if it is anything else.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

pub(crate) fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    of(object).insert(field.to_owned(), value.into());
}

/// Copies a field of the metadata from another object, or removes it if it is absent there.
pub(crate) fn restore(object: &mut Value, field: &str, from: &Value) {
    match from["metadata"].get(field) {
        Some(value) => {
            of(object).insert(field.to_owned(), value.clone());
        }
        None => {
            of(object).remove(field);
        }
    }
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Returns `true` if the object has this finalizer.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|one| one == finalizer)
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    (object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten())
    .filter_map(Value::as_str)
}

/// Returns `true` for the finalizers of Kubernetes itself, the only ones without a domain.
pub(crate) fn is_standard_finalizer(finalizer: &str) -> bool {
    [FOREGROUND, ORPHAN, "kubernetes"].contains(&finalizer)
}

pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    if finalizers(object).any(|one| one == finalizer) {
        return;
    }
    let finalizers = of(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut() {
        finalizers.push(finalizer.into());
    }
}

pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let left: Vec<Value> = finalizers(object)
        .filter(|one| *one != finalizer)
        .map(Value::from)
        .collect();
    if left.is_empty() {
        of(object).remove("finalizers");
    } else {
        set(object, "finalizers", left);
    }
}

/// Returns the UIDs of the owners.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners.filter_map(|owner| owner["uid"].as_str())
}
