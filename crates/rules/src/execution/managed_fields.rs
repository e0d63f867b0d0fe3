//! `metadata.managedFields`: which of an object's fields are ours, and the way to take over those of others.

use objects::Metadata;
use objects::patch::JsonPatch;
use serde_json::{Map, Value, json};

use super::apply::APPLY_MANAGER;

/// The managers by which an object in a member is updated for Karmada: by its own programs, and by us where
/// server-side apply is refused.
const KARMADA: [&str; 3] = ["karmada-controller-manager", "karmada-agent", APPLY_MANAGER];

/// An element of a list, as a key of `FieldsV1` names it.
pub(super) enum Element {
    /// `k:`: the element with these values of its keys.
    Keys(Map<String, Value>),
    /// `v:`: the element that is this value.
    Equal(Value),
}

/// Returns the element that a key of `FieldsV1` names.
pub(super) fn element(key: &str) -> Option<Element> {
    if let Some(keys) = key.strip_prefix("k:") {
        return serde_json::from_str(keys).ok().map(Element::Keys);
    }
    let value = key.strip_prefix("v:")?;
    serde_json::from_str(value).ok().map(Element::Equal)
}

impl Element {
    /// Returns `true` if `value` is this element. A key that it lacks has its default, which nobody but the
    /// API server knows.
    pub(super) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Equal(this) => this == value,
            Self::Keys(keys) => {
                value.is_object()
                    && keys
                        .iter()
                        .all(|(name, this)| value.get(name).is_none_or(|value| value == this))
            }
        }
    }
}

/// Returns the entries of an object.
fn entries(object: &Value) -> &[Value] {
    let entries = object.pointer("/metadata/managedFields");
    entries.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns `true` if the entry is about the object itself and not about a subresource.
fn is_of_object(entry: &Value) -> bool {
    text(entry, "subresource").is_empty()
}

fn is_ours(entry: &Value) -> bool {
    text(entry, "manager") == APPLY_MANAGER
        && text(entry, "operation") == "Apply"
        && is_of_object(entry)
}

fn is_of_karmada(entry: &Value) -> bool {
    KARMADA.contains(&text(entry, "manager"))
        && text(entry, "operation") == "Update"
        && is_of_object(entry)
}

/// Returns the fields that we own in the object: those we applied, or those that Karmada did.
pub(super) fn owned(object: &Value) -> Option<&Value> {
    let entries = entries(object);
    let ours = entries.iter().find(|entry| is_ours(entry));
    let entry = ours.or_else(|| entries.iter().find(|entry| is_of_karmada(entry)))?;
    entry.get("fieldsV1")
}

/// Returns `true` if what the object has of a manifest was applied by us, and nothing of it is Karmada's;
/// `None` for an object without its managed fields, as caches keep it.
pub fn is_ours_alone(object: &Value) -> Option<bool> {
    object.pointer("/metadata/managedFields")?;
    let entries = entries(object);
    Some(entries.iter().any(is_ours) && !entries.iter().any(is_of_karmada))
}

/// Returns `true` if we own a field that is not in the manifest any more, so that an apply would remove it.
///
/// The defaults of its member are fields of an entry of Karmada's, too. So such an entry counts only for
/// kinds without generation, which have none; on others an edit shows in the annotation with the
/// template's generation.
pub(super) fn has_left(object: &Value, manifest: &Value) -> bool {
    let entries = entries(object);
    if let Some(ours) = entries.iter().find(|entry| is_ours(entry)) {
        return leaves(ours.get("fieldsV1"), manifest);
    }
    let generation = object.pointer("/metadata/generation");
    generation.is_none()
        && entries
            .iter()
            .any(|entry| is_of_karmada(entry) && leaves(entry.get("fieldsV1"), manifest))
}

/// Returns `true` if `fields` has one that `value` has not.
fn leaves(fields: Option<&Value>, value: &Value) -> bool {
    let fields = fields.and_then(Value::as_object);
    fields.into_iter().flatten().any(|(key, fields)| {
        let part = if let Some(name) = key.strip_prefix("f:") {
            value.get(name)
        } else if let Some(element) = element(key) {
            let list = value.as_array();
            list.and_then(|list| list.iter().find(|part| element.is(part)))
        } else {
            // `.` is the field itself, and `i:` is not used by any server.
            return false;
        };
        part.is_none_or(|part| leaves(Some(fields), part))
    })
}

/// Returns `true` if a manager other than us, and than Karmada before us, owns `path`.
pub(super) fn is_owned_by_another(object: &Value, path: &[&str]) -> bool {
    entries(object).iter().any(|entry| {
        let ours = is_ours(entry) || is_of_karmada(entry);
        let field = path.iter().try_fold(entry.get("fieldsV1"), |fields, name| {
            Some(fields?.get(format!("f:{name}")))
        });
        !ours && field.flatten().is_some()
    })
}

/// The entries whose fields become ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeOver {
    /// Those of Karmada's own programs: or a field that leaves the template would stay for ever.
    FromKarmada,
    /// Those of everybody, but for metadata and subresources: or a foreign container would go on running
    /// beside ours.
    FromAll,
}

/// Returns the patch that turns the fields of others into ones that we applied, and `None` if
/// nobody has any. It fails if the object has changed since it was read.
pub(super) fn take_over(object: &Value, from: TakeOver) -> Option<JsonPatch> {
    let mut taken = Value::Null;
    let mut api_version = None;
    let mut kept = Vec::new();
    let mut ours = None;
    for entry in entries(object) {
        if is_ours(entry) {
            ours = Some(entry);
            continue;
        }
        let (take, keep) = match from {
            _ if is_of_karmada(entry) => (entry.get("fieldsV1").cloned(), None),
            TakeOver::FromAll if is_of_object(entry) => split(entry),
            _ => (None, Some(entry.clone())),
        };
        if let Some(take) = take {
            api_version = api_version.or_else(|| entry.get("apiVersion"));
            union(&mut taken, take);
        }
        kept.extend(keep);
    }
    if taken.is_null() {
        return None;
    }
    let mut entry = ours.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": api_version.or_else(|| object.get("apiVersion")),
            "fieldsType": "FieldsV1",
            "manager": APPLY_MANAGER,
            "operation": "Apply",
        })
    });
    let fields = entry.get_mut("fieldsV1").map(Value::take);
    union(&mut taken, fields.unwrap_or_default());
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("fieldsV1".to_owned(), taken);
    }
    kept.push(entry);
    let mut patch = JsonPatch::default();
    patch.replace(["metadata", "managedFields"], kept.into());
    Some(patch.guarded(Some(object.resource_version())))
}

/// Returns the fields of an entry outside metadata, and the rest of the entry; each if there is any.
fn split(entry: &Value) -> (Option<Value>, Option<Value>) {
    let fields = entry.get("fieldsV1").and_then(Value::as_object);
    let Some(fields) = fields else {
        return (None, Some(entry.clone()));
    };
    let part = |of_metadata: bool| {
        let fields = fields
            .iter()
            .filter(|(key, _)| (*key == "f:metadata") == of_metadata);
        let fields: Map<_, _> = fields
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    };
    let rest = part(true).map(|fields| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("fieldsV1".to_owned(), fields);
        }
        entry
    });
    (part(false), rest)
}

/// Adds the fields of `other` to `fields`.
fn union(fields: &mut Value, other: Value) {
    match (fields, other) {
        (Value::Object(fields), Value::Object(other)) => {
            for (key, value) in other {
                union(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (fields @ Value::Null, other) => *fields = other,
        _ => {}
    }
}
