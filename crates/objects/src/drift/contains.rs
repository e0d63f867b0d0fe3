//! Whether an object has everything of its manifest.

use serde_json::{Map, Value};

use crate::managed_fields::{Element, element, is_union};
use crate::{api_version, group};

/// Returns `true` if the object has everything of the manifest.
///
/// `owned` is the set of fields (`FieldsV1`) that a manager of ours owns in the object: it tells a list that
/// merges by keys, to which others may add, from an atomic one. Without it, a list with more elements than
/// in the manifest counts as different.
pub fn contains(object: &Value, manifest: &Value, owned: Option<&Value>) -> bool {
    has_all_of(object, manifest, (owned, Form::of(manifest)))
}

/// Whether a field of a part may exclude the others. An API server leaves out an empty map as readily as it keeps it, but
/// a value in the place of an empty struct, such as `emptyDir: {}`, is another choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// None does.
    Struct,
    /// One may.
    Union,
    /// One may, and so in every part of it: a kind whose API server keeps whatever is empty.
    Custom,
}

impl Form {
    fn of(manifest: &Value) -> Self {
        let group = group(api_version(manifest));
        if group.contains('.') && !group.ends_with(".k8s.io") {
            Self::Custom
        } else {
            Self::Struct
        }
    }

    /// Returns that of the field of this name.
    fn field(self, name: &str) -> Self {
        match self {
            Self::Custom => Self::Custom,
            _ if is_union(name) => Self::Union,
            _ => Self::Struct,
        }
    }

    /// Returns that of an element of a list: of volumes, of peers, of filters.
    fn element(self) -> Self {
        match self {
            Self::Custom => Self::Custom,
            Self::Struct | Self::Union => Self::Union,
        }
    }
}

fn has_all_of(object: &Value, manifest: &Value, (owned, form): (Option<&Value>, Form)) -> bool {
    match (object, manifest) {
        (_, manifest) if is_empty(manifest) && is_container_or_null(object, manifest) => true,
        (Value::Object(object), Value::Object(manifest)) => {
            let is_atomic = owned.is_some_and(is_leaf) && object.values().all(is_scalar);
            if is_atomic && object.keys().any(|name| !manifest.contains_key(name)) {
                return false;
            }
            if form != Form::Struct && has_another_choice(object, manifest) {
                return false;
            }
            manifest.iter().all(|(name, part)| {
                let owned = owned.and_then(|owned| owned.get(format!("f:{name}")));
                let found = object.get(name).unwrap_or(&Value::Null);
                has_all_of(found, part, (owned, form.field(name)))
            })
        }
        (Value::Array(object), Value::Array(manifest)) => {
            list(object, manifest, (owned, form.element()))
        }
        (Value::Number(object), Value::Number(manifest)) => {
            object == manifest || object.as_f64() == manifest.as_f64()
        }
        (object, manifest) => object == manifest,
    }
}

/// Returns `true` if the object has another part in the place of one that is empty in the manifest.
fn has_another_choice(object: &Map<String, Value>, manifest: &Map<String, Value>) -> bool {
    let lacks_one = manifest.iter().any(|(name, part)| {
        part.as_object().is_some_and(Map::is_empty) && !object.contains_key(name)
    });
    let mut others = object.iter();
    lacks_one && others.any(|(name, part)| part.is_object() && !manifest.contains_key(name))
}

fn list(object: &[Value], manifest: &[Value], (owned, form): (Option<&Value>, Form)) -> bool {
    let owned = owned.and_then(Value::as_object);
    let Some(owned) = owned.filter(|owned| owned.keys().any(|key| element(key).is_some())) else {
        return object.len() == manifest.len()
            && object
                .iter()
                .zip(manifest)
                .all(|(object, manifest)| has_all_of(object, manifest, (None, form)));
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
            Element::Keys(_) => has_all_of(found, part, (Some(fields), form)),
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

/// Returns `true` for a value that an API server leaves out as readily as it keeps it.
pub(crate) fn is_empty(value: &Value) -> bool {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Case F103: somebody chooses another member of a union than the empty one of a manifest. A map that is empty there is
    /// the same as none.
    #[test]
    fn empty_choice_is_missed() {
        let pod = |mut volume: Value| {
            volume["name"] = json!("scratch");
            json!({ "apiVersion": "v1", "kind": "Pod",
                "spec": { "nodeSelector": {}, "securityContext": {}, "volumes": [volume] } })
        };
        for [manifest, other] in [
            [json!({ "emptyDir": {} }), json!({ "configMap": { "name": "a" } })].map(pod),
            [json!({ "podSelector": {} }), json!({ "namespaceSelector": {} })].map(|peer| {
                json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                    "spec": { "ingress": [{ "from": [peer] }] } })
            }),
            [json!({ "exec": {} }), json!({ "httpGet": { "port": 80 } })].map(|handler| {
                json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "livenessProbe": handler } })
            }),
            [json!({ "selfSigned": {} }), json!({ "ca": { "secretName": "a" } })].map(|spec| {
                json!({ "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "spec": spec })
            }),
        ] {
            assert!(contains(&manifest, &manifest, None), "{manifest}");
            assert!(!contains(&other, &manifest, None), "{manifest}");
        }
        let mut served = pod(json!({ "emptyDir": {} }));
        let manifest = served.clone();
        served["spec"]
            .as_object_mut()
            .unwrap()
            .remove("nodeSelector");
        served["spec"]["affinity"] = json!({ "podAffinity": {} });
        assert!(contains(&served, &manifest, None));
    }
}
