//! Deployments, which nobody but a member's own controllers can make available.

use std::pin::pin;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use serde_json::json;

use super::Stage;

/// The image that never becomes available.
pub(super) const BROKEN: &str = "web:broken";

pub(super) async fn set_image(deployments: &Api<Deployment>, image: &str) -> Result<()> {
    let containers = json!([{ "name": "web", "image": image }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let patch = Patch::Merge(patch);
    deployments
        .patch("web", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Returns the image that each member runs.
pub(super) async fn images(stage: &Stage, namespace: &str) -> Result<Vec<String>> {
    let mut images = Vec::new();
    for member in stage.fleet.members() {
        let client = stage.fleet.member(member).client();
        let deployments: Api<Deployment> = Api::namespaced(client, namespace);
        images.push(image(&deployments.get("web").await?).context("no image")?);
    }
    Ok(images)
}

fn image(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.clone()
}

/// Runs the Deployments of a member in place of its own controllers: each is available at once, unless it is broken.
pub(super) async fn run(member: Client) -> Result<()> {
    let deployments: Api<Deployment> = Api::all(member.clone());
    let mut changes = pin!(watcher(deployments, Config::default()).applied_objects());
    while let Some(deployment) = changes.next().await {
        let deployment = deployment?;
        let status = deployment.status.clone().unwrap_or_default();
        let generation = deployment.metadata.generation;
        if status.observed_generation == generation {
            continue;
        }
        let available = i32::from(image(&deployment).as_deref() != Some(BROKEN));
        let status = json!({ "status": { "observedGeneration": generation, "replicas": 1,
            "updatedReplicas": 1, "readyReplicas": available, "availableReplicas": available,
            "unavailableReplicas": 1 - available } });
        let namespace = deployment.namespace().unwrap_or_default();
        let within: Api<Deployment> = Api::namespaced(member.clone(), &namespace);
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(status));
        match within
            .patch_status(&deployment.name_any(), &parameters, &patch)
            .await
        {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            patched => drop(patched?),
        }
    }
    bail!("the watch ended")
}
