//! CRDs from YAML files onto an API server.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use tokio::time::timeout;

/// The API server establishes a CRD in well under a second.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// The folders that make a plain API server a Karmada API: `manifests/crds`, which Karmada users
/// install, and `tests/crds`, which stands in for what a real Karmada serves by itself.
pub fn karmada() -> [PathBuf; 2] {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    [tests.join("../manifests/crds"), tests.join("crds")]
}

/// Applies every CRD in the `.yaml` files of these folders and waits until all are served.
///
/// # Errors
/// When a folder has none, or a file is not one CRD, or the API server refuses it.
pub async fn install(client: &Client, folders: &[impl AsRef<Path>]) -> Result<()> {
    let mut crds = Vec::new();
    for folder in folders {
        crds.extend(read(folder.as_ref())?);
    }
    let untyped: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::erase::<CustomResourceDefinition>(&()),
    );
    let apply = PatchParams::apply("pipeline-tests").force();
    for crd in &crds {
        untyped
            .patch(&crd.name_any(), &apply, &Patch::Apply(crd))
            .await
            .with_context(|| format!("cannot install the CRD {}", crd.name_any()))?;
    }
    let typed: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in &crds {
        let name = crd.name_any();
        let established = await_condition(typed.clone(), &name, is_crd_established());
        timeout(ESTABLISHED_WITHIN, established)
            .await
            .with_context(|| format!("the CRD {name} is not established"))??;
    }
    Ok(())
}

/// The CRDs of one folder, which kustomize may use too; untyped, so that what is sent is what the
/// file says.
fn read(folder: &Path) -> Result<Vec<DynamicObject>> {
    let mut paths = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let path = entry?.path();
        let is_yaml = path.extension().is_some_and(|end| end == "yaml");
        if is_yaml && !path.ends_with("kustomization.yaml") {
            paths.push(path);
        }
    }
    ensure!(!paths.is_empty(), "no .yaml file in {}", folder.display());
    paths.sort();
    paths
        .iter()
        .map(|path| read_one(path).with_context(|| format!("cannot read {}", path.display())))
        .collect()
}

fn read_one(path: &Path) -> Result<DynamicObject> {
    let crd: DynamicObject = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
    let kind = crd.types.as_ref().map(|types| types.kind.as_str());
    ensure!(kind == Some("CustomResourceDefinition"), "it is not a CRD");
    Ok(crd)
}
