//! Label selectors as text.

use serde_json::Value;

use super::cell::{entries_of, items, joined, text};

/// Formats a label selector, its requirements sorted by key (`labels.Selector.String`).
pub(super) fn selector(selector: &Value) -> String {
    let mut requirements: Vec<(&str, String)> = entries_of(&selector["matchLabels"])
        .map(|(key, value)| (key.as_str(), format!("{key}={}", text(value))))
        .collect();
    requirements.extend(items(&selector["matchExpressions"]).iter().map(expression));
    // Stable, as in Go: two requirements of one key keep their order.
    requirements.sort_by_key(|(key, _)| *key);
    joined(requirements.iter().map(|(_, requirement)| requirement))
}

/// Formats a requirement, and returns it with its key.
fn expression(expression: &Value) -> (&str, String) {
    let key = text(&expression["key"]);
    let mut values: Vec<&str> = items(&expression["values"]).iter().map(text).collect();
    values.sort_unstable();
    let values = values.join(",");
    let requirement = match text(&expression["operator"]) {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    };
    (key, requirement)
}
