//! Placements do not pick a member whose health is bad.

use anyhow::Result;
use fleet_api::{ClusterResourcePlacementEviction, MemberCluster};
use hickory_proto::op::ResponseCode;
use karmada_api::{Remedy, TRAFFIC_CONTROL, condition::DNS_READY};
use kube::{Api, api::DeleteParams};
use lab_parts::dns::{self, DnsServer, Response};
use pipeline_tests::{
    fleet::{Member, on_dns},
    placement::PlacementFleet,
    programs::Running,
    propagation::create,
    wait::until,
};
use serde_json::json;

use super::{Stage, said, stories};

/// The member whose DNS dies: with equal scores its name, the largest, is picked first.
const SICK: Member = Member(3);

/// Waits until the member has a taint for this condition, or none.
async fn until_tainted(fleet: &PlacementFleet, condition: &str, is_tainted: bool) -> Result<()> {
    let what = if is_tainted { "tainted" } else { "free" };
    let has_taint = |cluster: &MemberCluster| {
        let mut taints = cluster.spec.taints.iter();
        taints.any(|taint| taint.key == format!("cluster.karmada-rs.io/{condition}"))
    };
    until(&fleet.clusters(), &SICK.name(), what, |found| {
        found.is_some_and(|cluster| has_taint(cluster) == is_tainted)
    })
    .await?;
    Ok(())
}

/// Fills and places a namespace in one member. Returns the member's name.
async fn picked(stage: &Stage, namespace: &str) -> Result<String> {
    stage.fill(namespace).await?;
    let policy = json!({ "placementType": "PickN", "numberOfClusters": 1 });
    stage.place(namespace, policy).await?;
    stage.until_complete(namespace).await?;
    let status = stage.status(namespace).await?;
    Ok(status.placement_statuses[0].cluster_name.clone())
}

/// Evicts a placement from the member, and waits until it is elsewhere.
async fn evict(stage: &Stage, placement: &str) -> Result<()> {
    let evictions: Api<ClusterResourcePlacementEviction> = Api::all(stage.fleet.hub.client());
    let spec = json!({ "placementName": placement, "clusterName": SICK.name() });
    create(
        &evictions,
        json!({ "metadata": { "name": placement }, "spec": spec }),
    )
    .await?;
    until(&evictions, placement, "executed", |found| {
        let status = found.and_then(|found| found.status.as_ref());
        let told = status.map_or_else(Vec::new, |status| said(&status.conditions));
        told.contains(&"Executed True ClusterResourcePlacementEvictionExecuted".to_owned())
    })
    .await?;
    stage.until_value(Member(2), placement, "edited").await?;
    stage.until_complete(placement).await
}

/// Starts a controller that taints members so, in place of the one that runs, and an agent of the member. Returns the agent.
async fn taint_on(stage: &mut Stage, condition: &str, dns: &DnsServer) -> Result<Running> {
    let taint = format!("--taint-on-condition={condition}:NoSchedule");
    let next = stage.fleet.run_with(&[&taint]).await?;
    std::mem::replace(&mut stage.programs, next).stop().await?;
    stage.fleet.run_health_agent(SICK, dns.address()).await
}

/// Cases F65, F66: DNS dies in a member, and what is placed then goes elsewhere; what was there stays until it is evicted;
/// DNS returns, and the member is picked again.
async fn dead_dns_keeps_away(stage: &mut Stage) -> Result<()> {
    let dns = DnsServer::start(dns::cluster()).await?;
    let agent = taint_on(stage, &format!("{DNS_READY}=False"), &dns).await?;
    assert_eq!(picked(stage, "while-well").await?, SICK.name());

    dns.set(Response::Code(ResponseCode::Refused));
    until_tainted(&stage.fleet, DNS_READY, true).await?;
    assert_eq!(picked(stage, "while-dead").await?, Member(2).name());
    stage.edit("while-well", "edited").await?;
    stage.until_value(SICK, "while-well", "edited").await?;
    evict(stage, "while-well").await?;

    dns.set(dns::cluster());
    until_tainted(&stage.fleet, DNS_READY, false).await?;
    assert_eq!(picked(stage, "well-again").await?, SICK.name());
    for namespace in ["while-well", "while-dead", "well-again"] {
        stage.remove(namespace).await?;
    }
    agent.stop().await
}

/// Case F119: DNS dies in a member, and a Remedy keeps placements away from it, as long as it is there.
async fn remedy_keeps_away(stage: &mut Stage) -> Result<()> {
    let dns = DnsServer::start(Response::Code(ResponseCode::Refused)).await?;
    let agent = taint_on(stage, &format!("{TRAFFIC_CONTROL}=True"), &dns).await?;
    let controller = stage.fleet.run_remedy_controller().await?;
    let remedies: Api<Remedy> = Api::all(stage.fleet.hub.client());
    let remedy = json!({ "metadata": { "name": "dns" }, "spec": on_dns() });
    create(&remedies, remedy).await?;
    until_tainted(&stage.fleet, TRAFFIC_CONTROL, true).await?;
    assert_eq!(picked(stage, "while-blocked").await?, Member(2).name());

    remedies.delete("dns", &DeleteParams::default()).await?;
    until_tainted(&stage.fleet, TRAFFIC_CONTROL, false).await?;
    assert_eq!(picked(stage, "without-remedy").await?, SICK.name());
    for namespace in ["while-blocked", "without-remedy"] {
        stage.remove(namespace).await?;
    }
    controller.stop().await?;
    agent.stop().await
}

stories!(3: dead_dns_keeps_away, remedy_keeps_away);
