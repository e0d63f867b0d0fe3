//! Contents of cells.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::age;

pub(super) const NONE: &str = "<none>";

/// The limit of list items in a cell.
const SHOWN: usize = 3;

pub(super) fn age(object: &Value, now: Timestamp) -> String {
    age::of(object, now)
}

pub(super) fn name(object: &Value) -> Value {
    json!(text(&object["metadata"]["name"]))
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a number, which is 0 if it is absent: Go omits it then.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Returns `true` if the object has this condition, and it is `True`.
pub(super) fn has_condition(object: &Value, kind: &str) -> bool {
    let mut conditions = items(&object["status"]["conditions"]).iter();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Returns the names of the containers of a pod's spec.
pub(super) fn container_names(pod: &Value) -> String {
    joined(
        items(&pod["containers"])
            .iter()
            .map(|container| text(&container["name"])),
    )
}

/// Returns the images of the containers of a pod's spec.
pub(super) fn container_images(pod: &Value) -> String {
    joined(
        items(&pod["containers"])
            .iter()
            .map(|container| text(&container["image"])),
    )
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
