//! The links between the verdict of a cluster's nodes and the load balancer.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use karmada_api::condition::{Condition, REPORTER_LEASE};
use karmada_api::{MultiClusterIngress, Remedy};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use objects::Key;
use serde::Serialize;
use traffic::ClusterKind;
use traffic::ingress::ServingCluster;

use crate::change::Change;
use crate::error::Error;
use crate::lease::Holder;
use crate::lists::{scoped, served};
use crate::writer::{Writer, metadata};

/// The objects that explain one cluster besides the fleet.
#[derive(Debug, Default)]
pub(super) struct Traces {
    /// The lease of its agents.
    pub(super) lease: Option<Lease>,
    /// Their Events about conditions that the API refuses.
    pub(super) refusals: Vec<Refusal>,
    /// The last writer of its actions. That of a condition, which the action is on a hub, nobody knows.
    pub(super) actions: Option<Writer>,
    /// The last writers of the blocked clusters of ingresses.
    pub(super) blocks: BTreeMap<Key, Writer>,
}

/// Everything between the verdict of a cluster's nodes and the load balancer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    pub(super) cluster: String,
    /// The whole in one sentence.
    pub(super) summary: String,
    #[serde(rename = "blocked")]
    pub(super) is_blocked: bool,
    /// Those of the nodes' verdict that the cluster has.
    pub(super) conditions: Vec<Condition>,
    pub(super) lease: ReporterLease,
    pub(super) remedies: Vec<RemedyEffect>,
    pub(super) actions: Actions,
    /// The ingresses with a backend in the cluster.
    pub(super) ingresses: Vec<IngressState>,
}

/// The lease of a cluster's agents.
#[derive(Debug, Serialize)]
pub(super) struct ReporterLease {
    pub(super) namespace: String,
    pub(super) name: &'static str,
    pub(super) exists: bool,
    pub(super) holder: Option<Holder>,
    /// The Events of the agents about conditions that the API refuses, for as long as it keeps them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) refusals: Vec<Refusal>,
}

/// A condition that the API refused.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Refusal {
    /// The moment at which it was refused first.
    pub(super) time: Option<MicroTime>,
    pub(super) note: String,
}

/// The effect of one Remedy on the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemedyEffect {
    pub(super) name: String,
    /// `None` for a Remedy that cannot be read.
    pub(super) acts: Option<bool>,
    pub(super) actions: Vec<String>,
    /// The reason why it acts or does not.
    pub(super) because: String,
    /// The reason for which it was made, if its annotation gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<String>,
}

/// The actions of the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Actions {
    pub(super) present: Vec<String>,
    pub(super) last_writer: Option<Writer>,
    /// The changes that the remedy-controller has still to make, or may not.
    pub(super) pending: Vec<Change>,
}

/// The state of an ingress that has a backend in the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngressState {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Set if its status has the cluster among the blocked ones.
    #[serde(rename = "blocked")]
    pub(super) is_blocked: bool,
    pub(super) blocked_clusters: Vec<String>,
    /// Those of its load balancer.
    pub(super) addresses: Vec<String>,
    pub(super) last_writer: Option<Writer>,
    /// The backends in the cluster; `None` if another controller decides who serves them.
    pub(super) backends: Option<Vec<BackendState>>,
}

/// The clusters that serve a backend Service.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackendState {
    pub(super) service: String,
    pub(super) served_by: Vec<ServingCluster>,
}

impl Traces {
    pub(super) async fn read(
        client: &Client,
        namespace: Option<&str>,
        kind: ClusterKind,
        cluster: &str,
    ) -> Result<Self, Error> {
        let home = kind.namespace(cluster);
        let leases: Api<Lease> = Api::namespaced(client.clone(), &home);
        let lease = leases.get_opt(REPORTER_LEASE).await;
        let lease =
            lease.map_err(|source| Error::request("get the lease of its agents", source))?;
        let clusters: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        let found = clusters.get_metadata_opt(cluster).await;
        let found = found.map_err(|source| Error::request("get the cluster", source))?;
        let ingresses = scoped::<MultiClusterIngress>(client, namespace);
        let ingresses = served(kind, metadata(&ingresses)).await?;
        let blocks = ingresses.iter().filter_map(|ingress| {
            let key = Key::new(ingress.namespace.as_ref()?, ingress.name.as_ref()?);
            Some((key, Writer::of(ingress, "status", "trafficBlockClusters")?))
        });
        Ok(Self {
            lease,
            refusals: refusals(client, &home).await?,
            actions: found.and_then(|found| Writer::of(&found.metadata, "status", "remedyActions")),
            blocks: blocks.collect(),
        })
    }
}

/// Returns `true` if `action` is among those of `remedy`.
pub(crate) fn requires(remedy: &Remedy, action: &str) -> bool {
    let mut actions = remedy.spec.actions.iter().flatten();
    actions.any(|required| required == action)
}

/// Reads the Events of a cluster's agents about conditions that the API refuses, in the namespace of their lease: nothing for a
/// caller who may not read Events.
async fn refusals(client: &Client, namespace: &str) -> Result<Vec<Refusal>, Error> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let about = format!("regarding.kind=Lease,regarding.name={REPORTER_LEASE},type=Warning");
    let found = events.list(&ListParams::default().fields(&about)).await;
    let found = match found {
        Ok(found) => found.items,
        Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => Vec::new(),
        Err(source) => return Err(Error::request("list the Events of its agents", source)),
    };
    let mut refusals: Vec<Refusal> = found
        .into_iter()
        .map(|event| Refusal {
            time: event.event_time,
            note: event.note.unwrap_or_default(),
        })
        .collect();
    refusals.sort_by(|one, other| one.time.cmp(&other.time));
    Ok(refusals)
}
