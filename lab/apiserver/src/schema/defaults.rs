//! Defaulting: defaults of absent fields, and the removal of nulls that the schema does not allow.

use serde_json::Value;

use super::node::Node;

/// Fills in defaults and removes nulls where they are not allowed. Such a null takes the default
/// like an absent field. With `omits_empty`, for objects that Go decodes into structs, empty maps
/// and lists that are not required are removed as well.
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
                        // Go decodes `metadata` into a struct in custom resources as well.
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
                    // An array in place of a map stays for validation to reject it.
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
        // Whole numbers are stored without a fraction, so that clients can decode them as integers.
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

/// Returns the fields of an empty Go struct of a built-in kind: its nested structs.
pub(super) fn structs(node: &Node) -> Value {
    let present = node
        .properties
        .iter()
        .filter(|(_, property)| property.default.as_ref().is_some_and(Value::is_object))
        .map(|(name, property)| (name.clone(), structs(property)));
    Value::Object(present.collect())
}
