//! The requests of a bare client.

use anyhow::Result;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) async fn create(objects: &Api<DynamicObject>, object: &Value) -> Result<()> {
    let object = DynamicObject::deserialize(object)?;
    objects.create(&PostParams::default(), &object).await?;
    Ok(())
}

pub(super) async fn delete(objects: &Api<DynamicObject>, name: &str) -> Result<()> {
    objects.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// Returns the object without its status and the API server's additions, to create it again.
pub(super) fn bare(object: &Value) -> Value {
    let kept = [
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ];
    let metadata = kept.map(|field| (field, object["metadata"].get(field)));
    let metadata = metadata
        .into_iter()
        .filter_map(|(field, value)| Some((field.to_owned(), value?.clone())));
    let mut object = object.clone();
    object["metadata"] = Value::Object(metadata.collect::<Map<_, _>>());
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}
