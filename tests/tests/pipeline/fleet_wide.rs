//! Reporters that have fallen silent, and speak again.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{
    condition::{DNS_READY, OWNED, REPORTER_LEASE, REPORTER_READY, REPORTER_SILENT_REASON},
    execution_namespace,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    agents::{self, Agents, Others},
    control_plane::ApiKind,
    fleet::{Fleet, Member},
    on_both,
    programs::Profile,
};
use serde_json::json;
use tokio::time::sleep;

/// Starts a fleet with these clusters, of which none has a verdict.
async fn fleet(server: ApiKind, members: &[Member]) -> Result<Fleet> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    for member in members {
        fleet.join(*member).await?;
    }
    Ok(fleet)
}

/// Writes a lease as an agent does that takes or renews it.
async fn heartbeat(fleet: &Fleet, member: Member) -> Result<()> {
    let leases: Api<Lease> =
        Api::namespaced(fleet.karmada.client(), &execution_namespace(&member.name()));
    // Whoever wrote this has a clock of its own, a quarter of a century behind.
    let renewed = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(25 * 365 * 24);
    let spec = json!({ "holderIdentity": "agent", "leaseDurationSeconds": 1,
        "renewTime": format!("{renewed:.6}") });
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": REPORTER_LEASE }, "spec": spec });
    let parameters = PatchParams::apply("agent").force();
    leases
        .patch(REPORTER_LEASE, &parameters, &Patch::Apply(lease))
        .await?;
    Ok(())
}

/// A reporter whose lease nobody renews is marked silent.
async fn silent_reporter_is_marked(server: ApiKind) -> Result<()> {
    let members = [1, 2, 3].map(Member);
    let fleet = fleet(server, &members).await?;
    for member in members {
        fleet.set_condition(member, REPORTER_READY, "True").await?;
        fleet.set_dns(member, "True").await?;
    }
    // The first is renewed, the second is not, and the third never had one.
    heartbeat(&fleet, Member(1)).await?;
    heartbeat(&fleet, Member(2)).await?;
    let grace = ["--reporter-grace-period=3s"];
    let controller = fleet.remedy_controller_with(&grace).await?;
    let renewing = async {
        loop {
            if let Err(error) = heartbeat(&fleet, Member(1)).await {
                return error;
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    let silent = async {
        fleet
            .has_condition(Member(2), REPORTER_READY, "False")
            .await?;
        let silent = r#"karmada_remedy_controller_silent_reporters{member="member2"}"#;
        controller.until_metric(silent, |count| count > 0.5).await?;
        fleet
            .has_event("Cluster", "member2", "ReporterSilent")
            .await
    };
    tokio::select! {
        error = renewing => return Err(error),
        silent = silent => silent?,
    }
    let conditions = async |member: Member| -> Result<Vec<(String, String, String)>> {
        let cluster = fleet.clusters().get(&member.name()).await?;
        let ours = cluster
            .conditions()
            .iter()
            .filter(|c| OWNED.contains(&c.type_.as_str()));
        let ours = ours.map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone()));
        Ok(ours.collect())
    };
    let of = |kind: &str, status: &str, reason: &str| {
        (kind.to_owned(), status.to_owned(), reason.to_owned())
    };
    let verdict = of(DNS_READY, "True", "Test");
    let fresh = [of(REPORTER_READY, "True", "Test"), verdict.clone()];
    assert_eq!(conditions(Member(1)).await?, fresh);
    assert_eq!(conditions(Member(3)).await?, fresh);
    let silent = of(REPORTER_READY, "False", REPORTER_SILENT_REASON);
    assert_eq!(conditions(Member(2)).await?, [silent, verdict]);
    // The conditions of other writers, and their fields that our types do not know, are as before.
    let cluster = fleet.clusters().get("member2").await?;
    assert!(cluster.condition("Ready").is_some());
    controller.stop().await
}

/// A reporter that returns takes the silence back.
async fn returning_reporter_speaks_again(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let fleet = fleet(server, &[agents::MEMBER]).await?;
    let grace = ["--reporter-grace-period=1s"];
    let controller = fleet.remedy_controller_with(&grace).await?;
    let mut agents = Agents::start(&fleet, 1, Others::Named).await?;
    agents::has_condition(&fleet, REPORTER_READY, "True", "").await?;
    agents.kill_all().await?;
    let renewed = "has not been renewed for more than 16s";
    agents::has_condition(&fleet, REPORTER_READY, "False", renewed).await?;
    agents.restart(0).await?;
    agents::has_condition(&fleet, REPORTER_READY, "True", "enough nodes vote").await?;
    agents.stop_all().await?;
    controller.stop().await
}

on_both!(
    long:
    silent_reporter_is_marked,
    returning_reporter_speaks_again,
);
