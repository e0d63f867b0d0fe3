//! Objects of which only a part is kept.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::marker::PhantomData;

use karmada_api::ClusterView;
use karmada_rules::cluster;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// An object of the kind `K` of which only `P` is kept, and what identifies it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored<K, P> {
    metadata: ObjectMeta,
    /// The part.
    pub(crate) part: P,
    kind: PhantomData<K>,
}

/// A cluster as text: what is written to it must be compared with what the server stores.
pub(crate) type StoredCluster = Stored<ClusterView, Text>;

/// A whole object as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(Box<str>);

/// The clusters of a binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets(pub(crate) BTreeSet<String>);

/// The mark of the system's namespaces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IsSystem(pub(crate) bool);

impl StoredCluster {
    /// Returns the object as the server stores it.
    pub(crate) fn value(&self) -> Value {
        // Made from a value: it parses.
        serde_json::from_str(&self.part.0).unwrap_or_default()
    }

    /// Returns the typed object.
    pub(crate) fn view(&self) -> ClusterView {
        // It was decoded once.
        serde_json::from_str(&self.part.0).unwrap_or_default()
    }
}

impl TryFrom<&Value> for Text {
    type Error = serde_json::Error;

    fn try_from(cluster: &Value) -> Result<Self, Self::Error> {
        ClusterView::deserialize(cluster)?;
        let mut cluster = cluster.clone();
        if let Some(Value::Object(metadata)) = cluster.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        Ok(Self(cluster.to_string().into()))
    }
}

impl From<&Value> for Targets {
    fn from(binding: &Value) -> Self {
        Self(cluster::targets(binding))
    }
}

impl From<&Value> for IsSystem {
    fn from(namespace: &Value) -> Self {
        let labels = namespace.pointer("/metadata/labels");
        Self(labels.is_some_and(|labels| labels[cluster::SYSTEM] == "true"))
    }
}

impl<'de, K, P> Deserialize<'de> for Stored<K, P>
where
    P: for<'a> TryFrom<&'a Value, Error: std::fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let metadata = ObjectMeta::deserialize(&object["metadata"]).map_err(de::Error::custom)?;
        Ok(Self {
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                deletion_timestamp: metadata.deletion_timestamp,
                ..ObjectMeta::default()
            },
            part: P::try_from(&object).map_err(de::Error::custom)?,
            kind: PhantomData,
        })
    }
}

impl<K: Resource<DynamicType = ()>, P> Resource for Stored<K, P> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
