//! Objects with their schema: fields, differences and merges.
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff`. An atomic object or list is a leaf,
//! and so is one that is empty on both sides.

mod compare;
mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::paths::{Path, Paths, extended, field, shown};
use crate::schema::{List, Node};

pub(super) use self::compare::difference;
pub(super) use self::merge::{merge, without};

/// Returns the schema of a field. Without one, objects merge and lists do not.
fn child<'a>(node: &'a Node, name: &str) -> &'a Node {
    static UNKNOWN: LazyLock<Node> = LazyLock::new(Node::anything);
    node.field(name).unwrap_or(&UNKNOWN)
}

fn item(node: &Node) -> &Node {
    static UNKNOWN: LazyLock<Node> = LazyLock::new(Node::anything);
    node.items.as_deref().unwrap_or(&UNKNOWN)
}

fn fields<'a>(node: &Node, value: Option<&'a Value>) -> Option<&'a Map<String, Value>> {
    value.and_then(Value::as_object).filter(|_| !node.atomic)
}

fn items<'a>(node: &Node, value: Option<&'a Value>) -> Option<&'a Vec<Value>> {
    value
        .and_then(Value::as_array)
        .filter(|_| node.list != List::Atomic)
}

/// Returns both sides as containers of one type, or `None` if a side has another type or both are
/// empty.
fn both<'a, C: IsEmpty>(
    left: (Option<&'a Value>, Option<&'a C>),
    right: (Option<&'a Value>, Option<&'a C>),
) -> Option<(Option<&'a C>, Option<&'a C>)> {
    let has_other = [left, right].into_iter().any(|(value, container)| {
        container.is_none() && value.is_some_and(|value| !value.is_null())
    });
    if has_other || [left.1, right.1].into_iter().flatten().all(C::is_empty) {
        return None;
    }
    Some((left.1, right.1))
}

trait IsEmpty {
    fn is_empty(&self) -> bool;
}

impl IsEmpty for Map<String, Value> {
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

impl IsEmpty for Vec<Value> {
    fn is_empty(&self) -> bool {
        <[Value]>::is_empty(self)
    }
}

/// Returns the step to an element of a set or map.
///
/// # Errors
/// Returns a message if the element lacks its keys.
fn element(node: &Node, value: &Value) -> Result<String, String> {
    let List::Map(keys) = &node.list else {
        return Ok(format!("v:{value}"));
    };
    let Some(fields) = value.as_object() else {
        return Err("associative list with keys may not have non-map elements".to_owned());
    };
    let mut identity = BTreeMap::new();
    for key in keys {
        // An absent key counts as its default, such as the `protocol: TCP` of a Service port.
        let value = fields
            .get(key)
            .or_else(|| item(node).properties.get(key)?.default.as_ref());
        identity.extend(value.map(|value| (key, value)));
    }
    if identity.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {keys:?} (and doesn't have default values for any key fields)"
        ));
    }
    serde_json::to_string(&identity)
        .map(|keys| format!("k:{keys}"))
        .map_err(|error| error.to_string())
}

/// Returns the elements of a list with their steps, in order. Several can have the same step.
fn elements<'a>(
    node: &Node,
    list: Option<&'a Vec<Value>>,
) -> Result<Vec<(String, &'a Value)>, String> {
    let list = list.into_iter().flatten();
    list.map(|value| Ok((element(node, value)?, value)))
        .collect()
}

/// Returns the paths of all leaves and list elements of an object.
pub(super) fn paths(node: &Node, object: &Value) -> Result<Paths, String> {
    let mut paths = Paths::default();
    collect(node, object, &Vec::new(), &mut paths)?;
    Ok(paths)
}

fn collect(node: &Node, value: &Value, at: &Path, paths: &mut Paths) -> Result<(), String> {
    if let Some(fields) = fields(node, Some(value)) {
        for (name, value) in fields {
            let path = extended(at, field(name));
            collect(child(node, name), value, &path, paths)?;
            // Nothing below an empty value could be owned, so it is owned itself.
            let is_hollow = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            if is_hollow || !is_declared(node, name) {
                paths.insert(path);
            }
        }
    } else if let Some(list) = items(node, Some(value)) {
        let elements = elements(node, Some(list))?;
        for (step, value) in &elements {
            let path = extended(at, step.clone());
            // Fields of ambiguous elements cannot be owned individually.
            let is_alone = elements.iter().filter(|(other, _)| other == step).count() == 1;
            if is_alone {
                collect(item(node), value, &path, paths)?;
            }
            paths.insert(path);
        }
    } else if !value.is_null() {
        paths.insert(at.clone());
    }
    Ok(())
}

fn is_declared(node: &Node, name: &str) -> bool {
    node.properties.contains_key(name) || node.embedded && name == "metadata"
}

/// Adds the declared fields along the paths to a set.
pub(super) fn with_parents(node: &Node, paths: &Paths) -> Paths {
    let mut all = paths.clone();
    for path in paths.iter() {
        let mut node = node;
        for (depth, step) in path.iter().enumerate() {
            let Some(name) = step.strip_prefix("f:") else {
                node = item(node);
                continue;
            };
            if is_declared(node, name) {
                all.insert(path.iter().take(depth + 1).cloned().collect());
            }
            node = child(node, name);
        }
    }
    all
}

/// Returns the reasons why parts of a configuration cannot be owned: `.spec.foo: field not declared
/// in schema`, or ambiguous list elements.
pub(super) fn undeclared(node: &Node, value: &Value, at: &Path) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(fields) = fields(node, Some(value)) {
        for (name, value) in fields {
            let path = extended(at, field(name));
            let is_type = node.embedded && (name == "apiVersion" || name == "kind");
            if node.field(name).is_none() && !node.preserves_unknown && !is_type {
                all.push(format!("{}: field not declared in schema", shown(&path)));
            } else {
                all.extend(undeclared(child(node, name), value, &path));
            }
        }
    } else if let Some(list) = items(node, Some(value)) {
        let mut steps = BTreeSet::new();
        for value in list {
            match element(node, value) {
                Ok(step) => {
                    let path = extended(at, step.clone());
                    if steps.insert(step.clone()) {
                        all.extend(undeclared(item(node), value, &path));
                    } else {
                        all.push(format!(
                            "{}: duplicate entries for key {}",
                            shown(at),
                            shown(&[step])
                        ));
                    }
                }
                Err(error) => all.push(format!("{}: {error}", shown(at))),
            }
        }
    }
    all
}
