//! The agents of a cluster: how they know each other, who of them leads, and the consequences when nobody does.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use std::{pin::pin, time::Duration};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use karmada_api::{
    condition::{DNS_READY, REPORTER_READY},
    execution_namespace,
};
use kube::{
    Api,
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use pipeline_tests::{
    agents::{self, Agents, MEMBER, PREFIX, has_condition},
    control_plane::ApiKind,
    fleet::Fleet,
    manifests, on_both,
};
use tokio::time::timeout;

/// The limit until a change of the lease.
const HANGS: Duration = Duration::from_mins(1);

/// Watches the lease.
fn lease(fleet: &Fleet) -> impl Stream<Item = LeaseSpec> {
    let leases: Api<Lease> =
        Api::namespaced(fleet.karmada.client(), &execution_namespace(&MEMBER.name()));
    let own = Config::default().fields("metadata.name=cluster-health-agent");
    watcher(leases, own)
        .default_backoff()
        .applied_objects()
        .filter_map(async |lease| lease.ok()?.spec)
}

/// Waits until another node than this holds the lease.
async fn until_followed(fleet: &Fleet, node: &str) -> Result<()> {
    let mut lease = pin!(lease(fleet));
    let looking = async {
        loop {
            let now = lease.next().await.context("the watch has ended")?;
            let holder = now.holder_identity.as_deref();
            let holder = holder.and_then(|holder| holder.split_once('_'));
            if holder.is_some_and(|(holder, _)| holder != node) {
                return Ok(());
            }
        }
    };
    timeout(HANGS, looking)
        .await
        .context("nobody follows the leader")?
}

/// A leader that was stopped and goes on later writes nothing.
async fn late_leader_writes_nothing(server: ApiKind) -> Result<()> {
    let fleet = agents::fleet(server).await?;
    let agents = Agents::start(&fleet, 3).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    has_condition(&fleet, REPORTER_READY, "True", "").await?;
    let old = agents.leader().await?;
    agents.votes(old, "healthy", 3).await?;
    let name = agents::name(old);
    let applied = format!("{PREFIX}writes_total{{target=\"conditions\",outcome=\"applied\"}}");
    let written = agents.on(old)?.metric(&applied).await?;

    agents.on(old)?.pause()?;
    until_followed(&fleet, &name).await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "2 of 3 nodes fail").await?;
    agents.on(old)?.resume()?;
    agents.on(old)?.until_output("No longer leading").await?;
    agents
        .on(old)?
        .until_metric(&format!("{PREFIX}lease_holder"), |value| value < 0.5)
        .await?;
    let after = agents.on(old)?.metric(&applied).await?;
    assert!((after - written).abs() < 0.5, "it wrote as a leader of old");
    let cluster = fleet.clusters().get(&MEMBER.name()).await?;
    assert_eq!(
        cluster.condition(DNS_READY).context("none")?.status,
        "False"
    );
    agents.stop_all().await
}

/// The one agent that reaches Karmada reports.
async fn only_connected_agent_reports(server: ApiKind) -> Result<()> {
    let fleet = agents::fleet(server).await?;
    let cut_off = vec![0, 1, 3, 4];
    let agents = Agents::start_cut_off(&fleet, 5, cut_off).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    assert_eq!(agents.leader().await?, 2);
    agents.votes(2, "healthy", 5).await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "5 of 5 nodes fail").await?;
    agents.stop_all().await
}

/// Agents that lost the member's API go on with those they know.
async fn known_peers_outlive_the_api(server: ApiKind) -> Result<()> {
    let mut fleet = agents::fleet(server).await?;
    let member = &fleet.gateway;
    member.namespace(agents::SERVICE.0).await?;
    manifests::apply_edited(
        &member.client(),
        "member/cluster-health-agent.yaml",
        |text| {
            let own = "metadata:\n  name: cluster-health-agent";
            text.replace(own, &format!("{own}\n  namespace: {}", agents::SERVICE.0))
        },
    )
    .await?;
    let (namespace, account) = agents::SERVICE;
    let kubeconfig = member.account_kubeconfig(namespace, account)?;
    let mut agents = Agents::start_listed(&fleet, 3, kubeconfig).await?;
    agents
        .on(0)?
        .until_output("lists an agent, waiting")
        .await?;
    let waiting = agents.on(0)?.readiness().await.unwrap_err().to_string();
    assert!(waiting.contains("peers"), "{waiting}");

    let writes = fleet.gateway.successful_writes().await?;
    agents::list(fleet.gateway.client(), 3).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 3).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    let written = fleet.gateway.successful_writes().await?.since(&writes);
    assert_eq!(
        written.to_string(),
        "1 POST endpointslices.discovery.k8s.io"
    );

    // Agents list the others at random moments, and one without a list does not campaign.
    for node in 0..3 {
        let known = "karmada_cluster_health_agent_known_agents";
        agents
            .on(node)?
            .until_metric(known, |known| known > 2.5)
            .await?;
    }
    fleet.gateway.stop_api().await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "3 of 3 nodes fail").await?;
    let leader = agents.leader().await?;
    agents.stop(leader).await?;
    agents.leader().await?;
    agents.dns_works_on(0..3);
    has_condition(&fleet, DNS_READY, "True", "").await?;
    agents.stop_all().await
}

/// A reporter that returns takes the silence back.
async fn returning_reporter_speaks_again(server: ApiKind) -> Result<()> {
    let fleet = agents::fleet(server).await?;
    let grace = ["--reporter-grace-period=1s"];
    let controller = fleet.remedy_controller_with(&grace).await?;
    let mut agents = Agents::start(&fleet, 1).await?;
    has_condition(&fleet, REPORTER_READY, "True", "").await?;
    agents.kill_all().await?;
    let renewed = "has not been renewed for more than 16s";
    has_condition(&fleet, REPORTER_READY, "False", renewed).await?;
    let event = "ReporterSilent";
    fleet.has_event("Cluster", &MEMBER.name(), event).await?;
    agents.restart(0).await?;
    has_condition(&fleet, REPORTER_READY, "True", "enough nodes vote").await?;
    agents.stop_all().await?;
    controller.stop().await
}

on_both!(
    long:
    late_leader_writes_nothing,
    only_connected_agent_reports,
    known_peers_outlive_the_api,
    returning_reporter_speaks_again,
);
