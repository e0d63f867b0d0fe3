//! Controllers write nothing to a settled fleet, and no write of others is lost.

use std::sync::Arc;

use anyhow::Result;
use karmada_api::{
    Cluster, TRAFFIC_CONTROL,
    condition::{DNS_READY, REPORTER_READY},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    api::merge_status,
    control_plane::ApiKind,
    coredns::Silence,
    fleet::{Fleet, Member, maintenance, on_dns},
    on_both,
    programs::Profile,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Starts every program, waits until all are idle, and stops them.
async fn run_until_settled(fleet: &Fleet) -> Result<()> {
    let agent = fleet.agent(Member(1), &ProbeTiming::SHORT.flags()).await?;
    let remedies = fleet.remedy_controller().await?;
    let ingresses = fleet.ingress_controller().await?;
    fleet.has_condition(Member(1), DNS_READY, "True").await?;
    fleet
        .has_condition(Member(1), REPORTER_READY, "True")
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;

    let held = "karmada_cluster_health_agent_lease_holder";
    agent.until_metric(held, |held| held > 0.0).await?;
    let voted = r#"karmada_cluster_health_agent_vote{vote="healthy"}"#;
    agent.until_metric(voted, |vote| vote > 0.0).await?;
    for (program, name) in [(&remedies, "remedy"), (&ingresses, "ingress")] {
        let metric = |metric| format!("karmada_{name}_controller_{metric}");
        let (reconciles, queue) = (metric("reconciles_total"), metric("queue_length"));
        program
            .until_metric(&reconciles, |count| count > 0.0)
            .await?;
        program.until_metric(&queue, |length| length == 0.0).await?;
    }
    for program in [agent, remedies, ingresses] {
        program.stop().await?;
    }
    Ok(())
}

/// A second run of every program writes nothing but its lease.
async fn second_run_writes_only_leases(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    Fleet::lay_network(&members)?;
    let fleet = Fleet::with_members(server, Profile::Debug, &members).await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    let _dns = fleet.dns(Member(1)).await?;
    run_until_settled(&fleet).await?;
    let karmada = fleet.karmada.successful_writes().await?;
    let gateway = fleet.gateway.successful_writes().await?;
    assert!(!gateway.is_empty());

    run_until_settled(&fleet).await?;
    let written = fleet.karmada.successful_writes().await?.since(&karmada);
    assert_eq!(written.to_string(), "no writes");
    let written = fleet.gateway.successful_writes().await?.since(&gateway);
    assert_eq!(written.to_string(), "no writes");
    Ok(())
}

/// Writes the condition `Busy`, and no other, as fast as possible until `done`.
async fn write_busily(clusters: Api<Cluster>, done: CancellationToken) -> Result<u64> {
    let mut written = 0;
    while !done.is_cancelled() {
        let cluster = clusters.get("member1").await?;
        let mut conditions = serde_json::to_value(cluster.conditions())?;
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != "Busy");
            conditions.push(
                json!({ "type": "Busy", "status": "True", "reason": format!("N{}", written + 1),
                "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" }),
            );
        }
        let patch = json!({
            "metadata": { "resourceVersion": cluster.metadata.resource_version },
            "status": { "conditions": conditions },
        });
        match clusters
            .patch_status("member1", &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => written += 1,
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Leaves a verdict behind, whose message the API server stores in another encoding than a client sends.
async fn leave_verdict(clusters: &Api<Cluster>) -> Result<()> {
    let cluster = clusters.get("member1").await?;
    let mut conditions = serde_json::to_value(cluster.conditions())?;
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(
            json!({ "type": DNS_READY, "status": "Unknown", "reason": "Left",
            "message": "nodes <a> & <b>", "lastTransitionTime": "2026-11-20T08:00:00Z" }),
        );
    }
    let patch = json!({ "conditions": conditions });
    merge_status(clusters, "member1", &patch).await
}

/// Conditions of another writer survive ours with both at full speed, and any message of ours is replaced.
async fn others_conditions_survive(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[Member(1)])?;
    let fleet = Arc::new(Fleet::start(server, Profile::Debug).await?);
    fleet.join(Member(1)).await?;
    let before = fleet.clusters().get("member1").await?;
    leave_verdict(&fleet.clusters()).await?;
    let mut dns = fleet.dns(Member(1)).await?;
    let agent = fleet.agent(Member(1), &ProbeTiming::SHORT.flags()).await?;
    let controller = fleet.remedy_controller().await?;
    fleet.create_remedy("dns", on_dns()).await?;

    let done = CancellationToken::new();
    let busy = tokio::spawn(write_busily(fleet.clusters(), done.clone()));
    for _ in 0..3 {
        fleet.has_condition(Member(1), DNS_READY, "True").await?;
        fleet.has_actions(Member(1), &[]).await?;
        dns.stop().await?;
        let silence = Silence::on(Member(1).dns())?;
        fleet.has_condition(Member(1), DNS_READY, "False").await?;
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
        drop(silence);
        dns.restart().await?;
    }
    fleet.has_condition(Member(1), DNS_READY, "True").await?;
    done.cancel();
    let written = busy.await??;
    assert!(written > 100, "the other writer was slow: {written}");

    let after = fleet.clusters().get("member1").await?;
    let busy = after
        .condition("Busy")
        .map(|condition| condition.reason.clone());
    assert_eq!(busy, Some(format!("N{written}")), "its last write stands");
    for condition in before.conditions() {
        assert_eq!(after.condition(&condition.type_), Some(condition));
    }
    let mut kinds: Vec<&str> = after
        .conditions()
        .iter()
        .map(|c| c.type_.as_str())
        .collect();
    let all = kinds.len();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), all, "one condition of each type");
    agent.stop().await?;
    controller.stop().await
}

on_both!(long: second_run_writes_only_leases, others_conditions_survive,);
