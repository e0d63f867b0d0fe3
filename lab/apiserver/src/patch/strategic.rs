//! Strategic merge patches, which merge lists by the keys that the schema names.
//!
//! The directives are those of `k8s.io/apimachinery/pkg/util/strategicpatch`.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::schema::{Merge, Node};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

/// Returns the object after the patch.
pub(super) fn merge(root: &Node, object: Value, patch: &Value) -> Result<Value, ApiError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(ApiError::bad_request("Invalid JSON document"));
    };
    merge_fields(root, object, patch).map(Value::Object)
}

/// Creates the error for a patch that is well-formed but cannot be applied.
fn impossible(message: String) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

fn merge_fields(
    node: &Node,
    mut fields: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    match patch.get(DIRECTIVE).map(Value::as_str) {
        None | Some(Some("merge")) => {}
        Some(Some("delete")) => return Ok(Map::new()),
        Some(Some("replace")) => {
            let rest = patch.iter().filter(|(name, _)| *name != DIRECTIVE);
            return Ok(rest
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect());
        }
        Some(_) => {
            let shown = Value::Object(patch.clone());
            return Err(impossible(format!(
                "unknown patch type {} in {shown}",
                patch.get(DIRECTIVE).unwrap_or(&shown)
            )));
        }
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain(&mut fields, patch, keys)?;
    }
    for (name, value) in patch {
        if name == DIRECTIVE || name == RETAIN_KEYS || name.starts_with(ORDER) {
            continue;
        }
        // Scalars have no key by which an element with `$patch: delete` could name them.
        if let Some(name) = name.strip_prefix(DELETE_VALUES) {
            let Some(gone) = value.as_array() else {
                return Err(ApiError::bad_request(
                    "invalid patch format of primitive list",
                ));
            };
            if let Some(Value::Array(values)) = fields.get_mut(name) {
                values.retain(|value| !gone.contains(value));
            }
            continue;
        }
        let Some(value) = merge_field(
            node.field(name),
            fields.remove(name),
            value,
            patch.get(&format!("{ORDER}{name}")),
        )?
        else {
            continue;
        };
        fields.insert(name.clone(), value);
    }
    reorder(node, &mut fields, patch)?;
    Ok(fields)
}

/// Reorders lists for which the patch contains an order but no elements.
fn reorder(
    node: &Node,
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), ApiError> {
    for (name, order) in patch {
        let Some(name) = name
            .strip_prefix(ORDER)
            .filter(|name| !patch.contains_key(*name))
        else {
            continue;
        };
        let order = ordering(order)?;
        if let (Some(field), Some(Value::Array(values))) = (node.field(name), fields.get_mut(name))
        {
            let original = values.clone();
            *values = ordered(&field.merge, std::mem::take(values), &original, order);
        }
    }
    Ok(())
}

/// Removes the fields that `$retainKeys` does not list. The patch itself may set no others.
fn retain(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    keys: &Value,
) -> Result<(), ApiError> {
    const WRONG: &str = "invalid patch format of retainKeys";
    let keys = (keys.as_array()).ok_or_else(|| ApiError::bad_request(WRONG))?;
    let retained: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    let mut set = (patch.iter()).filter(|(name, value)| !name.starts_with('$') && !value.is_null());
    if set.any(|(name, _)| !retained.contains(&name.as_str())) {
        return Err(ApiError::bad_request(WRONG));
    }
    fields.retain(|name, _| retained.contains(&name.as_str()));
    Ok(())
}

fn ordering(order: &Value) -> Result<&Vec<Value>, ApiError> {
    order
        .as_array()
        .ok_or_else(|| ApiError::bad_request("invalid patch format of setElementOrder list"))
}

/// Merges one field, and returns `None` if the patch removes it.
fn merge_field(
    node: Option<&Node>,
    live: Option<Value>,
    patch: &Value,
    order: Option<&Value>,
) -> Result<Option<Value>, ApiError> {
    let unknown = Node::default();
    let node = node.unwrap_or(&unknown);
    match (live, patch) {
        // A null removes the field, as in a merge patch (RFC 7396).
        (_, Value::Null) => Ok(None),
        (Some(Value::Object(live)), Value::Object(patch)) => {
            merge_fields(node, live, patch).map(|merged| Some(Value::Object(merged)))
        }
        (Some(Value::Array(live)), Value::Array(patch)) => {
            let order = order.map(ordering).transpose()?;
            merge_list(node, live, patch, order).map(|merged| Some(Value::Array(merged)))
        }
        (_, patch) => Ok(without_directives(patch)),
    }
}

/// Returns a value to be stored where there was none, without its directives.
fn without_directives(patch: &Value) -> Option<Value> {
    match patch {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let plain = fields
                .iter()
                .filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Some(Value::Object(
                plain
                    .filter_map(|(name, value)| Some((name.clone(), without_directives(value)?)))
                    .collect(),
            ))
        }
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}

fn merge_list(
    node: &Node,
    live: Vec<Value>,
    patch: &[Value],
    order: Option<&Vec<Value>>,
) -> Result<Vec<Value>, ApiError> {
    let original = live.clone();
    let mut merged = live;
    match &node.merge {
        Merge::Replace => return Ok(patch.iter().filter_map(without_directives).collect()),
        Merge::Unite => {
            for value in patch {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
        }
        Merge::ByKey(key) => {
            let unknown = Node::default();
            let item = node.items.as_deref().unwrap_or(&unknown);
            if patch.iter().any(|element| {
                element
                    .get(DIRECTIVE)
                    .is_some_and(|directive| directive == "replace")
            }) {
                return Ok(patch
                    .iter()
                    .filter(|element| element.get(DIRECTIVE).is_none())
                    .cloned()
                    .collect());
            }
            for element in patch {
                merge_element(item, &mut merged, element, key)?;
            }
        }
    }
    // Without an explicit order, the elements of the patch define it.
    let plain: Vec<Value> = patch
        .iter()
        .filter(|element| element.get(DIRECTIVE).is_none())
        .cloned()
        .collect();
    Ok(ordered(
        &node.merge,
        merged,
        &original,
        order.unwrap_or(&plain),
    ))
}

fn merge_element(
    node: &Node,
    list: &mut Vec<Value>,
    patch: &Value,
    key: &str,
) -> Result<(), ApiError> {
    let (Some(fields), Some(identity)) = (patch.as_object(), patch.get(key)) else {
        return Err(impossible(format!(
            "map: {patch} does not contain declared merge key: {key}"
        )));
    };
    match fields.get(DIRECTIVE).map(Value::as_str) {
        None => {}
        Some(Some("delete")) => {
            list.retain(|element| element.get(key) != Some(identity));
            return Ok(());
        }
        Some(_) => {
            return Err(impossible(format!(
                "unknown patch type {} in {patch}",
                fields.get(DIRECTIVE).unwrap_or(patch)
            )));
        }
    }
    match list
        .iter_mut()
        .find(|element| element.get(key) == Some(identity))
    {
        Some(Value::Object(element)) => {
            *element = merge_fields(node, std::mem::take(element), fields)?;
        }
        _ => list.extend(without_directives(patch)),
    }
    Ok(())
}

/// Sorts a list: elements in `order` follow that order, and each other element stays in front of
/// those that it preceded in `original`.
fn ordered(merge: &Merge, list: Vec<Value>, original: &[Value], order: &[Value]) -> Vec<Value> {
    let (mut named, rest): (Vec<Value>, Vec<Value>) = list
        .into_iter()
        .partition(|value| position(merge, order, value).is_some());
    named.sort_by_key(|value| position(merge, order, value));
    let mut sorted = Vec::new();
    let mut rest = rest.into_iter().peekable();
    for value in named {
        let at = position(merge, original, &value);
        while let Some(other) =
            rest.next_if(|other| at.is_some() && position(merge, original, other) < at)
        {
            sorted.push(other);
        }
        sorted.push(value);
    }
    sorted.extend(rest);
    sorted
}

/// Returns the place in a list of the element that is the same as this one.
fn position(merge: &Merge, list: &[Value], value: &Value) -> Option<usize> {
    let wanted = identity(merge, value);
    list.iter()
        .position(|other| identity(merge, other) == wanted)
}

fn identity<'a>(merge: &Merge, value: &'a Value) -> Option<&'a Value> {
    match merge {
        Merge::ByKey(key) => value.get(key),
        Merge::Unite | Merge::Replace => Some(value),
    }
}
