//! Contents of cells.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::age;

/// The content of an empty cell.
pub(super) const NONE: &str = "<none>";

/// The limit of list items in a cell.
const SHOWN: usize = 3;

/// Returns the age of an object.
pub(in crate::table) fn age(object: &Value, now: Timestamp) -> String {
    age::since(object["metadata"]["creationTimestamp"].as_str(), now)
}

pub(super) fn name(object: &Value) -> Value {
    json!(text(&object["metadata"]["name"]))
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn entries(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn entries_of(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(super) fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise } else { text }.to_owned()
}

pub(super) fn joined(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut joined = String::new();
    for part in parts {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(part.as_ref());
    }
    joined
}

pub(super) fn first_few(list: &[String]) -> String {
    match list.get(..SHOWN) {
        Some(first) if list.len() > SHOWN => {
            format!("{} + {} more...", joined(first), list.len() - SHOWN)
        }
        _ => joined(list),
    }
}
