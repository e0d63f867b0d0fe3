//! Defaults: what the schema says of fields that are absent, and the nulls that it does not allow.

use serde_json::Value;

use super::node::Node;

/// Fills in defaults, and removes nulls from where there may be none. A null where there may be
/// none takes the default as an absent field does. Where objects are read into Go types
/// (`omits_empty`), maps and lists that are empty and need not be there go too.
pub(super) fn fill(node: &Node, value: &mut Value, omits_empty: bool) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let is_unset = fields
                    .get(name)
                    .is_none_or(|value| value.is_null() && !property.nullable);
                if let (true, Some(default)) = (is_unset, &property.default) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(field) = node.field(name) {
                    fill_element(
                        field,
                        value,
                        omits_empty || node.embedded && name == "metadata",
                    );
                }
            }
            fields.retain(|name, value| {
                node.field(name).is_none_or(|field| match value {
                    Value::Null => field.nullable,
                    Value::Object(fields) => {
                        !omits_empty || !fields.is_empty() || field.additional.is_none()
                    }
                    // One where there must be a map stays, to be refused.
                    Value::Array(items) => {
                        !omits_empty || !items.is_empty() || field.required || field.items.is_none()
                    }
                    _ => true,
                })
            });
        }
        Value::Array(items) => {
            let Some(item) = &node.items else { return };
            for value in items {
                fill_element(item, value, omits_empty);
            }
        }
        // A whole number is written without a fraction, so that clients can read it as one.
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

fn whole(number: f64) -> Option<i64> {
    format!("{number}").parse().ok()
}

fn fill_element(node: &Node, value: &mut Value, omits_empty: bool) {
    if let (true, false, Some(default)) = (value.is_null(), node.nullable, &node.default) {
        *value = default.clone();
    }
    fill(node, value, omits_empty);
}

/// What a new object of a built-in kind holds before anybody said anything: its structs.
pub(super) fn structs(node: &Node) -> Value {
    let present = node
        .properties
        .iter()
        .filter(|(_, property)| property.default.as_ref().is_some_and(Value::is_object))
        .map(|(name, property)| (name.clone(), structs(property)));
    Value::Object(present.collect())
}
