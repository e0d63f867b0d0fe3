//! A converged API sees no write, and nobody's write is lost.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use api::{
    Cluster, TRAFFIC_CONTROL,
    condition::{DNS_READY, REPORTER_READY},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    coredns::{CoreDns, Silence},
    fleet::{Fleet, INGRESS, Member, isolated},
    outage::Thresholds,
    programs::Profile,
    test_name,
    wait::{has_actions, has_blocked, has_condition, until},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const FAST: Thresholds = Thresholds {
    period: Duration::from_secs(1),
    threshold: Duration::from_secs(2),
};

#[test]
fn a_second_run_of_every_program_writes_nothing_but_its_lease() {
    isolated(test_name!(), async || {
        let members = [Member(1), Member(2)];
        Fleet::lay_network(&members)?;
        let fleet = Fleet::with_members(Profile::Debug, &members).await?;
        let remedy = json!({ "clusterAffinity": { "clusterNames": ["member1"] }, "actions": [TRAFFIC_CONTROL] });
        fleet.create_remedy("maintenance", remedy).await?;
        let _dns = CoreDns::start(Member(1).dns(), fleet.gateway.kubeconfig_path()).await?;

        let mut before = None;
        for _ in 0..2 {
            let programs = [
                fleet.agent(Member(1), &FAST.flags()).await?,
                fleet.remedy_controller().await?,
                fleet.ingress_controller().await?,
            ];
            for kind in [DNS_READY, REPORTER_READY] {
                until(
                    &fleet.clusters(),
                    "member1",
                    kind,
                    has_condition(kind, "True"),
                )
                .await?;
            }
            until(
                &fleet.clusters(),
                "member1",
                "acted on",
                has_actions(&[TRAFFIC_CONTROL]),
            )
            .await?;
            until(
                &fleet.ingresses(),
                INGRESS,
                "blocked",
                has_blocked(&["member1"]),
            )
            .await?;
            fleet.serves(&[Member(2)]).await?;
            let [agent, remedies, ingresses] = &programs;
            agent
                .until_metric("karmada_cluster_health_agent_lease_holder", |held| {
                    held > 0.0
                })
                .await?;
            agent
                .until_metric("karmada_cluster_health_agent_vote", |vote| vote > 0.0)
                .await?;
            for (program, name) in [(remedies, "remedy"), (ingresses, "ingress")] {
                let metric = |metric| format!("karmada_{name}_controller_{metric}");
                program
                    .until_metric(&metric("reconciles_total"), |count| count > 0.0)
                    .await?;
                program
                    .until_metric(&metric("queue_length"), |length| length == 0.0)
                    .await?;
            }
            for program in programs {
                program.stop().await?;
            }
            let written = (
                fleet.karmada.successful_writes().await?,
                fleet.gateway.successful_writes().await?,
            );
            if let Some((karmada, gateway)) = before.replace(written.clone()) {
                assert_eq!(written.0.since(&karmada).to_string(), "no writes");
                assert_eq!(written.1.since(&gateway).to_string(), "no writes");
            }
        }
        Ok(())
    });
}

/// Another writer of conditions, as fast as it can: it owns `Busy` and touches no other.
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

#[test]
fn conditions_of_another_writer_survive_ours_with_both_at_full_speed() {
    isolated(test_name!(), async || {
        Fleet::lay_network(&[Member(1)])?;
        let fleet = Arc::new(Fleet::start(Profile::Debug).await?);
        fleet.join(Member(1)).await?;
        let before = fleet.clusters().get("member1").await?;
        let mut dns = CoreDns::start(Member(1).dns(), fleet.gateway.kubeconfig_path()).await?;
        let agent = fleet.agent(Member(1), &FAST.flags()).await?;
        let controller = fleet.remedy_controller().await?;
        let remedy = json!({ "actions": [TRAFFIC_CONTROL], "decisionMatches": [{ "clusterConditionMatch": {
            "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" } }] });
        fleet.create_remedy("dns", remedy).await?;

        let done = CancellationToken::new();
        let busy = tokio::spawn(write_busily(fleet.clusters(), done.clone()));
        for _ in 0..3 {
            until(
                &fleet.clusters(),
                "member1",
                "well",
                has_condition(DNS_READY, "True"),
            )
            .await?;
            until(&fleet.clusters(), "member1", "released", has_actions(&[])).await?;
            dns.stop().await?;
            let silence = Silence::on(Member(1).dns())?;
            until(
                &fleet.clusters(),
                "member1",
                "ill",
                has_condition(DNS_READY, "False"),
            )
            .await?;
            until(
                &fleet.clusters(),
                "member1",
                "acted on",
                has_actions(&[TRAFFIC_CONTROL]),
            )
            .await?;
            drop(silence);
            dns.restart().await?;
        }
        until(
            &fleet.clusters(),
            "member1",
            "well",
            has_condition(DNS_READY, "True"),
        )
        .await?;
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
    });
}
