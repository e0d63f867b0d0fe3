//! The difference between a manifest and its object.

mod contains;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

pub use contains::contains;
pub(crate) use contains::is_empty;

use crate::{Metadata, metadata};

/// Takes out of a body that was written all that the object lacks, and returns the paths: of fields that its cluster
/// does not know. Metadata and status aside.
pub fn take_left_out(body: &mut Value, object: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    if let Some(body) = body.as_object_mut() {
        body.retain(|name, part| {
            ["apiVersion", "kind", "metadata", "status"].contains(&&**name)
                || keep_known(part, object.get(name), name, &mut paths)
        });
    }
    paths
}

/// The most elements of a list that are looked at for one that is not in its place.
const SEARCHED: usize = 100;

/// Takes out of `part` all that `object` lacks, and returns `false` if that is all of it.
fn keep_known(
    part: &mut Value,
    object: Option<&Value>,
    path: &str,
    paths: &mut Vec<String>,
) -> bool {
    match (part, object) {
        // Many kinds drop a value that is the same as none.
        (part, None | Some(Value::Null)) if is_empty(part) || is_zero(part) => true,
        (_, None | Some(Value::Null)) => {
            paths.push(path.to_owned());
            false
        }
        (Value::Object(part), Some(Value::Object(object))) => {
            part.retain(|name, part| {
                keep_known(part, object.get(name), &format!("{path}.{name}"), paths)
            });
            true
        }
        (Value::Array(part), Some(Value::Array(object))) => {
            for (index, part) in part.iter_mut().enumerate() {
                let name = part.get("name");
                let named = object
                    .iter()
                    .find(|other| name.is_some() && other.get("name") == name);
                // An API may put elements into another order, and a webhook may add some before them.
                let at_index = object.get(index);
                let mut candidates = at_index.into_iter().chain(object.iter().take(SEARCHED));
                let found = named.or_else(|| candidates.find(|other| has_all(other, part)));
                if let Some(found) = found.or(at_index) {
                    keep_known(part, Some(found), &format!("{path}[{index}]"), paths);
                }
            }
            true
        }
        _ => true,
    }
}

/// Returns `true` if an object lacks nothing of `part`. Within lists it does not look: each element would be compared
/// with each.
fn has_all(object: &Value, part: &Value) -> bool {
    match (part, object) {
        (Value::Object(part), Value::Object(object)) => part.iter().all(|(name, part)| {
            let object = object.get(name).filter(|object| !object.is_null());
            match object {
                Some(object) => has_all(object, part),
                None => is_empty(part) || is_zero(part),
            }
        }),
        _ => true,
    }
}

/// Returns `true` for the value of a field that was never set.
fn is_zero(value: &Value) -> bool {
    *value == Value::Bool(false) || *value == "" || value.as_f64() == Some(0.0)
}

/// The part of an object that has to change before it is compared with its manifest again.
///
/// A webhook or a default of the cluster may keep an object from ever being equal to its manifest: after a
/// apply, only a further change counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    identity: u64,
    metadata: u64,
    /// Absent for kinds without.
    generation: Option<i64>,
    content: u64,
}

impl Settled {
    /// Returns the state of an object as it is now.
    pub fn of(object: &Value) -> Self {
        Self::but_for(object, |_| false)
    }

    /// Returns the state of an object as it is now, but for labels and annotations with these keys.
    pub fn but_for(object: &Value, ignores: impl Fn(&str) -> bool) -> Self {
        let mut identity = DefaultHasher::new();
        (object.uid(), object.is_deleting()).hash(&mut identity);
        let mut metadata = DefaultHasher::new();
        for part in ["labels", "annotations"] {
            part.hash(&mut metadata);
            let map = metadata::field(object, part).and_then(Value::as_object);
            for (key, value) in map.into_iter().flatten().filter(|(key, _)| !ignores(key)) {
                key.hash(&mut metadata);
                hash(value, &mut metadata);
            }
        }
        let mut content = DefaultHasher::new();
        for (name, part) in object.as_object().into_iter().flatten() {
            if !["metadata", "status"].contains(&&**name) {
                name.hash(&mut content);
                hash(part, &mut content);
            }
        }
        Self {
            identity: identity.finish(),
            metadata: metadata.finish(),
            generation: object.generation().filter(|generation| *generation > 0),
            content: content.finish(),
        }
    }

    /// Returns `true` if nothing counts that has changed from one state to the other.
    pub fn is_as(self, other: Self) -> bool {
        self.metadata == other.metadata && self.has_content_of(other)
    }

    /// Returns `true` if at most labels and annotations have changed from one state to the other.
    pub fn has_content_of(self, other: Self) -> bool {
        // A new default changes the content alone, and an annotation the generation of some kinds.
        let has_same = self.generation.is_some() && self.generation == other.generation
            || self.content == other.content;
        self.identity == other.identity && has_same
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn settings() -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "greeting": "hello" },
            "metadata": { "name": "settings", "uid": "u", "labels": { "app": "web" } } })
    }

    /// Case P96: an element without a name is one that the object has somewhere, in whatever order an API keeps them.
    #[test]
    fn moved_elements_are_known() {
        let [memory, external] =
            ["memory", "external"].map(|of| json!({ "type": "x", of: { "name": "y" } }));
        let object = json!({ "spec": { "metrics": [external, memory] } });
        let mut body = json!({ "spec": { "metrics": [memory, external] } });
        assert_eq!(take_left_out(&mut body, &object), [""; 0]);
        let mut body = json!({ "spec": { "metrics": [memory, { "type": "x", "newer": 1 }] } });
        assert_eq!(take_left_out(&mut body, &object), ["spec.metrics[1].newer"]);
        let left = json!({ "spec": { "metrics": [memory, { "type": "x" }] } });
        assert_eq!(body, left);
    }

    /// A kind with a generation shows each edit in it; of any other kind the content is compared.
    #[test]
    fn change_of_content_unsettles() {
        let mut deployment = settings();
        deployment["metadata"]["generation"] = json!(1);
        deployment["metadata"]["annotations"] = json!({ "by": "us" });
        let settled = Settled::of(&deployment);
        let mut reported = deployment.clone();
        reported["status"] = json!({ "replicas": 1 });
        reported["metadata"]["resourceVersion"] = json!("9");
        assert_eq!(Settled::of(&reported), settled);
        for (pointer, value) in [
            ("/metadata/generation", json!(2)),
            ("/metadata/uid", json!("other")),
            ("/metadata/labels/app", json!("other")),
            ("/metadata/annotations/by", json!("other")),
        ] {
            let mut changed = deployment.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_ne!(Settled::of(&changed), settled, "{pointer}");
        }
        let states = |change: fn(&mut Value)| {
            let mut changed = deployment.clone();
            change(&mut changed);
            let changed = Settled::of(&changed);
            (changed.is_as(settled), changed.has_content_of(settled))
        };
        assert_eq!(
            states(|o| o["metadata"]["uid"] = json!("x")),
            (false, false)
        );
        assert_eq!(
            states(|o| o["metadata"]["generation"] = json!(2)),
            (true, true)
        );
        assert_eq!(
            states(|o| o["data"] = json!({ "a": "default" })),
            (true, true)
        );
        assert_eq!(
            states(|o| o["metadata"]["labels"] = json!({})),
            (false, true)
        );
        let edited = states(|o| {
            o["metadata"]["generation"] = json!(2);
            o["data"] = json!({});
        });
        assert_eq!(edited, (false, false));
        let settled = Settled::of(&settings());
        let mut changed = settings();
        changed["data"]["greeting"] = json!("hallo");
        assert_ne!(Settled::of(&changed), settled);
    }

    fn json_values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            "[a-c]".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop_oneof![
                Just("metadata".to_owned()),
                Just("spec".to_owned()),
                "[fkv]:[a-c{]"
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// An object has all of itself, and lacks a field that was added to it.
        #[test]
        fn object_contains_itself(object in json_values(), name in "[a-c]") {
            prop_assert!(contains(&object, &object, None));
            prop_assert_eq!(Settled::of(&object), Settled::of(&object));
            let mut more = object.clone();
            if let Some(map) = more.as_object_mut() {
                // No generated field has such a name.
                map.insert(name, json!("more"));
                prop_assert!(contains(&more, &object, None));
                prop_assert!(!contains(&object, &more, None));
            }
        }
    }
}
