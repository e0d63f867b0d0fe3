//! Objects of a known kind whose bodies are text.

use std::fmt::Debug;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use objects::resource::names_of;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::packed::Packed;

/// An object of the kind `K`, whose body is compressed text: with manifests in it parsed, it takes twenty times
/// the memory. `S` is the part that is asked for often.
#[derive(Debug)]
pub struct AsText<K, S> {
    metadata: ObjectMeta,
    /// The object without its metadata.
    text: Packed,
    /// The summary of the object.
    pub summary: S,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource + DeserializeOwned + Default, S> AsText<K, S> {
    /// Returns the object.
    pub fn object(&self) -> K {
        // It was decoded once.
        let mut object: K = self.text.read().unwrap_or_default();
        object.meta_mut().clone_from(&self.metadata);
        object
    }
}

impl<K, S: Clone> Clone for AsText<K, S> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            text: self.text.clone(),
            summary: self.summary.clone(),
            kind: PhantomData,
        }
    }
}

impl<K, S: Default> Default for AsText<K, S> {
    fn default() -> Self {
        Self {
            metadata: ObjectMeta::default(),
            text: Packed::from(&json!({})),
            summary: S::default(),
            kind: PhantomData,
        }
    }
}

impl<'de, K, S> Deserialize<'de> for AsText<K, S>
where
    K: Resource + DeserializeOwned,
    S: for<'a> From<&'a K>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not the part that `K` keeps: read again, it must be as unclear as it was.
        let mut value = Value::deserialize(deserializer)?;
        let metadata = value.get_mut("metadata");
        let metadata = metadata.map(|metadata| std::mem::replace(metadata, json!({})));
        let text = Packed::from(&value);
        if let Some(metadata) = metadata {
            value["metadata"] = metadata;
        }
        let mut object = K::deserialize(value).map_err(de::Error::custom)?;
        let summary = S::from(&object);
        Ok(Self {
            metadata: std::mem::take(object.meta_mut()),
            text,
            summary,
            kind: PhantomData,
        })
    }
}

impl<K, S> Serialize for AsText<K, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut object: Value = self.text.read().unwrap_or_default();
        object["metadata"] = json!(self.metadata);
        object.serialize(serializer)
    }
}

impl<K: Resource, S> Resource for AsText<K, S> {
    names_of!(K);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::Work;

    use super::*;

    /// The number of manifests.
    struct Count(usize);

    impl From<&Work> for Count {
        fn from(work: &Work) -> Self {
            Self(work.spec.workload.manifests.len())
        }
    }

    /// An object comes back as it was with the metadata of today.
    #[test]
    fn text_restores_the_object() {
        let object = json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": { "name": "web", "namespace": "karmada-es-m1", "labels": { "a": "b" } },
            "spec": { "workload": { "manifests": [{ "kind": "ConfigMap" }] } },
            "status": { "conditions": [{ "type": "Applied", "status": true }] },
        });
        let text = object.to_string();
        let work: Work = serde_json::from_str(&text).unwrap();
        let mut stored: AsText<Work, Count> = serde_json::from_str(&text).unwrap();
        assert_eq!(stored.summary.0, 1);
        assert_eq!(stored.object(), work);
        assert_eq!(json!(stored), object);
        stored.meta_mut().generation = Some(2);
        assert_eq!(stored.object().metadata.generation, Some(2));
    }
}
