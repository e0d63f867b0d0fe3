//! The templates, their policy, and the copies that members must have.

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    api::{create, merge, merge_status},
    control_plane::ControlPlane,
    fleet::NAMESPACE,
    propagation::namespaced,
};

/// The policy of all templates.
pub(super) const POLICY: &str = "soak";
const KEY: &str = "turn";

/// Returns the spec of the policy.
pub(super) fn policy() -> Value {
    let of_kind = |version: &str, kind: &str| {
        json!({ "apiVersion": version, "kind": kind, "namespace": NAMESPACE,
            "labelSelector": { "matchLabels": { "app": POLICY } } })
    };
    let selectors = [of_kind("apps/v1", "Deployment"), of_kind("v1", "ConfigMap")];
    // A cluster keeps its copies while its DNS fails.
    let tolerations = [json!({ "operator": "Exists" })];
    json!({ "resourceSelectors": selectors, "placement": { "clusterTolerations": tolerations } })
}

/// The templates, with the turn in which each was edited.
pub(super) struct Templates(Vec<(String, usize)>);

impl Templates {
    /// Creates a Deployment and a `ConfigMap` of each name.
    pub(super) async fn create(api: &ControlPlane, count: u16) -> Result<Self> {
        let names = (1..=count).map(|nth| format!("web{nth}"));
        let templates = Self(names.map(|name| (name, 0)).collect());
        for (name, turn) in &templates.0 {
            let metadata = json!({ "name": name, "labels": { "app": POLICY } });
            let data = json!({ KEY: turn.to_string() });
            let map = json!({ "metadata": metadata, "data": data });
            create(&maps(api), map).await?;
            let deployment = json!({ "metadata": metadata, "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "web", "image": image(*turn) }] },
                },
            } });
            create(&deployments(api), deployment).await?;
        }
        Ok(templates)
    }

    /// Edits every tenth template, others in each turn.
    pub(super) async fn edit(&mut self, api: &ControlPlane, turn: usize) -> Result<()> {
        for (name, edited) in self.0.iter_mut().skip(turn % 10).step_by(10) {
            *edited = turn;
            write(api, name, turn).await?;
        }
        Ok(())
    }

    /// Edits the copies in a member as somebody else would.
    pub(super) async fn meddle(&self, member: &ControlPlane) -> Result<()> {
        for (name, _) in self.0.iter().step_by(10) {
            write(member, name, usize::MAX).await?;
        }
        Ok(())
    }

    /// Returns the first difference between a member and its templates, if there is one.
    pub(super) async fn missing(&self, member: &ControlPlane) -> Result<Option<String>> {
        let all = ListParams::default();
        let copies = (maps(member), deployments(member));
        let (maps, deployments) = tokio::try_join!(copies.0.list(&all), copies.1.list(&all))?;
        let is_there = |(name, turn): &(String, usize)| {
            let map = maps.iter().find(|map| map.name_any() == *name);
            let value = map.and_then(|map| map.data.as_ref()?.get(KEY));
            let deployment = deployments.iter().find(|found| found.name_any() == *name);
            let runs = deployment.and_then(|deployment| {
                let pods = deployment.spec.as_ref()?.template.spec.as_ref()?;
                pods.containers.first()?.image.as_deref()
            });
            value == Some(&turn.to_string()) && runs == Some(image(*turn).as_str())
        };
        let missing = self.0.iter().find(|template| !is_there(template));
        Ok(missing.map(|(name, turn)| format!("{name} of turn {turn}")))
    }

    /// Reports every copy of a member as ready, as its own controllers would.
    pub(super) async fn run(&self, member: &ControlPlane) -> Result<()> {
        let copies = deployments(member);
        for copy in copies.list(&ListParams::default()).await? {
            let generation = copy.metadata.generation;
            let observed = copy
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            if observed == generation {
                continue;
            }
            let status = json!({ "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1 });
            merge_status(&copies, &copy.name_any(), &status).await?;
        }
        Ok(())
    }

    /// Checks that every template says how many of its copies in this many members are ready.
    pub(super) async fn unreported(
        &self,
        api: &ControlPlane,
        members: u8,
    ) -> Result<Option<String>> {
        let deployments = deployments(api).list(&ListParams::default()).await?;
        ensure!(
            deployments.items.len() == self.0.len(),
            "a template is gone"
        );
        let is_reported = |deployment: &&Deployment| {
            let status = deployment.status.as_ref();
            status.is_some_and(|status| {
                status.ready_replicas == Some(i32::from(members))
                    && status.observed_generation == deployment.metadata.generation
            })
        };
        let unreported = deployments
            .iter()
            .find(|deployment| !is_reported(deployment));
        Ok(unreported.map(ResourceExt::name_any))
    }
}

async fn write(api: &ControlPlane, name: &str, turn: usize) -> Result<()> {
    let data = json!({ "data": { KEY: turn.to_string() } });
    merge(&maps(api), name, &data).await?;
    let container = json!({ "name": "web", "image": image(turn) });
    let pods = json!({ "spec": { "containers": [container] } });
    let spec = json!({ "spec": { "template": pods } });
    merge(&deployments(api), name, &spec).await
}

fn image(turn: usize) -> String {
    format!("registry.example.com/shop/web:{turn}")
}

fn maps(api: &ControlPlane) -> Api<ConfigMap> {
    namespaced(api.client())
}

fn deployments(api: &ControlPlane) -> Api<Deployment> {
    namespaced(api.client())
}
