//! Fields of an object as others have written it: a value that is no text, or no list, is absent.

use serde_json::Value;

pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    list(object, field).filter_map(Value::as_str)
}

pub(super) fn list<'a>(
    object: &'a Value,
    field: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    object
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
