//! Writes of objects that are given as JSON.

use std::fmt::Debug;

use anyhow::Result;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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
