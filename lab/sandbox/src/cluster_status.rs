//! The status of the members' Clusters, in place of a controller for clusters: Ready, and the kinds that
//! each member serves.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use futures::StreamExt;
use jiff::Timestamp;
use karmada_api::ClusterProfile;
use karmada_api::condition::TRUE;
use karmada_api::profile::{ApiEnablement, EnabledKind};
use karmada_rules::condition::{PatchBody, upsert};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::discovery::Discovery;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::watch::follow;

/// Gives a status to each Cluster of a member that has none, and never returns.
pub(crate) async fn keep(karmada: Client, members: BTreeMap<String, Client>) {
    let (clusters, changes) = follow(Api::<ClusterProfile>::all(karmada.clone()));
    let mut changes = std::pin::pin!(changes);
    while changes.next().await.is_some() {
        for cluster in clusters.state() {
            let name = cluster.name_any();
            let has_status = !cluster.status.api_enablements.is_empty();
            let Some(member) = members.get(&name).filter(|_| !has_status) else {
                continue;
            };
            if let Err(error) = write(&karmada, &name, member).await {
                // Another writer of the conditions has wakened us already.
                tracing::warn!(name, %error, "A Cluster's status could not be written, will retry");
            }
        }
    }
}

async fn write(karmada: &Client, name: &str, member: &Client) -> Result<()> {
    let resource = ApiResource::erase::<ClusterProfile>(&());
    let clusters: Api<DynamicObject> = Api::all_with(karmada.clone(), &resource);
    let cluster = clusters.get(name).await?;
    let conditions = cluster.data.pointer("/status/conditions");
    let conditions = conditions
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let ready = json!({
        "type": "Ready", "status": TRUE, "reason": "ClusterReady",
        "message": "cluster is healthy and ready to accept workloads",
        "lastTransitionTime": Timestamp::from_second(Timestamp::now().as_second())?.to_string(),
    });
    let version = cluster.resource_version();
    let body = match upsert(conditions, ready).body(version.as_deref()) {
        PatchBody::Merge(body) => Patch::Merge(body),
        PatchBody::Json(body) => Patch::Json(serde_json::from_value(body)?),
    };
    let params = PatchParams::default();
    clusters.patch_status(name, &params, &body).await?;
    let enabled = Patch::Merge(json!({ "status": { "apiEnablements": served(member).await? } }));
    clusters.patch_status(name, &params, &enabled).await?;
    Ok(())
}

/// Returns the kinds that a member serves, as Karmada writes them.
async fn served(member: &Client) -> Result<Vec<ApiEnablement>> {
    let discovery = Discovery::new(member.clone()).run_aggregated().await;
    let discovery = discovery.context("cannot discover the kinds of a member")?;
    let mut enabled = BTreeMap::<String, Vec<EnabledKind>>::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, _) in group.versioned_resources(version) {
                let ApiResource {
                    api_version,
                    kind,
                    plural,
                    ..
                } = resource;
                let kind = EnabledKind { name: plural, kind };
                enabled.entry(api_version).or_default().push(kind);
            }
        }
    }
    let enablement = |(group_version, resources)| ApiEnablement {
        group_version,
        resources,
    };
    Ok(enabled.into_iter().map(enablement).collect())
}
