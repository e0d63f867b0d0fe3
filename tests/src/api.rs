//! Writes of objects that are given as JSON.

use std::fmt::Debug;

use anyhow::Result;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Creates an object that is given as JSON; its kind may be left out.
pub async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource<DynamicType: Default> + Clone + Debug + Serialize + DeserializeOwned,
{
    create_of(api, &K::DynamicType::default(), object).await
}

/// Creates an object of this kind that is given as JSON.
pub async fn create_of<K>(api: &Api<K>, kind: &K::DynamicType, mut object: Value) -> Result<()>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    object["apiVersion"] = K::api_version(kind).into();
    object["kind"] = K::kind(kind).into();
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    Ok(())
}

/// Creates an object, or changes an existing one.
pub async fn apply<K>(api: &Api<K>, name: &str, mut object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"]["name"] = name.into();
    let parameters = PatchParams::apply("pipeline-tests").force();
    api.patch(name, &parameters, &Patch::Apply(object)).await?;
    Ok(())
}

/// Merges a patch into an object.
pub async fn merge<K>(api: &Api<K>, name: &str, patch: &Value) -> Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(patch);
    api.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Merges a status into that of an object.
pub async fn merge_status<K>(api: &Api<K>, name: &str, status: &Value) -> Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(json!({ "status": status }));
    let parameters = PatchParams::default();
    api.patch_status(name, &parameters, &patch).await?;
    Ok(())
}

/// Merges a patch into an object. Returns the API's words if it refuses the patch.
pub async fn merge_refusal<K>(api: &Api<K>, name: &str, patch: &Value) -> Option<String>
where
    K: Clone + DeserializeOwned + Debug,
{
    let merged = merge(api, name, patch).await;
    merged.err().map(|error| error.to_string())
}
