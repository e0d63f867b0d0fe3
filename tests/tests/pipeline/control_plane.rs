//! The behaviour of a Kubernetes API on which other tests rely.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails so")]

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    on_both,
};
use serde_json::json;

/// The API server counts the writes of others.
async fn others_writes_are_counted(server: ApiKind) -> Result<()> {
    let api = ControlPlane::start("karmada", server).await?;
    let before = api.successful_writes().await?;
    api.namespace("shop").await?;
    let maps: Api<ConfigMap> = Api::namespaced(api.client(), "shop");
    let apply = PatchParams::apply("test");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}});
    maps.patch("map", &apply, &Patch::Apply(&map)).await?;
    maps.patch("map", &apply, &Patch::Apply(&map)).await?;
    maps.get("map").await?;
    let invalid = Patch::Merge(json!({"data": 7}));
    let refused = maps.patch("map", &PatchParams::default(), &invalid).await;
    refused.expect_err("a number is no data");
    let written = api.successful_writes().await?.since(&before);
    assert_eq!(written.to_string(), "2 APPLY configmaps, 1 POST namespaces");
    Ok(())
}

/// An API outage keeps address and data.
async fn outage_keeps_address_and_data(server: ApiKind) -> Result<()> {
    let mut api = ControlPlane::start("karmada", server).await?;
    let address = api.address();
    api.namespace("shop").await?;
    api.stop_api().await?;
    let refused = std::net::TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    api.start_api().await?;
    assert_eq!(api.address(), address);
    let namespaces: Api<Namespace> = Api::all(api.client());
    namespaces.get("shop").await?;
    Ok(())
}

/// Installed CRDs are served, and a file that is none is named.
async fn only_crds_are_installed(server: ApiKind) -> Result<()> {
    let api = ControlPlane::start("karmada", server).await?;
    let folder = tempfile::tempdir()?;
    let install = async || api.install_crds(&[folder.path()]).await;
    let error = install().await.unwrap_err();
    assert!(error.to_string().starts_with("no .yaml file in"), "{error}");

    std::fs::write(folder.path().join("apples.yaml"), APPLES)?;
    install().await?;
    let version = api.client().list_api_group_resources("test.io/v1").await?;
    assert_eq!(version.resources[0].name, "apples");

    std::fs::write(
        folder.path().join("b.yaml"),
        "kind: ConfigMap\napiVersion: v1\n",
    )?;
    let error = install().await.unwrap_err();
    assert!(error.to_string().ends_with("b.yaml"), "{error}");
    Ok(())
}

const APPLES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: apples.test.io
spec:
  group: test.io
  scope: Namespaced
  names: {plural: apples, singular: apple, kind: Apple, listKind: AppleList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

on_both!(
    others_writes_are_counted,
    outage_keeps_address_and_data,
    only_crds_are_installed,
);
