//! Bindings of both kinds.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::{
    ClusterResourceBinding, ResourceBinding, ResourceBindingSpec, ResourceBindingStatus, names,
};
use kube::core::ObjectMeta;
use objects::Key;
use objects::write::ObjectRef;
use propagation_rules::binding_ref::BindingRef;

/// A binding of either kind. The key of a cluster-scoped one has no namespace.
#[derive(Clone, Debug)]
pub(crate) enum AnyBinding {
    Namespaced(Arc<ResourceBinding>),
    ClusterScoped(Arc<ClusterResourceBinding>),
}

impl AnyBinding {
    pub(crate) fn view(&self) -> BindingRef<'_> {
        match self {
            Self::Namespaced(binding) => (&**binding).into(),
            Self::ClusterScoped(binding) => (&**binding).into(),
        }
    }

    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Namespaced(binding) => Key::of(&**binding),
            Self::ClusterScoped(binding) => Key::of(&**binding),
        }
    }

    pub(crate) fn object(&self) -> ObjectRef {
        match self {
            Self::Namespaced(binding) => ObjectRef::of(&**binding, &()),
            Self::ClusterScoped(binding) => ObjectRef::of(&**binding, &()),
        }
    }

    /// Returns the reference to the template.
    pub(crate) fn template(&self) -> ObjectReference {
        let resource = &self.view().spec.resource;
        ObjectReference {
            api_version: Some(resource.api_version.clone()),
            kind: Some(resource.kind.clone()),
            namespace: resource.namespace.clone(),
            name: Some(resource.name.clone()),
            uid: resource.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// The memory of the reports of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// The parts that decide when an eviction is over, and where a workload may go, of those that may move.
    OfMoves,
    /// That, and of the others whether their copies are Healthy.
    Health,
}

/// Returns the function that leaves of a binding only the parts that scheduling reads, which are little of its memory.
pub(crate) fn keep<K: Trim>(reports: Reports) -> fn(&mut K) {
    match reports {
        Reports::OfMoves => |binding| binding.trim(Reports::OfMoves),
        Reports::Health => |binding| binding.trim(Reports::Health),
    }
}

/// A kind of binding.
pub(crate) trait Trim {
    /// Drops the parts that scheduling does not read.
    fn trim(&mut self, reports: Reports);
}

impl Trim for ResourceBinding {
    fn trim(&mut self, reports: Reports) {
        let (metadata, spec) = (&mut self.metadata, &mut self.spec);
        trim(metadata, spec, self.status.as_mut(), reports);
    }
}

impl Trim for ClusterResourceBinding {
    fn trim(&mut self, reports: Reports) {
        // A list may lack them, where its watch has them.
        self.api_version.clear();
        self.kind.clear();
        let (metadata, spec) = (&mut self.metadata, &mut self.spec);
        trim(metadata, spec, self.status.as_mut(), reports);
    }
}

fn trim(
    metadata: &mut ObjectMeta,
    spec: &mut ResourceBindingSpec,
    status: Option<&mut ResourceBindingStatus>,
    reports: Reports,
) {
    metadata.finalizers = None;
    metadata.managed_fields = None;
    metadata.owner_references = None;
    // An empty list is kept: the patch of an annotation differs without one.
    if let Some(annotations) = &mut metadata.annotations {
        let read = [names::APPLIED_PLACEMENT, names::SCHEDULED_AFFINITY];
        annotations.retain(|key, _| read.contains(&key.as_str()));
    }
    let has_tasks = spec.graceful_eviction_tasks.iter().flatten().count() > 0;
    let placement = spec.placement.as_ref();
    let has_groups =
        placement.is_some_and(|placement| placement.get("clusterAffinities").is_some());
    let may_move = has_tasks || has_groups;
    if !may_move {
        spec.required_by = None;
    }
    if let Some(status) = status {
        if !may_move && reports == Reports::OfMoves {
            status.aggregated_status = None;
        }
        for item in status.aggregated_status.iter_mut().flatten() {
            item.status = None;
            if !may_move {
                item.applied = None;
                item.applied_message = None;
            }
        }
    }
}
