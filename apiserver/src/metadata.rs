//! `metadata` of objects: reading it, and what is wrong with it.

use serde_json::{Map, Value, json};

use crate::error::Cause;
use crate::kinds::Kind;
use crate::names;

/// All annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Holds an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Holds an object until its dependents name it no more.
pub(crate) const ORPHAN: &str = "orphan";

/// A text of the metadata; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The metadata, made an object if it is none.
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

/// Gives a field the value it has in another object, or none.
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

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    (object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten())
    .filter_map(Value::as_str)
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

/// The UIDs of the owners.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners.filter_map(|owner| owner["uid"].as_str())
}

/// What is wrong with the metadata of a new object.
pub(crate) fn validate(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "name");
    if name.is_empty() {
        causes.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = kind.storage.names.broken_by(name) {
        causes.push(Cause::invalid("metadata.name", name, &why));
    }
    validate_owned(object, &mut causes);
    validate_labels(object, &mut causes);
    for finalizer in finalizers(object) {
        if let Some(why) = names::qualified_name(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &why));
        }
    }
    let has = |finalizer: &str| finalizers(object).any(|one| one == finalizer);
    if has(FOREGROUND) && has(ORPHAN) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", "", why));
    }
    causes
}

fn validate_labels(object: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if let Some(why) = names::qualified_name(key) {
            causes.push(Cause::invalid("metadata.labels", key, &why));
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(why) = names::label_value(value) {
            causes.push(Cause::invalid("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in object["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if let Some(why) = names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", key, &why));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes"),
            field: "metadata.annotations".to_owned(),
        });
    }
}

fn validate_owned(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    let mut controllers = 0;
    for (index, owner) in owners.enumerate() {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(field, "", why));
            }
        }
        controllers += i32::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", "", why));
    }
}

/// What is wrong with how the metadata of an object changes.
pub(crate) fn validate_update(object: &Value, before: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (text(object, field), text(before, field));
        if new != old {
            causes.push(Cause::invalid(
                format!("metadata.{field}"),
                new,
                "field is immutable",
            ));
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let new = &object["metadata"][field];
        if *new != before["metadata"][field] {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {new}: field is immutable"),
                field: format!("metadata.{field}"),
            });
        }
    }
    if is_terminating(before) {
        let known: Vec<&str> = finalizers(before).collect();
        let added: Vec<&str> = finalizers(object)
            .filter(|one| !known.contains(one))
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers {added:?}"
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    causes
}
