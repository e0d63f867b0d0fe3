//! Objects of which one that cannot be read does not hide the others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use objects::resource::names_of;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An object from the API server, decoded as far as possible.
///
/// Like kube's `DeserializeGuard` it keeps one unexpected object from ending a whole watch. It drops
/// `managedFields`, which are most of an object's memory; [`RawObject::decode`] keeps them.
#[derive(Clone, Debug)]
pub enum Decoded<K> {
    /// The object.
    Valid(K),
    /// An object whose shape differs from the type `K`.
    Invalid {
        /// The object's metadata.
        metadata: Box<ObjectMeta>,
        /// The error of the decoder.
        error: String,
    },
}

impl<K: Resource> Decoded<K> {
    /// Returns the object's metadata, which decode even if the rest does not.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Valid(object) => object.meta(),
            Self::Invalid { metadata, .. } => metadata,
        }
    }

    fn without_managed_fields(mut self) -> Self {
        self.meta_mut().managed_fields = None;
        self
    }
}

impl<K> Decoded<K> {
    /// Returns the result of `make` for an object that decodes.
    pub fn map<T>(self, make: impl FnOnce(K) -> T) -> Decoded<T> {
        match self {
            Self::Valid(object) => Decoded::Valid(make(object)),
            Self::Invalid { metadata, error } => Decoded::Invalid { metadata, error },
        }
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Decoded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The raw text, because a failed attempt consumes the deserializer.
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(decode(raw.get()).without_managed_fields())
    }
}

impl<K: Resource + DeserializeOwned> From<RawObject> for Decoded<K> {
    fn from(object: RawObject) -> Self {
        object.decode().without_managed_fields()
    }
}

/// An object as the API server sent it, of which nothing is read but its version. Watches are of such objects, so that
/// they are compiled once, and not for each kind.
#[derive(Clone, Debug)]
pub struct RawObject {
    /// Without anything but the version.
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

impl RawObject {
    /// Decodes the object as far as possible, with its managed fields.
    pub fn decode<K: Resource + DeserializeOwned>(&self) -> Decoded<K> {
        decode(self.text.get())
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata<'a> {
            #[serde(borrow)]
            resource_version: Cow<'a, str>,
        }

        let text = Box::<RawValue>::deserialize(deserializer)?;
        let object = serde_json::from_str::<Object<'_>>(text.get());
        let metadata = ObjectMeta {
            resource_version: object
                .ok()
                .map(|object| object.metadata.resource_version.into()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, text })
    }
}

/// The type of a [`RawObject`] is the path of its collection, such as `/api/v1/namespaces/shop/configmaps`.
impl Resource for RawObject {
    type DynamicType = String;
    type Scope = DynamicResourceScope;

    fn kind(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn url_path(collection: &String, _: Option<&str>) -> String {
        collection.clone()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Decodes an object. A response has many objects: none of them may make the others unreadable.
fn decode<K: Resource + DeserializeOwned>(text: &str) -> Decoded<K> {
    let decoded = match serde_json::from_str::<K>(text) {
        Ok(object) => Decoded::Valid(object),
        Err(error) => without_bad_metadata(text, &error),
    };
    match decoded {
        Decoded::Valid(object) if object.meta().name.is_none() => Decoded::Invalid {
            metadata: Box::new(object.meta().clone()),
            error: "an object without a name".to_owned(),
        },
        decoded => decoded,
    }
}

/// The metadata that decide: without them the object may be another, or not be gone.
const DECISIVE: [&str; 3] = ["name", "namespace", "deletionTimestamp"];

/// Decodes an object that failed to decode with `error` without those of its metadata that are of a
/// wrong type.
fn without_bad_metadata<K: Resource + DeserializeOwned>(
    text: &str,
    error: &serde_json::Error,
) -> Decoded<K> {
    let mut texts = field_texts(text);
    let metadata = texts.remove("metadata").map_or("", RawValue::get);
    let (mut object, unread) = parsed(texts);
    let is_whole = unread.is_empty();
    let (mut fields, unread) = parsed(field_texts(metadata));
    let mut decides = !unread.iter().any(|name| DECISIVE.contains(&&**name));
    fields.retain(|name, value| {
        match (&**name, &mut *value) {
            ("labels" | "annotations", Value::Object(texts)) => {
                texts.retain(|_, text| text.is_string());
            }
            ("finalizers", Value::Array(texts)) => texts.retain(Value::is_string),
            _ => {}
        }
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        let reads = ObjectMeta::deserialize(Value::Object(alone)).is_ok();
        decides &= reads || !DECISIVE.contains(&&**name);
        reads
    });
    let metadata = ObjectMeta::deserialize(Value::Object(fields.clone())).unwrap_or_default();
    object.insert("metadata".to_owned(), Value::Object(fields));
    // As text once more: a second way of decoding would be compiled for each kind.
    match serde_json::from_str(&Value::Object(object).to_string()) {
        Ok(object) if decides && is_whole => Decoded::Valid(object),
        _ => Decoded::Invalid {
            metadata: Box::new(metadata),
            error: error.to_string(),
        },
    }
}

/// Returns the texts of the fields of an object; none if it is no object. A text may have any number of levels.
fn field_texts(object: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(object).unwrap_or_default()
}

/// Returns the fields, and the names of those that cannot be read: the parser takes 128 levels, and the object is one.
fn parsed(texts: BTreeMap<String, &RawValue>) -> (Map<String, Value>, Vec<String>) {
    let (mut read, mut unread) = (Map::new(), Vec::new());
    for (name, text) in texts {
        match serde_json::from_str::<[Value; 1]>(&format!("[{text}]")) {
            Ok([value]) => {
                read.insert(name, value);
            }
            Err(_) => unread.push(name),
        }
    }
    (read, unread)
}

impl<K: Resource> Resource for Decoded<K> {
    names_of!(K);

    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Valid(object) => object.meta_mut(),
            Self::Invalid { metadata, .. } => metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;

    /// An invalid object keeps its metadata.
    #[test]
    fn invalid_object_keeps_metadata() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": 7}).to_string();
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&text).unwrap();
        assert!(
            matches!(&decoded, Decoded::Invalid { error, .. } if error.contains("invalid type"))
        );
        assert_eq!(decoded.metadata().name.as_deref(), Some("a"));
        assert_eq!(decoded.metadata().managed_fields, None);
    }

    /// An object of too many levels is known by its name: its earlier version stays in effect, and its end is seen. Where
    /// its managed fields have them, it is read.
    #[test]
    fn deep_object_keeps_metadata() {
        let deep = format!("{}7{}", "[".repeat(200), "]".repeat(200));
        let spec =
            format!(r#"{{ "metadata": {{ "name": "a", "namespace": "b" }}, "spec": {deep} }}"#);
        let decoded: Decoded<DynamicObject> = serde_json::from_str(&spec).unwrap();
        assert!(matches!(decoded, Decoded::Invalid { .. }), "{decoded:?}");
        let metadata = decoded.metadata();
        assert_eq!(metadata.name.as_deref(), Some("a"));
        assert_eq!(metadata.namespace.as_deref(), Some("b"));
        let fields = format!(
            r#"{{ "metadata": {{ "name": "a", "managedFields": {deep} }}, "data": {{ "k": "v" }} }}"#
        );
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&fields).unwrap();
        let Decoded::Valid(map) = decoded else {
            panic!("{decoded:?}");
        };
        assert_eq!(map.data.unwrap()["k"], "v");
        let namespace = format!(r#"{{ "metadata": {{ "name": "a", "namespace": {deep} }} }}"#);
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&namespace).unwrap();
        assert!(matches!(decoded, Decoded::Invalid { .. }), "{decoded:?}");
    }

    /// Metadata of a wrong type lose nothing else.
    #[test]
    fn bad_metadata_loses_nothing_else() {
        let good = json!({ "name": "a", "labels": { "a": "b" }, "resourceVersion": "7" });
        let odd = [
            json!(7),
            json!("x"),
            json!([7]),
            json!({ "x": 7 }),
            json!(true),
        ];
        for field in [
            "labels",
            "annotations",
            "finalizers",
            "creationTimestamp",
            "generation",
            "managedFields",
            "ownerReferences",
            "uid",
        ] {
            for value in &odd {
                let mut metadata = good.clone();
                metadata[field] = value.clone();
                let text = json!({ "metadata": metadata, "data": { "k": "v" } }).to_string();
                let decoded: Decoded<ConfigMap> = serde_json::from_str(&text).unwrap();
                let Decoded::Valid(map) = decoded else {
                    panic!("{text}: {decoded:?}");
                };
                assert_eq!(map.metadata.name.as_deref(), Some("a"), "{text}");
                assert_eq!(map.data.unwrap()["k"], "v");
            }
        }
        let labels = json!({ "metadata": { "name": "a", "labels": { "a": "b", "c": 7 } } });
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&labels.to_string()).unwrap();
        let read = decoded.metadata().labels.as_ref().unwrap();
        assert_eq!(
            read.iter().collect::<Vec<_>>(),
            [(&"a".to_owned(), &"b".to_owned())]
        );
    }

    /// An object without its identity or its end is invalid and spares the others.
    #[test]
    fn nameless_object_spares_others() {
        for metadata in [
            json!(null),
            json!(7),
            json!({}),
            json!({ "name": 7 }),
            json!({ "name": "b", "namespace": 7 }),
            json!({ "name": "b", "deletionTimestamp": 7 }),
        ] {
            let list = json!([{ "metadata": metadata }, { "metadata": { "name": "a" } }, 7]);
            let list: Vec<Decoded<ConfigMap>> = serde_json::from_str(&list.to_string()).unwrap();
            assert!(
                matches!(
                    &*list,
                    [
                        Decoded::Invalid { .. },
                        Decoded::Valid(_),
                        Decoded::Invalid { .. }
                    ]
                ),
                "{list:?}"
            );
        }
    }

    /// A valid object loses only its managed fields; decoded from what was sent, it keeps them.
    #[test]
    fn valid_object_loses_managed_fields() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": {"k": "v"}})
            .to_string();
        let raw: RawObject = serde_json::from_str(&text).unwrap();
        let decoded: [(Decoded<ConfigMap>, _); 3] = [
            (serde_json::from_str(&text).unwrap(), None),
            (raw.decode(), Some(1)),
            (raw.into(), None),
        ];
        for (decoded, kept) in decoded {
            let Decoded::Valid(map) = decoded else {
                panic!("{decoded:?}");
            };
            assert_eq!(map.metadata.managed_fields.as_ref().map(Vec::len), kept);
            assert_eq!(map.data.unwrap()["k"], "v");
        }
    }
}
