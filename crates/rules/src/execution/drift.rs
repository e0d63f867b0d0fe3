//! The difference between a manifest and the object in the member.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::managed_fields::{Element, element};

/// Returns `true` if the object has everything of the manifest.
///
/// `owned` is the set of fields (`FieldsV1`) that a manager of ours owns in the object: it tells a list that
/// merges by keys, to which others may add, from an atomic one. Without it, a list with more elements than
/// in the manifest counts as different.
pub fn contains(object: &Value, manifest: &Value, owned: Option<&Value>) -> bool {
    match (object, manifest) {
        (_, manifest) if is_empty(manifest) && is_container_or_null(object, manifest) => true,
        (Value::Object(object), Value::Object(manifest)) => {
            let atomic = owned.is_some_and(is_leaf);
            let extra = || object.keys().any(|name| !manifest.contains_key(name));
            if atomic && object.values().all(is_scalar) && extra() {
                return false;
            }
            manifest.iter().all(|(name, part)| {
                let owned = owned.and_then(|owned| owned.get(format!("f:{name}")));
                contains(object.get(name).unwrap_or(&Value::Null), part, owned)
            })
        }
        (Value::Array(object), Value::Array(manifest)) => list(object, manifest, owned),
        (Value::Number(object), Value::Number(manifest)) => {
            object == manifest || object.as_f64() == manifest.as_f64()
        }
        (object, manifest) => object == manifest,
    }
}

fn list(object: &[Value], manifest: &[Value], owned: Option<&Value>) -> bool {
    let owned = owned.and_then(Value::as_object);
    let Some(owned) = owned.filter(|owned| owned.keys().any(|key| element(key).is_some())) else {
        return object.len() == manifest.len()
            && object
                .iter()
                .zip(manifest)
                .all(|(object, manifest)| contains(object, manifest, None));
    };
    manifest.iter().all(|part| {
        let of_part = owned
            .iter()
            .find(|(key, _)| element(key).is_some_and(|element| element.is(part)));
        let Some((key, fields)) = of_part else {
            // An element that was never applied.
            return false;
        };
        let Some(selector) = element(key) else {
            return false;
        };
        let found = object.iter().find(|candidate| selector.is(candidate));
        found.is_some_and(|found| match selector {
            Element::Keys(_) => contains(found, part, Some(fields)),
            Element::Equal(_) => true,
        })
    })
}

fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_some_and(Map::is_empty)
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Returns `true` for what an API server leaves out as readily as it keeps it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn is_container_or_null(object: &Value, manifest: &Value) -> bool {
    match (object, manifest) {
        (Value::Null, _) | (Value::Object(_), Value::Object(_)) => true,
        // An empty list is all of it, whatever others would add to one that merges by keys.
        (Value::Array(object), Value::Array(_)) => object.is_empty(),
        _ => false,
    }
}

/// The part of a member's object that has to change before it is compared with its manifest again.
///
/// A webhook or a default in the member may keep an object from ever being equal to its manifest: after an
/// apply, only a further change counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    identity: u64,
    content: u64,
}

impl Settled {
    /// Returns the state of an object as it is now.
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64);
        let mut identity = DefaultHasher::new();
        text("/metadata/uid").hash(&mut identity);
        text("/metadata/deletionTimestamp").hash(&mut identity);
        let mut content = DefaultHasher::new();
        for part in ["labels", "annotations"] {
            let part = object.get("metadata").and_then(|m| m.get(part));
            hash(part.unwrap_or(&Value::Null), &mut content);
        }
        match generation {
            // Every change of what a user may write increases it.
            Some(generation) if generation > 0 => generation.hash(&mut content),
            _ => {
                for (name, part) in object.as_object().into_iter().flatten() {
                    if !["metadata", "status"].contains(&&**name) {
                        name.hash(&mut content);
                        hash(part, &mut content);
                    }
                }
            }
        }
        Self {
            identity: identity.finish(),
            content: content.finish(),
        }
    }
}

fn hash(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(value) => (1_u8, value).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(list) => {
            (4_u8, list.len()).hash(hasher);
            for element in list {
                hash(element, hasher);
            }
        }
        Value::Object(map) => {
            (5_u8, map.len()).hash(hasher);
            for (name, value) in map {
                name.hash(hasher);
                hash(value, hasher);
            }
        }
    }
}
