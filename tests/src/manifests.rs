//! Installation of the manifests that users install.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};

/// The files that confine the accounts of our programs in any API of a fleet.
pub const CONFINEMENT: [&str; 6] = [
    "admission/confine/health.yaml",
    "admission/confine/ingress-controller.yaml",
    "admission/confine/propagation-controller.yaml",
    "admission/confine/renew.yaml",
    "admission/confine/scheduler.yaml",
    "admission/confine/execution-controller.yaml",
];

/// The files with the rights of the programs that propagate.
pub const PROPAGATION: [&str; 4] = [
    "propagation/propagation-controller.yaml",
    "propagation/workloads.yaml",
    "propagation/scheduler.yaml",
    "propagation/execution-controller.yaml",
];

/// Returns the path of a file below `manifests/`.
pub fn path(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests")).join(file)
}

/// Applies every object of a file below `manifests/`, in its order.
pub async fn apply(client: &Client, file: &str) -> Result<()> {
    apply_edited(client, file, |text| text).await
}

/// Applies every object of a file below `manifests/` whose text `edit` has changed.
pub async fn apply_edited(
    client: &Client,
    file: &str,
    edit: impl FnOnce(String) -> String,
) -> Result<()> {
    let text = edit(fs::read_to_string(path(file)).with_context(|| format!("cannot read {file}"))?);
    let objects: Vec<DynamicObject> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("cannot parse {file}"))?;
    for object in objects {
        let types = object
            .types
            .as_ref()
            .with_context(|| format!("{file}: no kind"))?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let parameters = PatchParams::apply("pipeline-tests").force();
        api.patch(&object.name_any(), &parameters, &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply {} {}", types.kind, object.name_any()))?;
    }
    Ok(())
}
