//! `kubectl remedy why`: every link from the verdict of a cluster's nodes to the load balancer.

mod links;
mod text;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::condition::{Condition, REPORTER_LEASE};
use karmada_api::{Cluster, MultiClusterIngress, Remedy, execution_namespace};
use karmada_rules::ingress::ServingCluster;
use kube::{Api, Client};
use objects::Key;
use serde::Serialize;

use crate::args::WhyArgs;
use crate::change::Change;
use crate::error::Error;
use crate::fleet::{FleetSnapshot, scoped};
use crate::lease::Holder;
use crate::writer::{Writer, metadata};
use crate::{Answer, manifest, terminal};

use self::links::Links;

/// The objects that explain one cluster besides the fleet.
#[derive(Debug, Default)]
struct Traces {
    /// The lease of its agents.
    lease: Option<Lease>,
    /// The last writer of its actions.
    actions: Option<Writer>,
    /// The last writers of the blocked clusters of ingresses.
    blocks: BTreeMap<Key, Writer>,
}

/// Everything between the verdict of a cluster's nodes and the load balancer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    cluster: String,
    /// The whole in one sentence.
    summary: String,
    #[serde(rename = "blocked")]
    is_blocked: bool,
    /// Those of the nodes' verdict that the cluster has.
    conditions: Vec<Condition>,
    lease: ReporterLease,
    remedies: Vec<RemedyEffect>,
    actions: Actions,
    /// The ingresses with a backend in the cluster.
    ingresses: Vec<IngressState>,
}

/// The lease of a cluster's agents.
#[derive(Debug, Serialize)]
struct ReporterLease {
    namespace: String,
    name: &'static str,
    exists: bool,
    holder: Option<Holder>,
}

/// The effect of one Remedy on the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RemedyEffect {
    name: String,
    /// `None` for a Remedy that cannot be read.
    acts: Option<bool>,
    actions: Vec<String>,
    /// The reason why it acts or does not.
    because: String,
    /// The reason for which it was made, if its annotation gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// The actions of the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Actions {
    present: Vec<String>,
    last_writer: Option<Writer>,
    /// The changes that the remedy-controller has still to make, or may not.
    pending: Vec<Change>,
}

/// The state of an ingress that has a backend in the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct IngressState {
    namespace: String,
    name: String,
    /// Set if its status has the cluster among the blocked ones.
    #[serde(rename = "blocked")]
    is_blocked: bool,
    blocked_clusters: Vec<String>,
    last_writer: Option<Writer>,
    /// The backends in the cluster; `None` if another controller decides what serves them.
    backends: Option<Vec<BackendState>>,
}

/// The clusters that serve a backend Service.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BackendState {
    service: String,
    served_by: Vec<ServingCluster>,
}

/// Explains a cluster.
pub(crate) async fn run(
    args: &WhyArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read(client, namespace, now).await?;
    let cluster = fleet.require(&args.cluster)?;
    let traces = Traces::read(client, namespace, &args.cluster).await?;
    let links = Links {
        fleet: &fleet,
        cluster,
        traces: &traces,
        controllers: &args.controllers,
    };
    let explanation = Explanation::of(&links);
    terminal::print(&match args.output {
        None => explanation.text(now),
        Some(format) => manifest::text(&explanation, format)?,
    });
    Ok(Answer::Yes)
}

impl Traces {
    async fn read(client: &Client, namespace: Option<&str>, cluster: &str) -> Result<Self, Error> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &execution_namespace(cluster));
        let lease = leases.get_opt(REPORTER_LEASE).await;
        let lease =
            lease.map_err(|source| Error::request("get the lease of its agents", source))?;
        let clusters: Api<Cluster> = Api::all(client.clone());
        let found = clusters.get_metadata_opt(cluster).await;
        let found = found.map_err(|source| Error::request("get the cluster", source))?;
        let ingresses = metadata(&scoped::<MultiClusterIngress>(client, namespace)).await?;
        let blocks = ingresses.iter().filter_map(|ingress| {
            let key = Key::new(ingress.namespace.as_ref()?, ingress.name.as_ref()?);
            Some((key, Writer::of(ingress, "trafficBlockClusters")?))
        });
        Ok(Self {
            lease,
            actions: found.and_then(|found| Writer::of(&found.metadata, "remedyActions")),
            blocks: blocks.collect(),
        })
    }
}

impl Explanation {
    /// Returns what `links` tell about their cluster.
    fn of(links: &Links<'_>) -> Self {
        Self {
            cluster: links.name(),
            summary: links.summary(),
            is_blocked: links.is_blocked(),
            conditions: links.conditions(),
            lease: links.lease(),
            remedies: links.remedies(),
            actions: links.actions(),
            ingresses: links.ingresses(),
        }
    }
}

/// Returns `true` if `action` is among those of `remedy`.
pub(crate) fn requires(remedy: &Remedy, action: &str) -> bool {
    let mut actions = remedy.spec.actions.iter().flatten();
    actions.any(|required| required == action)
}

#[cfg(test)]
mod tests;
