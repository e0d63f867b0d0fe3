//! The hub: its fleet, the website that it places, and the actions of the page's reader there.

use std::time::Duration;

use anyhow::{Context, Result};
use fleet_api::{ClusterResourcePlacementEviction, MemberCluster};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ServiceAccount, Taint};
use karmada_api::condition::TRUE;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use objects::condition::find;
use serde_json::json;
use tokio::time::timeout;

use crate::apis::Apis;
use crate::objects::{create, create_all, create_namespace, in_one_line, object};
use crate::rollout::{BROKEN, change_image};
use crate::site::Site;

/// The namespace that is placed, and the placement of it.
pub(crate) const STORE: &str = Site::Store.namespace();
/// The namespace of the programs' leases, and of the agents' accounts on the hub.
const SYSTEM: &str = "fleet-system";
/// The condition of a cluster whose agent has joined.
const JOINED: &str = "Joined";
/// The longest that agents take to join.
const JOINED_WITHIN: Duration = Duration::from_secs(30);
/// The taint of a cluster that gets nothing new because a reader of the page says so.
pub(crate) const CORDONED: &str = "cordoned";
/// The taint of one with dead DNS.
pub(crate) const SICK: &str = "cluster.karmada-rs.io/ServiceDomainNameResolutionReady";

const CONTROLLER_MANIFESTS: [&str; 2] = [
    include_str!("../../../manifests/placement/hub/placement-controller.yaml"),
    include_str!("../../../manifests/placement/hub/selected.yaml"),
];
const AGENT_MANIFEST: &str = include_str!("../../../manifests/placement/member/rights.yaml");
/// The website and its placement.
const SAMPLE: &str = include_str!("../../../manifests/samples/store/web.yaml");

/// Sets placements up, as a user has them: the rights of our programs, and the clusters of the fleet.
pub(crate) async fn create_fleet(apis: &Apis) -> Result<()> {
    apis.install_placements()?;
    let hub = apis.hub()?;
    create_namespace(&hub, SYSTEM).await?;
    for manifest in CONTROLLER_MANIFESTS {
        create_all(&hub, manifest).await?;
    }
    for (name, member) in apis.members()? {
        create_namespace(&member, SYSTEM).await?;
        create_all(&member, AGENT_MANIFEST).await?;
        let account: ServiceAccount = object(&name, json!({}))?;
        create(&Api::namespaced(hub.clone(), SYSTEM), &account).await?;
        join(&hub, &name).await?;
    }
    Ok(())
}

/// Creates the website and its placement once all clusters have joined, so that the same ones are picked each time.
pub(crate) async fn place(hub: &Client, clusters: &[String]) -> Result<()> {
    for cluster in clusters {
        let joined = await_condition(Api::all(hub.clone()), cluster, has_joined);
        let joined = timeout(JOINED_WITHIN, joined).await;
        joined.with_context(|| format!("{cluster} does not join the fleet"))??;
    }
    create_all(hub, SAMPLE).await
}

/// Returns `true` if the agent of the cluster has joined.
pub(crate) fn has_joined(cluster: Option<&MemberCluster>) -> bool {
    let status = cluster.and_then(|cluster| cluster.status.as_ref());
    let joined = status.and_then(|status| find(&status.conditions, JOINED));
    joined.is_some_and(|joined| joined.status == TRUE)
}

/// Registers a cluster in the fleet; its agent does the rest.
pub(crate) async fn join(hub: &Client, cluster: &str) -> Result<()> {
    let identity = json!({ "kind": "ServiceAccount", "namespace": SYSTEM, "name": cluster });
    let cluster: MemberCluster = object(cluster, json!({ "spec": { "identity": identity } }))?;
    create(&Api::all(hub.clone()), &cluster).await
}

/// Takes a cluster out of the fleet. Placed objects stay there.
pub(crate) async fn leave(hub: &Client, cluster: &str) -> Result<()> {
    let clusters: Api<MemberCluster> = Api::all(hub.clone());
    in_one_line(clusters.delete(cluster, &DeleteParams::default()).await)
}

/// Keeps new placements away from a cluster, or no longer.
pub(crate) async fn cordon(hub: &Client, cluster: &str, is_cordoned: bool) -> Result<()> {
    let clusters: Api<MemberCluster> = Api::all(hub.clone());
    let known = clusters.get_opt(cluster).await?;
    let known = known.with_context(|| format!("{cluster} is not in the fleet"))?;
    let mut taints = known.spec.taints;
    taints.retain(|taint| taint.key != CORDONED);
    if is_cordoned {
        taints.push(Taint {
            key: CORDONED.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    in_one_line(
        clusters
            .patch(cluster, &PatchParams::default(), &patch)
            .await,
    )
}

/// Evicts the website from a cluster.
pub(crate) async fn evict(hub: &Client, cluster: &str) -> Result<()> {
    let evictions: Api<ClusterResourcePlacementEviction> = Api::all(hub.clone());
    let spec = json!({ "placementName": STORE, "clusterName": cluster });
    let eviction = object(cluster, json!({ "spec": spec }))?;
    let deleted = evictions.delete(cluster, &DeleteParams::default()).await;
    // The one before was decided long ago.
    if let Err(kube::Error::Api(status)) = &deleted
        && status.code != 404
    {
        return in_one_line(deleted);
    }
    create(&evictions, &eviction).await
}

/// Gives the website the next version: one with pods that never become ready if it `is_broken`.
pub(crate) async fn roll_out(hub: &Client, is_broken: bool) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(hub.clone(), STORE);
    change_image(&deployments, if is_broken { BROKEN } else { "" }).await
}
