//! The ingress-controller with many ingresses of a cluster that is blocked and admitted again.

use anyhow::Result;
use karmada_api::{MultiClusterIngress, TRAFFIC_CONTROL};
use kube::{
    Api,
    api::{ApiResource, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::Instant;

use super::{AT_ONCE, Seen, all, leads, memory};
use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, Member, NAMESPACE},
    programs::Profile,
};

/// Runs the benchmark with `ingresses` ingresses and no provider, and passes each line of its results
/// to `print`.
///
/// # Errors
/// A part does not start, or a change is not seen within five minutes.
pub async fn bench(ingresses: u16, mut print: impl FnMut(&str)) -> Result<()> {
    let members = [Member(1), Member(2)];
    let fleet = Fleet::start(ApiKind::Real, Profile::Dist).await?;
    for member in members {
        fleet.join(member).await?;
    }
    fleet.place(&members).await?;
    let names: Vec<String> = (1..=ingresses).map(|nth| format!("ingress{nth}")).collect();
    let count = names.len();
    print(&format!("creating {count} ingresses"));
    all(names
        .iter()
        .map(|name| fleet.create_ingress(name, "karmada-rs")))
    .await?;
    let resource = ApiResource::erase::<MultiClusterIngress>(&());
    let objects = Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource);
    let mut seen = Seen::watch(objects).await?;

    print("measuring the limits");
    let [member, other] = members.map(Member::name);
    let blocks = json!({ "trafficBlockClusters": [&member] });
    let none = json!({ "trafficBlockClusters": null });
    let limit_blocked = seen.patch_all(&names, &blocks, count).await?;
    let limit_released = seen.patch_all(&names, &none, 0).await?;

    print("measuring the controller");
    let controller = fleet.ingress_controller_alone().await?;
    leads(&controller, "karmada_ingress_controller_lease_holder").await?;
    // The controller has reconciled every ingress once it has blocked another cluster in all of them and
    // admitted it again.
    for (actions, then) in [(json!([TRAFFIC_CONTROL]), count), (json!(null), 0)] {
        act(&fleet, &other, actions).await?;
        seen.until_count(then).await?;
    }
    let before = fleet.karmada.successful_writes().await?;
    let began = Instant::now();
    act(&fleet, &member, json!([TRAFFIC_CONTROL])).await?;
    let blocked = seen.until_count(count).await? - began;
    let began = Instant::now();
    act(&fleet, &member, json!(null)).await?;
    let released = seen.until_count(0).await? - began;
    let writes = fleet.karmada.successful_writes().await?.since(&before);

    print(&format!(
        "{count} ingresses; in parentheses the limit: the same patches by a bare client, {AT_ONCE} at a time"
    ));
    print(&format!(
        "{member} blocked in all: {blocked:.2?} ({limit_blocked:.2?})"
    ));
    print(&format!(
        "and admitted again: {released:.2?} ({limit_released:.2?})"
    ));
    print(&format!("writes for both: {writes}"));
    print(&memory(&controller)?);
    controller.stop().await
}

/// Sets the actions of a cluster.
async fn act(fleet: &Fleet, cluster: &str, actions: serde_json::Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": { "remedyActions": actions } }));
    let clusters = fleet.clusters();
    clusters
        .patch_status(cluster, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}
