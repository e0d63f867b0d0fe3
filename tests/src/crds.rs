//! Installation of CRDs from YAML files.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::manifests;

/// The limit until a CRD is served, which usually takes less than a second.
const SERVED_WITHIN: Duration = Duration::from_secs(90);

/// The interval between two attempts to list a new kind.
const POLL: Duration = Duration::from_millis(20);

/// Returns the files that make a plain API server a Karmada API: the kinds that a real Karmada serves by itself, with
/// our additions to them, but for [`exports`].
///
/// # Panics
/// The folder cannot be read.
pub fn karmada() -> Vec<PathBuf> {
    #[expect(clippy::unwrap_used, reason = "a test fails so")]
    let mut all = files(&manifests::path("fleet")).unwrap();
    all.retain(|file| *file != exports());
    all
}

/// Returns the file of the kind by which endpoints of Services are collected, which not every Karmada has.
pub fn exports() -> PathBuf {
    manifests::path("fleet/multicluster.x-k8s.io_serviceexports.yaml")
}

/// Returns the files of the kinds of the Gateway API that a controller of Gateways reads, of those in `folder`.
pub fn gateway_api(folder: &Path) -> Vec<PathBuf> {
    let kinds = [
        "gatewayclasses",
        "gateways",
        "httproutes",
        "grpcroutes",
        "referencegrants",
        "backendtlspolicies",
    ];
    kinds
        .map(|kind| folder.join(format!("gateway.networking.k8s.io_{kind}.yaml")))
        .into()
}

/// Returns the definition of a namespaced kind whose `spec` has these fields, each with its schema.
pub fn definition(group: &str, kind: &str, plural: &str, fields: &Value) -> Result<DynamicObject> {
    let spec = json!({ "type": "object", "properties": fields });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    Ok(serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // An API asks for it in the groups of Kubernetes' own projects.
        "metadata": { "name": format!("{plural}.{group}"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" } },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }],
        },
    }))?)
}

/// Applies every CRD in the `.yaml` files of these folders, each of which may also be such a file itself, and
/// waits until all are served.
///
/// # Errors
/// A folder without files, a file that is not one CRD, or a CRD that the API server rejects.
pub async fn install(client: &Client, folders: &[impl AsRef<Path>]) -> Result<()> {
    let mut crds = Vec::new();
    for folder in folders {
        crds.extend(read(folder.as_ref())?);
    }
    apply(client, &crds).await
}

/// Installs [`karmada`] without the rules that our definitions have and Karmada's own lack, such as that a
/// list of a Remedy is not empty.
///
/// # Errors
/// As [`install`].
pub async fn install_without_rules(client: &Client) -> Result<()> {
    let mut crds = Vec::new();
    for folder in karmada() {
        crds.extend(read(&folder)?);
    }
    for crd in &mut crds {
        remove_rules(&mut crd.data);
    }
    apply(client, &crds).await
}

fn remove_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        _ => {}
    }
}

/// Applies these CRDs and waits until all are served.
///
/// # Errors
/// A CRD that the API server rejects, or does not serve in time.
pub async fn apply(client: &Client, crds: &[DynamicObject]) -> Result<()> {
    let untyped: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::erase::<CustomResourceDefinition>(&()),
    );
    let apply = PatchParams::apply("pipeline-tests").force();
    for crd in crds {
        untyped
            .patch(&crd.name_any(), &apply, &Patch::Apply(crd))
            .await
            .with_context(|| format!("cannot install the CRD {}", crd.name_any()))?;
    }
    for crd in crds {
        let name = crd.name_any();
        timeout(SERVED_WITHIN, served(client, &name))
            .await
            .with_context(|| format!("the CRD {name} is not served"))??;
    }
    Ok(())
}

/// Waits until the CRD is established and its versions can be discovered and listed. The latter comes
/// a moment later, without an event.
async fn served(client: &Client, name: &str) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = await_condition(api, name, is_crd_established()).await?;
    let crd = established.context("it is gone")?.spec;
    for version in crd.versions.iter().filter(|version| version.served) {
        let of_version = format!("{}/{}", crd.group, version.name);
        let is_served = async || -> Result<bool> {
            let discovered = client.list_api_group_resources(&of_version).await?;
            let mut names = discovered.resources.iter().map(|resource| &resource.name);
            let is_discovered = names.any(|name| *name == crd.names.plural);
            let list = format!("/apis/{of_version}/{}?limit=1", crd.names.plural);
            client
                .request_text(Request::get(list).body(Vec::new())?)
                .await?;
            Ok(is_discovered)
        };
        while !matches!(is_served().await, Ok(true)) {
            sleep(POLL).await;
        }
    }
    Ok(())
}

/// Waits until the API publishes the schemas of the installed CRDs in these folders, which kubectl explains
/// and validates by. A real one does so a moment after it serves them, without an event.
///
/// # Errors
/// As [`install`], and a schema that is not published in time.
pub async fn explained(client: &Client, folders: &[impl AsRef<Path>]) -> Result<()> {
    for folder in folders {
        for crd in read(folder.as_ref())? {
            let crd: CustomResourceDefinition = crd.try_parse()?;
            let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
            for version in crd.spec.versions.iter().filter(|version| version.served) {
                let schema = format!("/openapi/v3/apis/{group}/{}", version.name);
                // The path that lists all objects, those of all namespaces too.
                let path = format!("\"/apis/{group}/{}/{plural}\"", version.name);
                let published = async {
                    loop {
                        let request = Request::get(&schema).body(Vec::new())?;
                        let text = client.request_text(request).await;
                        if text.is_ok_and(|text| text.contains(&path)) {
                            return anyhow::Ok(());
                        }
                        sleep(POLL).await;
                    }
                };
                timeout(SERVED_WITHIN, published)
                    .await
                    .with_context(|| format!("{schema} does not describe {plural}"))??;
            }
        }
    }
    Ok(())
}

/// Reads the CRDs of a folder, which may have a kustomization too, or of one file. They stay untyped, so that the
/// server receives every field of the file.
fn read(folder: &Path) -> Result<Vec<DynamicObject>> {
    if folder.is_file() {
        return Ok(vec![read_one(folder)?]);
    }
    files(folder)?
        .iter()
        .map(|path| read_one(path).with_context(|| format!("cannot read {}", path.display())))
        .collect()
}

/// Returns the files of a folder but its kustomization.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
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
    Ok(paths)
}

fn read_one(path: &Path) -> Result<DynamicObject> {
    let crd: DynamicObject = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
    let kind = crd.types.as_ref().map(|types| types.kind.as_str());
    ensure!(kind == Some("CustomResourceDefinition"), "it is not a CRD");
    Ok(crd)
}
