//! Reads objects without the types of the programs.

use serde_json::Value;

/// Returns the string at a JSON pointer, or an empty one.
pub(crate) fn text<'a>(object: impl Into<Option<&'a Value>>, pointer: &str) -> &'a str {
    let found = object.into().and_then(|object| object.pointer(pointer));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements of the list at a JSON pointer.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

/// Returns the status of a condition, or an empty string.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let mut conditions = items(object, "/status/conditions");
    text(conditions.find(|one| one["type"] == kind), "/status")
}

/// Returns the name.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Returns `true` if the object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}
