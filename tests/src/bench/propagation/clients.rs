//! A bare client's requests to the API of the fleet.

use anyhow::Result;
use karmada_api::{ResourceBinding, names};
use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde::Deserialize;
use serde_json::{Value, json};

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
    if K::kind(&()) == "Cluster" {
        return Api::all_with(fleet.karmada.client(), &resource);
    }
    Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource)
}

pub(super) async fn create(objects: &Api<DynamicObject>, object: &Value) -> Result<()> {
    let object = DynamicObject::deserialize(object)?;
    objects.create(&PostParams::default(), &object).await?;
    Ok(())
}

pub(super) async fn merge(objects: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<()> {
    let patch = Patch::Merge(patch);
    objects.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(super) async fn merge_status(
    objects: &Api<DynamicObject>,
    name: &str,
    status: &Value,
) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    let parameters = PatchParams::default();
    objects.patch_status(name, &parameters, &patch).await?;
    Ok(())
}

pub(super) async fn delete(objects: &Api<DynamicObject>, name: &str) -> Result<()> {
    objects.delete(name, &DeleteParams::default()).await?;
    Ok(())
}
