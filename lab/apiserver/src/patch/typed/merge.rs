//! Merging an applied configuration into an object, and removing fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{both, child, element, elements, fields, item, items};
use crate::patch::paths::{Path, Paths, extended, field, shown};
use crate::schema::Node;

/// Merges `wanted` into `live`. Nothing is removed. Lists keep the order of `wanted` for elements
/// of both, and otherwise that of `live`.
pub(in crate::patch) fn merge(
    node: &Node,
    live: Option<&Value>,
    wanted: Option<&Value>,
) -> Result<Value, String> {
    if let Some((left, right)) = both((live, fields(node, live)), (wanted, fields(node, wanted))) {
        let names: BTreeSet<&String> = [left, right]
            .into_iter()
            .flatten()
            .flat_map(Map::keys)
            .collect();
        let mut merged = Map::new();
        for name in names {
            let [left, right] = [left, right].map(|side| side.and_then(|fields| fields.get(name)));
            merged.insert(name.clone(), merge(child(node, name), left, right)?);
        }
        return Ok(Value::Object(merged));
    }
    if let Some((left, right)) = both((live, items(node, live)), (wanted, items(node, wanted))) {
        return merge_lists(node, &elements(node, left)?, &elements(node, right)?)
            .map(Value::Array);
    }
    Ok(wanted.or(live).cloned().unwrap_or_default())
}

fn merge_lists(
    node: &Node,
    live: &[(String, &Value)],
    wanted: &[(String, &Value)],
) -> Result<Vec<Value>, String> {
    let mut done = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut left, mut right) = (live.iter().peekable(), wanted.iter().peekable());
    loop {
        if let Some((step, value)) = left.peek() {
            if !has(wanted, step) {
                merged.push((*value).clone());
                left.next();
                continue;
            }
            // Elements of both sides follow the order of `wanted`, so a live one that is not next
            // there waits.
            let next_shared = right
                .clone()
                .find(|(other, _)| has(live, other) && !done.contains(other));
            if done.contains(step) || next_shared.is_some_and(|(other, _)| other != step) {
                left.next();
                continue;
            }
        }
        let Some((step, value)) = right.next() else {
            break;
        };
        if !done.insert(step) {
            return Err(format!(
                "duplicate entries for key {}",
                shown(std::slice::from_ref(step))
            ));
        }
        merged.push(merge(item(node), only(live, step), Some(value))?);
        if left.peek().is_some_and(|(other, _)| other == step) {
            left.next();
        }
    }
    Ok(merged)
}

fn has(elements: &[(String, &Value)], step: &str) -> bool {
    elements.iter().any(|(other, _)| other == step)
}

/// Returns the element with a step, or `None` if several have it: these are replaced, not merged.
fn only<'a>(elements: &[(String, &'a Value)], step: &str) -> Option<&'a Value> {
    let mut same = elements.iter().filter(|(other, _)| other == step);
    let (_, value) = same.next()?;
    same.next().is_none().then_some(*value)
}

/// Returns the object without these fields and elements. A container that loses its last one
/// becomes null.
pub(in crate::patch) fn without(
    node: &Node,
    object: &Value,
    paths: &Paths,
) -> Result<Value, String> {
    remove(node, object, &Vec::new(), paths)
}

fn remove(node: &Node, value: &Value, at: &Path, paths: &Paths) -> Result<Value, String> {
    if let Some(fields) = fields(node, Some(value)) {
        let mut kept = Map::new();
        for (name, value) in fields {
            let path = extended(at, field(name));
            if let Some(value) = keep(child(node, name), value, &path, paths)? {
                kept.insert(name.clone(), value);
            }
        }
        let is_hollow = kept.is_empty() && !fields.is_empty();
        return Ok(if is_hollow {
            Value::Null
        } else {
            Value::Object(kept)
        });
    }
    if let Some(list) = items(node, Some(value)) {
        let mut kept = Vec::new();
        for value in list {
            let path = extended(at, element(node, value)?);
            kept.extend(keep(item(node), value, &path, paths)?);
        }
        let is_hollow = kept.is_empty() && !list.is_empty();
        return Ok(if is_hollow {
            Value::Null
        } else {
            Value::Array(kept)
        });
    }
    Ok(value.clone())
}

/// Returns a field or element without these paths, or `None` if its own is one of them.
fn keep(node: &Node, value: &Value, at: &Path, paths: &Paths) -> Result<Option<Value>, String> {
    if paths.contains(at) {
        return Ok(None);
    }
    if paths.below(at).next().is_none() {
        return Ok(Some(value.clone()));
    }
    remove(node, value, at, paths).map(Some)
}
