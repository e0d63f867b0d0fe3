//! The objects of the benchmark, and the parts of them that it reads.

use karmada_api::condition::{FALSE, TRUE};
use kube::core::{NotUsed, Object};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fleet::{Member, NAMESPACE};

/// The cluster that is lost.
pub(super) const LOST: Member = Member(1);

/// A Deployment, of which only the edit is decoded.
pub(super) type Deployed = Object<Edit, NotUsed>;
/// A Work, likewise.
pub(super) type Made = Object<Content, NotUsed>;
/// A binding, of which only the progress is decoded.
pub(super) type Binding = Object<Scheduled, Reported>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Edit {
    paused: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Content {
    workload: Workload,
}

#[derive(Clone, Debug, Deserialize)]
struct Workload {
    manifests: Vec<Manifest>,
}

#[derive(Clone, Debug, Deserialize)]
struct Manifest {
    #[serde(default)]
    spec: Edit,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Scheduled {
    clusters: Vec<Target>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reported {
    conditions: Vec<Condition>,
    scheduler_observed_generation: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

/// Returns `true` if the edit pauses the Deployment.
pub(super) fn is_paused(object: &Deployed) -> bool {
    object.spec.paused
}

/// Returns `true` if the Work has a manifest with such an edit.
pub(super) fn makes_paused(work: &Made) -> bool {
    let manifests = &work.spec.workload.manifests;
    manifests.iter().any(|manifest| manifest.spec.paused)
}

/// Returns `true` if the template was applied to all clusters of the binding.
pub(super) fn is_reported(binding: &Binding) -> bool {
    let status = binding.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.type_ == "FullyApplied" && condition.status == TRUE)
}

/// Returns `true` if the binding waits for the next edit of its template.
pub(super) fn waits(binding: &Binding) -> bool {
    let status = binding.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.type_ == "PolicyApplied" && condition.status == FALSE)
}

/// Returns `true` if the binding was scheduled to others than [`LOST`], and its status shows it.
pub(super) fn is_moved(binding: &Binding) -> bool {
    let observed = binding.status.as_ref();
    let observed = observed.and_then(|status| status.scheduler_observed_generation);
    let mut targets = binding.spec.clusters.iter();
    observed == binding.metadata.generation && targets.all(|target| target.name != LOST.name())
}

/// Returns a Deployment of the size that users write.
pub(super) fn template(name: &str) -> Value {
    let probe = json!({ "httpGet": { "path": "/ready", "port": 8080 } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": name } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "registry.example.com/shop/web:1.4.2",
                    "ports": [{ "containerPort": 8080 }],
                    "env": [{ "name": "SHOP", "value": "main" }],
                    "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
                    "readinessProbe": probe,
                }] },
            },
        },
    })
}

/// Returns the spec of the policy of one template, for all clusters.
pub(super) fn policy(template: &str) -> Value {
    json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": template }],
        "placement": {},
    })
}
