//! Deployments, which nobody but a member's own controllers can make available: this plays those.

use std::pin::pin;

use anyhow::{Context, Result, bail};
use fleet_api::placement::ClusterPlacementStatus;
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
use pipeline_tests::api::create;
use pipeline_tests::api::merge;
use serde_json::json;

use super::{Stage, said};

/// The image that never becomes available.
pub(super) const BROKEN: &str = "web:broken";

pub(super) async fn set_image(deployments: &Api<Deployment>, image: &str) -> Result<()> {
    let containers = json!([{ "name": "web", "image": image }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    merge(deployments, "web", &patch).await
}

/// Creates a Deployment on the hub.
pub(super) async fn create_web(stage: &Stage, namespace: &str) -> Result<Api<Deployment>> {
    let labels = json!({ "app": "web" });
    let web = json!({ "metadata": { "name": "web" }, "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
    } });
    let templates: Api<Deployment> = Api::namespaced(stage.fleet.hub.client(), namespace);
    create(&templates, web).await?;
    Ok(templates)
}

/// Waits until a rollout has stopped, and says so: one member has the version that is not available, and the others are held at the
/// image of before.
pub(super) async fn until_stopped(stage: &Stage, placement: &str, before: &str) -> Result<()> {
    let is_held = |one: &&ClusterPlacementStatus| {
        said(&one.conditions).contains(&"RolloutStarted False RolloutNotStartedYet".to_owned())
    };
    stage
        .until_status(placement, "stopped", |status| {
            let clusters = &status.placement_statuses;
            let mut failed = clusters.iter().flat_map(|one| &one.failed_placements);
            clusters.iter().filter(is_held).count() == 2
                && failed.any(|failed| failed.identifier.name == "web")
        })
        .await?;
    // Those that are held were looked at with the version that is not available.
    let mut running = images(stage, placement).await?;
    running.sort();
    assert_eq!(running, [before, before, BROKEN]);
    Ok(())
}

/// Returns the image that each member runs.
async fn images(stage: &Stage, namespace: &str) -> Result<Vec<String>> {
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
/// Before a version is available its pod serves, which is told its namespace and image.
pub(super) async fn run_with(
    member: Client,
    mut serve: impl AsyncFnMut(&str, &str) -> Result<()>,
) -> Result<()> {
    let deployments: Api<Deployment> = Api::all(member.clone());
    let mut changes = pin!(watcher(deployments, Config::default()).applied_objects());
    while let Some(deployment) = changes.next().await {
        let deployment = deployment?;
        let status = deployment.status.clone().unwrap_or_default();
        let generation = deployment.metadata.generation;
        if status.observed_generation == generation {
            continue;
        }
        let namespace = deployment.namespace().unwrap_or_default();
        let image = image(&deployment).context("no image")?;
        let available = i32::from(image != BROKEN);
        if available == 1 {
            serve(&namespace, &image).await?;
        }
        let status = json!({ "status": { "observedGeneration": generation, "replicas": 1,
            "updatedReplicas": 1, "readyReplicas": available, "availableReplicas": available,
            "unavailableReplicas": 1 - available } });
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
