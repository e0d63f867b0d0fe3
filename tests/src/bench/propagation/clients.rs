//! The APIs that a bare client writes to.

use karmada_api::{ResourceBinding, names};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
};

use super::objects::Binding;
use crate::{fleet::NAMESPACE, propagation::PropagationFleet};

pub(super) fn binding_name(template: &str) -> String {
    names::binding("Deployment", template)
}

pub(super) fn bindings(fleet: &PropagationFleet) -> Api<Binding> {
    let resource = ApiResource::erase::<ResourceBinding>(&());
    Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource)
}

/// Returns the objects of a kind in the API of the fleet, in [`NAMESPACE`] if they have one.
pub(super) fn untyped<K: Resource<DynamicType = ()>>(
    fleet: &PropagationFleet,
) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    if ["Cluster", "ResourceInterpreterCustomization"].contains(&&*K::kind(&())) {
        return Api::all_with(fleet.karmada.client(), &resource);
    }
    Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource)
}
