//! Uniqueness of the elements of sets and maps.

use serde_json::Value;

use super::node::{List, Node};
use super::validate::shown;
use crate::error::Cause;

/// Finds duplicate elements of sets and maps.
pub(super) fn find(node: &Node, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(field) = node.field(name) {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    find(field, value, &path, causes);
                }
            }
        }
        Value::Array(items) => {
            let identities: Vec<Value> = items
                .iter()
                .map(|item| identity(&node.list, item))
                .collect();
            for (index, (identity, item)) in identities.iter().zip(items).enumerate() {
                let path = format!("{path}[{index}]");
                if matches!(node.list, List::Map(_)) && !item.is_object() {
                    let message = format!(
                        "Invalid value: {}: must be an object for an array of list-type map",
                        shown(item)
                    );
                    causes.push(Cause {
                        reason: "FieldValueInvalid",
                        message,
                        field: path,
                    });
                    continue;
                }
                let earlier = identities
                    .get(..index)
                    .into_iter()
                    .flatten()
                    .filter(|other| *other == identity)
                    .count();
                // Only the first repetition is reported, as in kube-apiserver.
                if node.list != List::Atomic && earlier == 1 {
                    let message = format!("Duplicate value: {}", shown(identity));
                    causes.push(Cause {
                        reason: "FieldValueDuplicate",
                        message,
                        field: path.clone(),
                    });
                }
                if let Some(node) = &node.items {
                    find(node, item, &path, causes);
                }
            }
        }
        _ => {}
    }
}

/// Returns the identity of a list element: its value, or in a map its keys.
fn identity(list: &List, item: &Value) -> Value {
    match list {
        List::Map(keys) => {
            let keys = keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(keys.collect())
        }
        List::Set | List::Atomic => item.clone(),
    }
}
