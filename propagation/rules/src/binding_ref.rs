//! A binding of either scope.

use karmada_api::condition::TRUE;
use karmada_api::{
    AggregatedStatusItem, ClusterResourceBinding, Condition, Placement, ResourceBinding,
    ResourceBindingSpec, ResourceBindingStatus, TargetCluster, names,
};
use kube::core::ObjectMeta;
use objects::condition::find;
use objects::write::ObjectRef;
use objects::{Key, Metadata};
use serde::Deserialize;

/// The condition of a binding: True once its clusters have been chosen.
pub const SCHEDULED: &str = "Scheduled";

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

/// Returns the binding `key` as an object of the API, whatever it is now.
pub fn named(key: Key) -> ObjectRef {
    if key.namespace.is_empty() {
        ObjectRef::named::<ClusterResourceBinding>(key, &())
    } else {
        ObjectRef::named::<ResourceBinding>(key, &())
    }
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

    /// Returns the binding as an object of the API.
    pub fn object(&self) -> ObjectRef {
        let metadata = self.metadata;
        ObjectRef {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            generation: metadata.generation,
            ..named(self.key())
        }
    }

    /// Returns `true` if it is the binding of the object, in whichever version. One in another namespace is not:
    /// whoever may write there says nothing about the object.
    pub fn is_of(&self, group: &str, kind: &str, object: &Key) -> bool {
        let resource = &self.spec.resource;
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        own == object.namespace
            && resource.namespace.as_deref().unwrap_or_default() == own
            && resource.name == object.name
            && resource.kind == kind
            && objects::group(&resource.api_version) == group
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
        self.metadata.label(self.id_label())
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

    /// Returns the placement, and `None` if there is none or it cannot be read.
    pub(crate) fn placement(&self) -> Option<Placement> {
        Placement::deserialize(self.spec.placement.as_ref()?).ok()
    }

    /// Iterates over the clusters to which the template was scheduled.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &'a TargetCluster> + use<'a> {
        self.spec.clusters.iter().flatten()
    }

    /// Returns `true` if the template was scheduled to the cluster.
    pub(crate) fn has_target(&self, cluster: &str) -> bool {
        self.targets().any(|target| target.name == cluster)
    }

    /// Iterates over the reports on the template of each cluster that has it.
    pub(crate) fn reports(&self) -> impl Iterator<Item = &'a AggregatedStatusItem> + use<'a> {
        let reports = self.status.map(|status| &status.aggregated_status);
        reports.into_iter().flatten().flatten()
    }

    /// Iterates over the clusters whose copy is reported to be Healthy.
    pub(crate) fn healthy_clusters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let healthy = self.reports();
        let healthy = healthy.filter(|report| report.health.as_deref() == Some("Healthy"));
        healthy.map(|report| report.cluster_name.as_str())
    }

    /// Returns the name of the group in use. The annotation is written with the clusters; the status,
    /// which is written after them, mirrors it, and is all that Karmada's scheduler leaves.
    pub fn observed_group(&self) -> Option<&'a str> {
        let annotated = self.metadata.annotation(names::SCHEDULED_AFFINITY);
        annotated.or_else(|| self.mirrored_group())
    }

    /// Returns the name of the group in use as the status has it.
    pub(crate) fn mirrored_group(&self) -> Option<&'a str> {
        let name = self.status?.scheduler_observed_affinity_name.as_deref();
        name.filter(|name| !name.is_empty())
    }

    /// Returns `true` if its scheduler has seen it as it is.
    pub(crate) fn is_observed(&self) -> bool {
        let observed = self
            .status
            .and_then(|status| status.scheduler_observed_generation);
        observed.is_some() && observed == self.metadata.generation
    }

    /// Returns `true` if its template is to be in no cluster, as one without replicas is.
    pub fn is_nowhere(&self) -> bool {
        let is_scheduled = self.scheduled().is_some_and(|one| one.status == TRUE);
        is_scheduled && self.is_observed() && self.spec.all_targets().next().is_none()
    }

    /// Returns the condition [`SCHEDULED`].
    pub fn scheduled(&self) -> Option<&'a Condition> {
        find(self.status?.conditions.iter().flatten(), SCHEDULED)
    }
}
