//! What the remedy controller does for the fleet as a whole: who leads, how many clusters conditions may
//! block, and reporters that have fallen silent.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{
    TRAFFIC_CONTROL,
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
    fleet::{Fleet, Member, maintenance, on_dns},
    on_both,
    programs::Profile,
    refusals::Refusals,
};
use serde_json::json;
use tokio::time::sleep;

const HOLDER: &str = "karmada_remedy_controller_lease_holder";

/// Starts a fleet with these clusters, of which none has a verdict.
async fn fleet(server: ApiKind, members: &[Member]) -> Result<Fleet> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    for member in members {
        fleet.join(*member).await?;
    }
    Ok(fleet)
}

/// A leader that cannot read hands over to a replica that can.
async fn blind_leader_hands_over(server: ApiKind) -> Result<()> {
    let fleet = fleet(server, &[Member(1)]).await?;
    let proxy = Refusals::before(&fleet.karmada).await?;
    let leader = fleet.remedy_controller_behind(&proxy).await?;
    leader.until_metric(HOLDER, |held| held > 0.5).await?;
    let other = fleet.remedy_controller().await?;

    // Only the Remedies: the lease and the clusters stay within its reach.
    proxy.refuse(Some("/remedies"));
    leader.until_output("Watch failed").await?;
    other.until_metric(HOLDER, |held| held > 0.5).await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    let failing = "karmada_remedy_controller_failing_watches{watch=\"remedies\"}";
    assert!(leader.metric(failing).await? > 0.5);

    proxy.refuse(None);
    leader.until_output("Can read again").await?;
    other.stop().await?;
    leader.until_metric(HOLDER, |held| held > 0.5).await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    leader.stop().await
}

/// Conditions block no more clusters than the bound allows.
async fn conditions_respect_the_bound(server: ApiKind) -> Result<()> {
    let members = [1, 2, 3, 4].map(Member);
    let fleet = fleet(server, &members).await?;
    fleet.create_remedy("dns", on_dns()).await?;
    let bounded = ["--max-blocked-clusters=50%"];
    let controller = fleet.remedy_controller_with(&bounded).await?;
    for member in [2, 4].map(Member) {
        fleet.set_dns(member, "False").await?;
        fleet.has_actions(member, &[TRAFFIC_CONTROL]).await?;
    }
    for member in [1, 3].map(Member) {
        fleet.set_dns(member, "False").await?;
        let kept = "--max-blocked-clusters=50% lets conditions block 2 of 4 clusters";
        fleet.has_event("Cluster", &member.name(), kept).await?;
    }
    let over = "karmada_remedy_controller_clusters_over_bound";
    assert!((controller.metric(over).await? - 2.0).abs() < 0.5);
    assert_eq!(
        controller
            .output()?
            .matches("Cluster kept unblocked")
            .count(),
        2
    );

    // A person's decision is neither bounded nor counted.
    fleet
        .create_remedy("maintenance", maintenance(Member(3)))
        .await?;
    fleet.has_actions(Member(3), &[TRAFFIC_CONTROL]).await?;

    // A restart keeps whom it finds blocked, and the next by name takes a freed place.
    controller.stop().await?;
    let controller = fleet.remedy_controller_with(&bounded).await?;
    controller.until_output("Cluster kept unblocked").await?;
    fleet.has_actions(Member(2), &[TRAFFIC_CONTROL]).await?;
    fleet.has_actions(Member(4), &[TRAFFIC_CONTROL]).await?;
    fleet.has_actions(Member(1), &[]).await?;
    fleet.set_dns(Member(2), "True").await?;
    fleet.has_actions(Member(2), &[]).await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    controller.stop().await
}

/// Writes a lease as an agent does that takes or renews it.
async fn rival_is_named_and_outlasted(server: ApiKind) -> Result<()> {
    let fleet = fleet(server, &[Member(1)]).await?;
    let controller = fleet.remedy_controller().await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    let rival = PatchParams {
        field_manager: Some("karmada-controller-manager".to_owned()),
        ..PatchParams::default()
    };
    let undo = Patch::Merge(json!({ "status": { "remedyActions": ["Other"] } }));
    for _ in 0..3 {
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
        let name = Member(1).name();
        fleet.clusters().patch_status(&name, &rival, &undo).await?;
    }
    let named = "RemedyActionsContested karmada-controller-manager undoes every write";
    fleet.has_event("Cluster", &Member(1).name(), named).await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    controller.stop().await
}

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

/// A changed kubeconfig is used without a restart.
async fn changed_kubeconfig_needs_no_restart(server: ApiKind) -> Result<()> {
    let fleet = fleet(server, &[Member(1)]).await?;
    let proxy = Refusals::before(&fleet.karmada).await?;
    let controller = fleet.remedy_controller_behind(&proxy).await?;
    controller.until_metric(HOLDER, |held| held > 0.5).await?;
    // The proxy is the old server, and its end is that of the old credentials.
    let account = "system:serviceaccount:karmada-system:remedy-controller";
    let direct = fleet.karmada.kubeconfig_for(account, None)?;
    std::fs::copy(direct, proxy.kubeconfig())?;
    controller
        .until_output("Read the changed kubeconfig")
        .await?;
    proxy.refuse(Some("/"));
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    let ends = "karmada_remedy_controller_credentials_expiry_timestamp_seconds";
    let ends = controller.metric(ends).await?;
    // Only the real API asks for a certificate.
    assert_eq!(ends > 1.8e9, server == ApiKind::Real, "{ends}");
    controller.stop().await
}

on_both!(
    long:
    blind_leader_hands_over,
    conditions_respect_the_bound,
    silent_reporter_is_marked,
    returning_reporter_speaks_again,
    changed_kubeconfig_needs_no_restart,
    rival_is_named_and_outlasted,
);
