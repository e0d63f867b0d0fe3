//! Objects of kinds that are known only at run time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicObject;
use objects::GroupVersionKind;
use objects::allocated::Allocated;
use objects::managed_fields::writers;
use objects::resource::names_of;
use objects::write::{ObjectRef, Write};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::packed::Packed;

/// An object whose body is compressed text: a twentieth of the memory of a parsed one. Of its managed fields it has the
/// names of the managers only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Untyped {
    metadata: ObjectMeta,
    text: Packed,
    /// True if the text has the kind.
    is_named: bool,
    writers: Box<[Box<str>]>,
    /// Of few objects: behind a pointer, it costs the others little.
    allocated: Option<Box<Allocated>>,
}

impl Untyped {
    /// Returns the whole object, with the metadata it was read with.
    pub fn value(&self) -> Value {
        // Made from a value: it parses.
        self.text.read().unwrap_or_default()
    }

    /// Returns the object as others wrote it, with the metadata it was read with: without the values that its API server allocated, but
    /// for the [node ports](Self::allocated_node_ports).
    pub fn template(&self) -> Value {
        let mut object = self.value();
        if let Some(allocated) = &self.allocated {
            allocated.remove_from(&mut object);
        }
        object
    }

    /// Returns the node ports that its API server has allocated to a Service.
    pub fn allocated_node_ports(&self) -> &[u16] {
        let allocated = self.allocated.as_ref();
        allocated.map_or(&[], |allocated| allocated.node_ports())
    }

    /// Returns the managers that wrote something of the object outside of metadata and status.
    pub fn writers(&self) -> impl Iterator<Item = &str> {
        self.writers.iter().map(|writer| &**writer)
    }

    /// Returns the object as a write has left it, which is `stored` now. The parts of others are as they were.
    pub(crate) fn written(&self, write: &Write, stored: &ObjectRef) -> Option<Self> {
        Some(Self {
            writers: self.writers.clone(),
            allocated: self.allocated.clone(),
            ..Self::from(write.applied(&self.value(), stored)?)
        })
    }

    /// Drops labels, annotations and owners from the metadata at hand: the [value](Self::value) has them.
    pub(crate) fn drop_labels(&mut self) {
        self.metadata.labels = None;
        self.metadata.annotations = None;
        self.metadata.owner_references = None;
    }

    /// Names the kind in an object that lacks it, as every element of a list of a built-in kind does.
    pub(crate) fn name_kind(&mut self, kind: &GroupVersionKind) {
        if self.is_named {
            return;
        }
        let mut value = self.value();
        if let Value::Object(object) = &mut value {
            object.insert("apiVersion".to_owned(), kind.api_version().into());
            object.insert("kind".to_owned(), kind.kind.clone().into());
            self.text = Packed::from(&value);
            self.is_named = true;
        }
    }
}

impl From<Value> for Untyped {
    /// Takes metadata of the object as far as they can be read.
    fn from(mut object: Value) -> Self {
        let writers = writers(&object).map(Into::into).collect();
        let allocated = Allocated::of(&object).map(Box::new);
        if let Some(Value::Object(fields)) = object.get_mut("metadata") {
            fields.remove("managedFields");
        }
        let metadata = object.get("metadata").map(ObjectMeta::deserialize);
        Self {
            metadata: metadata.and_then(Result::ok).unwrap_or_default(),
            text: Packed::from(&object),
            is_named: object.get("apiVersion").is_some(),
            writers,
            allocated,
        }
    }
}

impl<'de> Deserialize<'de> for Untyped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::Object(Map::deserialize(deserializer)?);
        if let Some(metadata) = object.get("metadata")
            && let Err(error) = ObjectMeta::deserialize(metadata)
        {
            return Err(de::Error::custom(error));
        }
        Ok(Self::from(object))
    }
}

impl Resource for Untyped {
    names_of!(DynamicObject);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::watch::Decoded;

    /// A body is kept without managed fields, but for the names of those who wrote more than metadata.
    #[test]
    fn managed_fields_are_dropped() {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" },
            "metadata": { "name": "map", "managedFields": [
                { "manager": "kubectl", "fieldsV1": { "f:data": { "f:a": {} } } },
                { "manager": "labeller", "fieldsV1": { "f:metadata": { "f:labels": {} } } },
            ] } });
        let Decoded::Valid(read) = serde_json::from_value::<Decoded<Untyped>>(object.clone())
            .or_else(|_| serde_json::from_str(&object.to_string()))
            .unwrap()
        else {
            panic!("unreadable");
        };
        assert_eq!(read.metadata.name.as_deref(), Some("map"));
        assert_eq!(read.metadata.managed_fields, None);
        assert_eq!(read.writers().collect::<Vec<_>>(), ["kubectl"]);
        let mut expected = object;
        expected["metadata"] = json!({ "name": "map" });
        assert_eq!(read.value(), expected);
    }

    /// Labels that are not at hand are where everything is.
    #[test]
    fn value_keeps_dropped_labels() {
        let object = json!({ "metadata": { "name": "map", "uid": "1", "labels": { "a": "b" },
            "annotations": { "c": "d" } } });
        let mut untyped = Untyped::from(object.clone());
        untyped.drop_labels();
        let metadata = ObjectMeta {
            name: Some("map".to_owned()),
            uid: Some("1".to_owned()),
            ..ObjectMeta::default()
        };
        assert_eq!(untyped.metadata, metadata);
        assert_eq!(untyped.value(), object);
    }

    /// An element of a list gets the kind that it lacks.
    #[test]
    fn listed_element_gets_kind() {
        let kind = GroupVersionKind::new("apps/v1", "Deployment");
        let bare = json!({ "metadata": { "name": "web" }, "spec": { "replicas": 1 } });
        let mut named = bare.clone();
        named["apiVersion"] = json!("apps/v1");
        named["kind"] = json!("Deployment");
        for object in [bare, named.clone()] {
            let mut untyped = Untyped::from(object);
            untyped.name_kind(&kind);
            assert_eq!(untyped.value(), named);
            assert_eq!(untyped.metadata.name.as_deref(), Some("web"));
        }
    }

    /// Metadata of a wrong type lose nothing else.
    #[test]
    fn bad_metadata_loses_nothing_else() {
        let object = json!({ "metadata": { "name": "map", "labels": 7 }, "data": { "a": "b" } });
        let read: Decoded<Untyped> = serde_json::from_str(&object.to_string()).unwrap();
        let Decoded::Valid(read) = read else {
            panic!("unreadable");
        };
        assert_eq!(read.metadata.name.as_deref(), Some("map"));
        assert_eq!(read.value()["data"]["a"], "b");
    }
}
