//! The metadata of an object: of one that is typed, and of the JSON of any kind alike.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::Key;
use crate::kind::group;

/// The metadata of an object. A text is empty if it is absent or cannot be read.
pub trait Metadata {
    /// Returns the namespace; empty for a cluster-scoped object.
    fn namespace(&self) -> &str;
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the uid.
    fn uid(&self) -> &str;
    /// Returns the resource version.
    fn resource_version(&self) -> &str;
    /// Returns the generation; `None` for kinds without.
    fn generation(&self) -> Option<i64>;
    /// Returns the value of a label.
    fn label(&self, key: &str) -> Option<&str>;
    /// Returns the value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Returns `true` if the object is being deleted.
    fn is_deleting(&self) -> bool;
    /// Returns the owners.
    fn owners(&self) -> Vec<Owner<'_>>;
    /// Returns the finalizers.
    fn finalizers(&self) -> impl Iterator<Item = &str>;

    /// Returns the namespace and name.
    fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// Returns `true` if this is one of the finalizers.
    fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers().any(|one| one == name)
    }

    /// Returns the finalizers, and after them those of these that they lack; `None` if they lack none.
    fn with_finalizers(&self, names: &[&str]) -> Option<Vec<String>> {
        let names = names.iter().copied();
        let missing: Vec<_> = names.filter(|name| !self.has_finalizer(name)).collect();
        let all = self.finalizers().chain(missing.iter().copied());
        (!missing.is_empty()).then(|| all.map(str::to_owned).collect())
    }

    /// Returns the finalizers without these; `None` if they have none of these.
    fn without_finalizers(&self, names: &[&str]) -> Option<Vec<String>> {
        let rest = self.finalizers().filter(|one| !names.contains(one));
        let rest: Vec<_> = rest.map(str::to_owned).collect();
        (rest.len() < self.finalizers().count()).then_some(rest)
    }
}

impl Metadata for ObjectMeta {
    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }

    fn resource_version(&self) -> &str {
        self.resource_version.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn owners(&self) -> Vec<Owner<'_>> {
        let owners = self.owner_references.iter().flatten();
        let owners = owners.map(|owner| Owner {
            group: group(&owner.api_version),
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
        });
        owners.collect()
    }

    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.finalizers.iter().flatten().map(String::as_str)
    }
}

impl Metadata for Value {
    fn namespace(&self) -> &str {
        text(self, "namespace")
    }

    fn name(&self) -> &str {
        text(self, "name")
    }

    fn uid(&self) -> &str {
        text(self, "uid")
    }

    fn resource_version(&self) -> &str {
        text(self, "resourceVersion")
    }

    fn generation(&self) -> Option<i64> {
        field(self, "generation")?.as_i64()
    }

    fn label(&self, key: &str) -> Option<&str> {
        field(self, "labels")?.get(key)?.as_str()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        field(self, "annotations")?.get(key)?.as_str()
    }

    fn is_deleting(&self) -> bool {
        !text(self, "deletionTimestamp").is_empty()
    }

    fn owners(&self) -> Vec<Owner<'_>> {
        let owners = field(self, "ownerReferences").and_then(Self::as_array);
        let owners = owners.into_iter().flatten().map(|owner| {
            let [version, kind, name, uid] = ["apiVersion", "kind", "name", "uid"]
                .map(|field| owner[field].as_str().unwrap_or_default());
            let group = group(version);
            Owner {
                group,
                kind,
                name,
                uid,
            }
        });
        owners.collect()
    }

    fn finalizers(&self) -> impl Iterator<Item = &str> {
        let finalizers = field(self, "finalizers").and_then(Self::as_array);
        finalizers.into_iter().flatten().filter_map(Self::as_str)
    }
}

/// An owner of an object, with which it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The API group of its kind.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// The labels and annotations of an object that its last write had. All others are those of somebody else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The keys of the labels.
    pub labels: BTreeSet<String>,
    /// The keys of the annotations.
    pub annotations: BTreeSet<String>,
}

/// Returns a field of the metadata in the JSON of an object.
pub fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

/// Returns a map in the metadata of an object, such as `labels`, without the keys that are `ignored`.
pub fn but_for(object: &Value, name: &str, ignored: fn(&str) -> bool) -> Map<String, Value> {
    let map = field(object, name).and_then(Value::as_object);
    let own = map.into_iter().flatten().filter(|(key, _)| !ignored(key));
    own.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    let text = field(object, name).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Edits a map in the metadata, such as `labels`, which is made if it is not there.
pub fn edit(object: &mut Value, name: &str, edit: impl FnOnce(&mut Map<String, Value>)) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let mut metadata = taken(object, "metadata");
    let mut map = taken(&mut metadata, name);
    edit(&mut map);
    metadata.insert(name.to_owned(), Value::Object(map));
    object.insert("metadata".to_owned(), Value::Object(metadata));
}

/// Sets a field of the metadata, which are made if they are not there.
pub fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        let mut metadata = taken(object, "metadata");
        metadata.insert(name.to_owned(), value);
        object.insert("metadata".to_owned(), Value::Object(metadata));
    }
}

fn taken(object: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match object.remove(name) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Returns `true` if the metadata have all labels and annotations of `expected`, and maybe more.
pub fn has_marks(metadata: &ObjectMeta, expected: &ObjectMeta) -> bool {
    has_all(metadata.labels.as_ref(), expected.labels.as_ref())
        && has_all(metadata.annotations.as_ref(), expected.annotations.as_ref())
}

type Marks = BTreeMap<String, String>;

fn has_all(marks: Option<&Marks>, expected: Option<&Marks>) -> bool {
    let mut expected = expected.into_iter().flatten();
    expected.all(|(key, value)| marks.and_then(|marks| marks.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn object() -> Value {
        json!({ "metadata": {
            "namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7", "generation": 3,
            "labels": { "app": "web" }, "annotations": { "note": "x" },
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x", "y"],
        } })
    }

    /// Returns everything that the trait says.
    fn read(of: &impl Metadata) -> Value {
        let finalizers: Vec<_> = of.finalizers().collect();
        json!({
            "key": of.key().to_string(), "uid": of.uid(), "version": of.resource_version(),
            "generation": of.generation(), "app": of.label("app"), "tier": of.label("tier"),
            "note": of.annotation("note"), "deleting": of.is_deleting(), "finalizers": finalizers,
        })
    }

    #[test]
    fn typed_and_json_read_alike() {
        let typed: ObjectMeta = from_value(object()["metadata"].clone()).unwrap();
        assert_eq!(read(&object()), read(&typed));
        assert_eq!(read(&object())["key"], "shop/web");
        assert_eq!(read(&json!({})), read(&ObjectMeta::default()));
    }

    #[test]
    fn odd_metadata_reads_as_absent() {
        let nothing = ObjectMeta::default();
        for odd in [
            json!(null),
            json!([]),
            json!({ "metadata": 1 }),
            json!({ "metadata": { "name": {}, "uid": 7, "labels": [], "annotations": "x" } }),
            json!({ "metadata": { "finalizers": [7, null] } }),
            json!({ "metadata": { "generation": "3", "labels": { "app": 1 }, "deletionTimestamp": null } }),
        ] {
            assert_eq!(read(&odd), read(&nothing), "{odd}");
        }
    }

    /// The finalizers of others keep their order, and no list is written that would be the same.
    #[test]
    fn finalizers_of_others_stay() {
        for (present, with, without) in [
            (json!(null), json!(["a", "b"]), json!(null)),
            (json!(["x"]), json!(["x", "a", "b"]), json!(null)),
            (
                json!(["y", "b", "x"]),
                json!(["y", "b", "x", "a"]),
                json!(["y", "x"]),
            ),
            (json!(["b", "x", "a"]), json!(null), json!(["x"])),
            (json!(["a", "b"]), json!(null), json!([])),
        ] {
            let object = json!({ "metadata": { "finalizers": present } });
            let (ours, is_held) = (["a", "b"], !without.is_null());
            assert_eq!(json!(object.with_finalizers(&ours)), with, "{present}");
            assert_eq!(
                json!(object.without_finalizers(&ours)),
                without,
                "{present}"
            );
            assert_eq!(object.has_finalizer("b"), is_held, "{present}");
        }
    }

    #[test]
    fn edited_map_is_made() {
        for mut object in [json!({}), json!({ "metadata": { "labels": 7 } })] {
            edit(&mut object, "labels", |labels| {
                labels.insert("app".to_owned(), json!("web"));
            });
            assert_eq!(object.label("app"), Some("web"));
        }
        let mut none = json!(null);
        edit(&mut none, "labels", Map::clear);
        assert_eq!(none, json!(null));
    }
}
