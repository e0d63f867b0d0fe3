//! `metadata.managedFields` of an object, as a list of entries.

use serde_json::{Value, json};

use super::entry::Entry;

pub(super) fn managed_fields(object: &Value) -> &Value {
    object
        .pointer("/metadata/managedFields")
        .unwrap_or(&Value::Null)
}

/// Returns the entries of an object, or `None` if one of them is malformed.
pub(super) fn read(object: &Value) -> Option<Vec<Entry>> {
    managed_fields(object)
        .as_array()
        .into_iter()
        .flatten()
        .map(Entry::read)
        .collect()
}

pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    // A manager without fields is forgotten.
    entries.retain(|entry| !entry.paths.is_empty());
    entries.sort_by_cached_key(|entry| {
        (
            // Applies first, then by age (`sortEncodedManagedFields` of apimachinery).
            !entry.applies,
            entry.time.clone(),
            entry.manager.clone(),
            entry.api_version.clone(),
            entry.subresource.clone(),
        )
    });
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let Some(metadata) = fields
        .entry("metadata")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    else {
        return;
    };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert(
            "managedFields".to_owned(),
            entries.iter().map(Entry::write).collect(),
        );
    }
}

pub(super) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
