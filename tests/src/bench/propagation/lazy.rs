//! A Lazy policy of many templates, edited: they wait, and nothing of them is written but their status.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::PropagationPolicy;
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    clients::{bindings, untyped},
    objects::{is_reported, waits},
    stand::Bench,
};
use crate::{
    api::merge,
    bench::{Seen, all, requests::create},
    fleet::{Member, NAMESPACE},
};

/// The name of the policy, and the label of its templates.
const LAZY: &str = "lazy";

impl Bench {
    /// Propagates `templates` templates of one Lazy policy and edits it. Returns the time until all of them
    /// wait, and the writes by then.
    pub(super) async fn edit_a_lazy_policy(&self, templates: u16) -> Result<String> {
        let (fleet, count) = (&self.fleet, usize::from(templates));
        let programs = self.start().await?;
        let mut reported = Seen::watch(bindings(fleet), Config::default(), is_reported).await?;
        fleet.create_policy(LAZY, policy(&[Member(1)])).await?;
        let maps = untyped::<ConfigMap>(fleet);
        let creating = (1..=templates).map(async |nth| create(&maps, &template(nth)).await);
        all(creating).await?;
        reported.until_count(count).await?;
        programs.rest().await?;

        let mut waiting = Seen::watch(bindings(fleet), Config::default(), waits).await?;
        let before = fleet.karmada.successful_writes().await?;
        let began = Instant::now();
        let edit = json!({ "spec": policy(&[Member(1), Member(2)]) });
        merge(&untyped::<PropagationPolicy>(fleet), LAZY, &edit).await?;
        let seen = waiting.until_count(count).await? - began;
        programs.rest().await?;
        let written = fleet.karmada.successful_writes().await?.since(&before);
        programs.stop().await?;
        let of_workloads = ["configmaps", "resourcebindings", "works"];
        ensure!(
            !written.changes(&of_workloads),
            "a workload was written: {written}"
        );
        Ok(format!(
            "a Lazy policy of {templates} templates edited, until all wait: {seen:.2?}; {written}"
        ))
    }
}

fn policy(members: &[Member]) -> Value {
    let members: Vec<String> = members.iter().map(|member| member.name()).collect();
    json!({
        "activationPreference": "Lazy",
        "resourceSelectors": [{
            "apiVersion": "v1", "kind": "ConfigMap",
            "labelSelector": { "matchLabels": { "policy": LAZY } },
        }],
        "placement": { "clusterAffinity": { "clusterNames": members } },
    })
}

fn template(nth: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("settings{nth}"), "namespace": NAMESPACE, "labels": { "policy": LAZY },
        },
        "data": { "shop": "main" },
    })
}
