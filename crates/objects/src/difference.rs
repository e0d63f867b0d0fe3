//! The differences between an object and its manifest, field by field.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::drift::is_empty;
use crate::managed_fields::{Element, element};

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field, as a JSON pointer (RFC 6901).
    pub path: String,
    /// Its value in the object; absent where that has none.
    pub found: Option<Value>,
    /// The value that is wanted; absent where none is.
    pub wanted: Option<Value>,
}

/// Returns the differences between two versions of an object, each as the API serves it. `fields` are [all that are
/// managed](crate::managed_fields::all_fields): they tell by which keys the elements of a list are known. Null if nobody
/// knows; then by their places. An element that is not found is at the end of those that are.
pub fn differences(found: &Value, wanted: &Value, fields: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(
        (Some(found), Some(wanted)),
        fields,
        &Path::default(),
        &mut differences,
    );
    differences
}

/// Returns the managed fields that an object has besides its manifest: the defaults of its cluster are not among
/// that. `fields` are [all that are managed](crate::managed_fields::all_fields), and null if nobody knows.
pub fn additions(object: &Value, manifest: &Value, fields: &Value) -> Vec<Difference> {
    let managed = match fields {
        Value::Null => Managed::All,
        fields => Managed::These(fields),
    };
    let mut additions = Vec::new();
    add(object, manifest, managed, &Path::default(), &mut additions);
    additions
}

/// Returns an object with the fields of a manifest, as far as one can tell without its cluster. `fields` are as for
/// [`differences`].
pub fn overlaid(object: &Value, manifest: &Value, fields: &Value) -> Value {
    match (object, manifest) {
        (object, Value::Null) => object.clone(),
        (Value::Object(object), Value::Object(manifest)) => {
            let mut all = object.clone();
            for (name, part) in manifest {
                let found = object.get(name).unwrap_or(&Value::Null);
                let part = overlaid(found, part, field(fields, name));
                all.insert(name.clone(), part);
            }
            Value::Object(all)
        }
        (Value::Array(object), Value::Array(manifest)) => {
            let is_merged = keys(fields).is_some();
            let pairs = pairs(object, manifest, fields).into_iter();
            let elements = pairs.filter_map(|pair| match pair {
                (Some(found), Some(part)) => {
                    Some(overlaid(found, part, element_fields(fields, found)))
                }
                (Some(found), None) => is_merged.then(|| found.clone()),
                (None, part) => part.cloned(),
            });
            elements.collect()
        }
        (_, manifest) => manifest.clone(),
    }
}

/// Returns those of the fields that are of a part.
fn field<'f>(fields: &'f Value, name: &str) -> &'f Value {
    fields.get(format!("f:{name}")).unwrap_or(&Value::Null)
}

/// Returns those of the fields of a list that are of an element.
fn element_fields<'f>(fields: &'f Value, value: &Value) -> &'f Value {
    element_of(fields, value).map_or(&Value::Null, |(_, fields)| fields)
}

/// Returns the element that a value is in a list that merges by keys, with its fields.
fn element_of<'f>(fields: &'f Value, value: &Value) -> Option<(Element, &'f Value)> {
    let mut elements = elements(fields);
    elements.find(|(element, _)| element.is(value))
}

fn elements(fields: &Value) -> impl Iterator<Item = (Element, &Value)> {
    let all = fields.as_object().into_iter().flatten();
    all.filter_map(|(key, fields)| Some((element(key)?, fields)))
}

/// Returns the names of the keys by which the elements of a list are merged, none if by their values; `None` if they are
/// not.
fn keys(fields: &Value) -> Option<Vec<String>> {
    let (element, _) = elements(fields).next()?;
    Some(match element {
        Element::Keys(keys) => keys.into_iter().map(|(name, _)| name).collect(),
        Element::Equal(_) => Vec::new(),
    })
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// Returns the elements of two lists, each with its counterpart in the other. Those of the first come first, in their order.
fn pairs<'a>(found: &'a [Value], wanted: &'a [Value], fields: &Value) -> Vec<Pair<'a>> {
    let Some(keys) = keys(fields) else {
        let places = 0..found.len().max(wanted.len());
        return places
            .map(|place| (found.get(place), wanted.get(place)))
            .collect();
    };
    let mut left: Vec<_> = wanted.iter().collect();
    let mut pairs = Vec::new();
    for one in found {
        let place = left.iter().position(|other| is_same(one, other, &keys));
        pairs.push((Some(one), place.map(|place| left.remove(place))));
    }
    pairs.extend(left.into_iter().map(|other| (None, Some(other))));
    pairs
}

/// Returns `true` if two elements of a list have the same keys, or are equal where none has any.
fn is_same(one: &Value, other: &Value, keys: &[String]) -> bool {
    if keys.is_empty() {
        return one == other;
    }
    // A key that one lacks has its default, which nobody but the API server knows.
    keys.iter().all(|key| match (one.get(key), other.get(key)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    })
}

/// A JSON pointer.
#[derive(Clone, Debug, Default)]
struct Path(String);

impl Path {
    fn to(&self, part: &str) -> Self {
        let part = part.replace('~', "~0").replace('/', "~1");
        Self(format!("{}/{part}", self.0))
    }

    fn differs(&self, found: Option<&Value>, wanted: Option<&Value>) -> Difference {
        Difference {
            path: self.0.clone(),
            found: found.cloned(),
            wanted: wanted.cloned(),
        }
    }
}

fn compare(
    (found, wanted): Pair<'_>,
    fields: &Value,
    path: &Path,
    differences: &mut Vec<Difference>,
) {
    let [found, wanted] = [found, wanted].map(|value| value.filter(|value| !value.is_null()));
    match (found, wanted) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for name in names {
                let (pair, fields) = ((old.get(name), new.get(name)), field(fields, name));
                compare(pair, fields, &path.to(name), differences);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for (place, pair) in pairs(old, new, fields).into_iter().enumerate() {
                let path = path.to(&place.to_string());
                let known = pair.0.or(pair.1).unwrap_or(&Value::Null);
                compare(pair, element_fields(fields, known), &path, differences);
            }
        }
        (Some(Value::Number(old)), Some(Value::Number(new)))
            if old == new || old.as_f64() == new.as_f64() => {}
        (found, wanted) if found == wanted => {}
        (found, wanted) => differences.push(path.differs(found, wanted)),
    }
}

/// The fields of a part of an object that somebody manages.
#[derive(Clone, Copy)]
enum Managed<'a> {
    All,
    These(&'a Value),
}

impl<'a> Managed<'a> {
    /// Returns those of the part that a key of `FieldsV1` names, if it is managed.
    fn of(self, key: &str) -> Option<Self> {
        match self {
            Self::All => Some(Self::All),
            Self::These(fields) if fields.as_object().is_some_and(Map::is_empty) => Some(Self::All),
            Self::These(fields) => fields.get(key).map(Self::These),
        }
    }

    /// Returns the element of a list that merges by keys, with the fields that are managed of it.
    fn element(self, value: &Value) -> Option<(Element, &'a Value)> {
        let Self::These(fields) = self else {
            return None;
        };
        element_of(fields, value)
    }

    /// Returns `true` if no part of the value is managed apart from the whole.
    fn is_whole(self) -> bool {
        match self {
            Self::All => true,
            Self::These(fields) => {
                let keys = fields.as_object().into_iter().flatten();
                keys.map(|(key, _)| key).all(|key| key == ".")
            }
        }
    }
}

fn add(
    object: &Value,
    manifest: &Value,
    managed: Managed<'_>,
    path: &Path,
    additions: &mut Vec<Difference>,
) {
    match (object, manifest) {
        (Value::Object(object), manifest) if manifest.is_object() || !managed.is_whole() => {
            for (name, value) in object {
                let part = manifest.get(name).unwrap_or(&Value::Null);
                if let Some(managed) = managed.of(&format!("f:{name}")) {
                    add(value, part, managed, &path.to(name), additions);
                }
            }
        }
        (Value::Array(object), manifest) if manifest.is_array() || !managed.is_whole() => {
            let wanted = manifest.as_array().map_or(&[][..], Vec::as_slice);
            for (place, value) in object.iter().enumerate() {
                let path = path.to(&place.to_string());
                if let Some((element, fields)) = managed.element(value) {
                    let part = wanted.iter().find(|part| element.is(part));
                    let part = part.unwrap_or(&Value::Null);
                    add(value, part, Managed::These(fields), &path, additions);
                } else if managed.is_whole() {
                    let part = wanted.get(place).unwrap_or(&Value::Null);
                    add(value, part, Managed::All, &path, additions);
                }
            }
        }
        (object, Value::Null) if !is_empty(object) => {
            additions.push(path.differs(Some(object), None));
        }
        // Other values of the same field are no additions.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(differences: &[Difference]) -> Vec<Value> {
        let told = differences
            .iter()
            .map(|one| json!([one.path, one.found, one.wanted]));
        told.collect()
    }

    #[test]
    fn fields_differ_by_path() {
        for (found, wanted, expected) in [
            (json!({ "a": 1 }), json!({ "a": 1.0, "b": null }), json!([])),
            (
                json!({ "a": { "b/c~": "x" } }),
                json!({ "a": { "b/c~": "y" } }),
                json!([["/a/b~1c~0", "x", "y"]]),
            ),
            (
                json!({ "a": { "b": 1 } }),
                json!({ "c": [1] }),
                json!([["/a", { "b": 1 }, null], ["/c", null, [1]]]),
            ),
            (
                json!({ "a": [1, { "b": 2 }] }),
                json!({ "a": [1, { "b": 3 }, 4] }),
                json!([["/a/1/b", 2, 3], ["/a/2", null, 4]]),
            ),
            (
                json!({ "a": [] }),
                json!({ "a": {} }),
                json!([["/a", [], {}]]),
            ),
        ] {
            let differences = differences(&found, &wanted, &Value::Null);
            assert_eq!(json!(told(&differences)), expected, "{found} {wanted}");
        }
    }

    /// A container that comes before ours, and one that is missing, leave ours the same; of a set only the values count. In a
    /// list that nobody merges the places do.
    #[test]
    fn elements_are_paired_by_keys() {
        let [found, wanted] = [["side", "a"], ["a", "new"]].map(
            |names| json!({ "list": names.map(|name| json!({ "name": name, "image": name })) }),
        );
        let keyed = json!({ "f:list": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {} } } });
        let by_place = [
            "/list/0/image",
            "/list/0/name",
            "/list/1/image",
            "/list/1/name",
        ];
        for (fields, expected) in [
            (keyed, &["/list/0", "/list/2"][..]),
            (Value::Null, &by_place[..]),
        ] {
            let differences = differences(&found, &wanted, &fields);
            let paths: Vec<_> = differences.iter().map(|one| &*one.path).collect();
            assert_eq!(paths, expected);
        }
        let set = json!({ "f:list": { "v:\"a\"": {} } });
        let (found, wanted) = (json!({ "list": ["x", "a"] }), json!({ "list": ["a", "y"] }));
        let expected = json!([["/list/0", "x", null], ["/list/2", null, "y"]]);
        let differences = differences(&found, &wanted, &set);
        assert_eq!(json!(told(&differences)), expected);
    }

    /// A field that cannot be changed is all that differs from an object of the manifest, whatever the
    /// cluster has filled in around it.
    #[test]
    fn defaults_survive_an_overlay() {
        let ports =
            [1, 2].map(|port| json!({ "port": port, "protocol": "TCP", "targetPort": port }));
        let object = json!({ "type": "a", "args": ["x", "y"], "ports": ports });
        let manifest =
            json!({ "type": "b", "args": ["x"], "ports": [{ "port": 2 }], "none": null });
        let fields = json!({ "f:ports": { "k:{\"port\":1,\"protocol\":\"TCP\"}": {} } });
        let expected = json!({ "type": "b", "args": ["x"], "ports": ports, "none": null });
        assert_eq!(overlaid(&object, &manifest, &fields), expected);
    }

    /// Somebody adds a label and a container; the fields that the cluster has filled in, in it too, are nobody's.
    #[test]
    fn defaults_are_no_additions() {
        let main = json!({ "name": "main", "image": "a", "imagePullPolicy": "Always" });
        let side = json!({ "name": "side", "image": "b", "imagePullPolicy": "Always" });
        let object = json!({ "labels": { "ours": "1", "theirs": "2" }, "grace": 30,
            "containers": [side, main], "args": ["x"] });
        let manifest = json!({ "labels": { "ours": "1" },
            "containers": [{ "name": "main", "image": "a" }] });
        let fields = json!({ "f:labels": { ".": {}, "f:ours": {}, "f:theirs": {} }, "f:args": {},
            "f:containers": { "k:{\"name\":\"main\"}": { ".": {}, "f:image": {} },
                "k:{\"name\":\"side\"}": { ".": {}, "f:name": {}, "f:image": {} } } });
        let expected = json!([
            ["/args", ["x"], null],
            ["/containers/0/image", "b", null],
            ["/containers/0/name", "side", null],
            ["/labels/theirs", "2", null],
        ]);
        let mut found = told(&additions(&object, &manifest, &fields));
        found.sort_by_key(|one| one[0].to_string());
        assert_eq!(json!(found), expected);
        // Where nobody knows who manages a field, all of them count.
        let all = additions(&object, &manifest, &Value::Null);
        assert!(all.iter().any(|one| one.path == "/grace"), "{all:?}");
    }
}
