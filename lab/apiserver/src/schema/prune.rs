//! Pruning: the removal of fields that the schema lacks.

use serde_json::Value;

use super::node::Node;

const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields, and returns their sorted paths: `spec.rules[0].bar`.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    visit(Some(root), object, "", &mut unknown);
    unknown.sort();
    unknown
}

/// Prunes a value. `node` is `None` where `additionalProperties` or `items` are absent.
fn visit(node: Option<&Node>, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            if node.is_some_and(|node| node.embedded) && TYPE_AND_METADATA.contains(&name.as_str())
            {
                if name == "metadata" {
                    visit(Some(Node::metadata()), value, &path, unknown);
                }
                return true;
            }
            if let Some(field) = node.and_then(|node| node.field(name)) {
                visit(Some(field), value, &path, unknown);
                return true;
            }
            let is_kept = node.is_some_and(|node| node.preserves_unknown);
            if !is_kept {
                unknown.push(path);
            }
            is_kept
        }),
        Value::Array(items) => {
            let item = node.and_then(|node| node.items.as_deref());
            // Below `preserve-unknown-fields` without `items`, elements are unspecified and kept.
            if item.is_none() && node.is_some_and(|node| node.preserves_unknown) {
                return;
            }
            for (index, value) in items.iter_mut().enumerate() {
                visit(item, value, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
