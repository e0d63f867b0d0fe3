//! Parts of single objects, as several projects have them.

use objects::condition::TRUE;
use serde_json::{Map, Value};

use super::needs::Needs;
use crate::interpret::reflect::generations;

/// Returns the text at a path; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    let text = value.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Returns the whole number at a path, as a number or as text; `None` if there is none.
pub(super) fn count(value: &Value, path: &str) -> Option<i64> {
    match value.pointer(path)? {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_i64(),
    }
}

/// Returns the elements of the list at a path; none if it is no list.
pub(super) fn list<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = value.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the entries of the map at a path; none if it is no map.
pub(super) fn entries<'a>(
    value: &'a Value,
    path: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    let map = value.pointer(path).and_then(Value::as_object);
    map.into_iter().flatten()
}

/// Returns `true` for a value that says nothing.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the status of an object, reduced to the fields `names`. An empty map is as good as none: a script cannot
/// tell it from an empty list, and Karmada drops it.
pub(super) fn status_part(object: &Value, names: &[&str]) -> Map<String, Value> {
    let status = object.get("status").unwrap_or(&Value::Null);
    let is_told =
        |value: &&Value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty());
    let present = names.iter().filter_map(|&name| {
        let value = status.get(name).filter(is_told)?;
        Some((name.to_owned(), value.clone()))
    });
    present.collect()
}

/// Returns the same together with the generations of which it is.
pub(super) fn observed_part(object: &Value, names: &[&str]) -> Value {
    let names = [names, &["observedGeneration"]].concat();
    let mut part = status_part(object, &names);
    part.extend(generations(object));
    part.into()
}

/// Returns `true` if an object has a condition that is True, of a type and for one of `reasons`; any if there is none.
pub(super) fn has_condition(object: &Value, kind: &str, reasons: &[&str]) -> bool {
    list(object, "/status/conditions").any(|condition| {
        is_true(condition, kind)
            && (reasons.is_empty() || reasons.contains(&text(condition, "/reason")))
    })
}

/// Returns `true` for a condition of a type that is True.
pub(super) fn is_true(condition: &Value, kind: &str) -> bool {
    text(condition, "/type") == kind && text(condition, "/status") == TRUE
}

/// Returns the needs of the Pods whose specs are at `paths`.
pub(super) fn pods<'a>(template: &'a Value, paths: &[&str]) -> Needs<'a> {
    let pods = paths.iter().filter_map(|path| template.pointer(path));
    Needs {
        pods: pods.collect(),
        objects: Vec::new(),
    }
}

/// Returns the requirements of each Pod, as a binding has them, without empty ones; `None` if there are none.
pub(super) fn needs(
    node_claim: Option<Value>,
    priority_class: Option<&Value>,
    request: Map<String, Value>,
) -> Option<Value> {
    let parts = [
        ("nodeClaim", node_claim),
        ("priorityClassName", priority_class.cloned()),
        ("resourceRequest", Some(Value::Object(request))),
    ];
    let parts = parts.into_iter().filter_map(|(name, part)| {
        let part = part.filter(|part| !is_empty(part))?;
        Some((name.to_owned(), part))
    });
    let parts: Map<_, _> = parts.collect();
    (!parts.is_empty()).then(|| parts.into())
}

/// Returns the fields that say something. Zeros are left out, too.
pub(super) fn without_empties(fields: Map<String, Value>) -> Map<String, Value> {
    let told = fields.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Value::Object(map) => Value::Object(without_empties(map)),
            value => value,
        };
        let is_zero = value.as_f64() == Some(0.0) || value == "0s";
        (!is_zero && !is_empty(&value)).then_some((name, value))
    });
    told.collect()
}
