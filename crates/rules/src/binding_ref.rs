//! A binding of either scope.

use karmada_api::{
    ClusterResourceBinding, ResourceBinding, ResourceBindingSpec, ResourceBindingStatus, names,
};
use kube::core::ObjectMeta;
use objects::Key;

/// A `ResourceBinding`, or a `ClusterResourceBinding`, which is the one without a namespace.
#[derive(Clone, Copy, Debug)]
pub struct BindingRef<'a> {
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// The template and its clusters.
    pub spec: &'a ResourceBindingSpec,
    /// The state of scheduling and in the clusters.
    pub status: Option<&'a ResourceBindingStatus>,
}

impl<'a> From<&'a ResourceBinding> for BindingRef<'a> {
    fn from(binding: &'a ResourceBinding) -> Self {
        Self {
            metadata: &binding.metadata,
            spec: &binding.spec,
            status: binding.status.as_ref(),
        }
    }
}

impl<'a> From<&'a ClusterResourceBinding> for BindingRef<'a> {
    fn from(binding: &'a ClusterResourceBinding) -> Self {
        Self {
            metadata: &binding.metadata,
            spec: &binding.spec,
            status: binding.status.as_ref(),
        }
    }
}

impl<'a> BindingRef<'a> {
    /// Returns the key; its namespace is empty for a `ClusterResourceBinding`.
    pub fn key(&self) -> Key {
        Key::new(
            self.metadata.namespace.clone().unwrap_or_default(),
            self.metadata.name.clone().unwrap_or_default(),
        )
    }

    /// Returns the label that holds the ID, on the binding, its Works and their manifests.
    pub fn id_label(&self) -> &'static str {
        match self.metadata.namespace {
            Some(_) => names::BINDING_ID,
            None => names::CLUSTER_BINDING_ID,
        }
    }

    /// Returns the ID, without which there are no Works.
    pub fn id(&self) -> Option<&'a str> {
        let labels = self.metadata.labels.as_ref()?;
        labels.get(self.id_label()).map(String::as_str)
    }

    /// Returns the finalizer that keeps the binding until its Works are deleted.
    pub fn finalizer(&self) -> &'static str {
        match self.metadata.namespace {
            Some(_) => names::BINDING_FINALIZER,
            None => names::CLUSTER_BINDING_FINALIZER,
        }
    }

    /// Returns the annotations by which a Work and its manifest refer to the binding.
    pub fn reference(&self) -> Vec<(&'static str, &'a str)> {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        match self.metadata.namespace.as_deref() {
            Some(namespace) => vec![
                (names::BINDING_NAMESPACE, namespace),
                (names::BINDING_NAME, name),
            ],
            None => vec![(names::CLUSTER_BINDING_NAME, name)],
        }
    }
}
