//! Placements do not pick a member whose health is bad.

use anyhow::Result;
use fleet_api::MemberCluster;
use hickory_proto::op::ResponseCode;
use karmada_api::{Remedy, TRAFFIC_CONTROL};
use kube::{Api, api::DeleteParams};
use lab_parts::dns::{DnsServer, Response};
use pipeline_tests::{
    api::create,
    fleet::{Member, on_dns},
    placement::PlacementFleet,
    wait::until,
};
use serde_json::json;

use super::{Stage, stories};

/// The member whose DNS dies: with equal scores its name, the largest, is picked first.
const SICK: Member = Member(3);

/// Waits until the member has a taint for the action on its traffic, or none.
async fn until_tainted(fleet: &PlacementFleet, is_tainted: bool) -> Result<()> {
    let what = if is_tainted { "tainted" } else { "free" };
    let has_taint = |cluster: &MemberCluster| {
        let mut taints = cluster.spec.taints.iter();
        taints.any(|taint| taint.key == format!("cluster.karmada-rs.io/{TRAFFIC_CONTROL}"))
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

/// Case F119: DNS dies in a member, and a Remedy keeps placements away from it, as long as it is there.
async fn remedy_keeps_away(stage: &mut Stage) -> Result<()> {
    let dns = DnsServer::start(Response::Code(ResponseCode::Refused)).await?;
    let taint = format!("--taint-on-condition={TRAFFIC_CONTROL}=True:NoSchedule");
    let next = stage.fleet.run_with(&[&taint]).await?;
    std::mem::replace(&mut stage.programs, next).stop().await?;
    let agent = stage.fleet.run_health_agent(SICK, dns.address()).await?;
    let controller = stage.fleet.run_remedy_controller().await?;
    let remedies: Api<Remedy> = Api::all(stage.fleet.hub.client());
    let remedy = json!({ "metadata": { "name": "dns" }, "spec": on_dns() });
    create(&remedies, remedy).await?;
    until_tainted(&stage.fleet, true).await?;
    assert_eq!(picked(stage, "while-blocked").await?, Member(2).name());

    remedies.delete("dns", &DeleteParams::default()).await?;
    until_tainted(&stage.fleet, false).await?;
    assert_eq!(picked(stage, "without-remedy").await?, SICK.name());
    for namespace in ["while-blocked", "without-remedy"] {
        stage.remove(namespace).await?;
    }
    controller.stop().await?;
    agent.stop().await
}

stories!(3: remedy_keeps_away);
