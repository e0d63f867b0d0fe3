//! The parts of objects that are kept.

use std::collections::BTreeSet;

use karmada_api::ClusterView;
use karmada_runtime::partial::Partial;
use propagation_rules::cluster;
use serde::Deserialize;
use serde_json::Value;

/// A cluster as text: its writes must be compared with the version that the server stores.
pub(crate) type StoredCluster = Partial<ClusterView, Text>;

/// A whole object as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(Box<str>);

/// The clusters of a binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets(pub(crate) BTreeSet<String>);

/// The mark of the system's namespaces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IsSystem(pub(crate) bool);

impl Text {
    /// Returns the object as the server stores it.
    pub(crate) fn value(&self) -> Value {
        // Made from a value: it parses.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns the typed object.
    pub(crate) fn view(&self) -> ClusterView {
        // It was decoded once.
        serde_json::from_str(&self.0).unwrap_or_default()
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
