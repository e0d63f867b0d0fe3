//! The leader among a cluster's agents, and its succession.

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
    agents::{self, Agents, MEMBER, Others, PREFIX, has_condition},
    control_plane::ApiKind,
    fleet::Fleet,
    on_both,
    programs::Profile,
};
use tokio::time::timeout;

/// The limit until a change of the lease.
const HANGS: Duration = Duration::from_mins(1);

/// Starts a fleet with one cluster that has no verdict yet.
async fn fleet(server: ApiKind) -> Result<Fleet> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    Ok(fleet)
}

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
    let fleet = fleet(server).await?;
    let agents = Agents::start(&fleet, 3, Others::Named).await?;
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
    let fleet = fleet(server).await?;
    let cut_off = vec![0, 1, 3, 4];
    let agents = Agents::start_cut_off(&fleet, 5, Others::Named, cut_off).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    assert_eq!(agents.leader().await?, 2);
    agents.votes(2, "healthy", 5).await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "5 of 5 nodes fail").await?;
    agents.stop_all().await
}

on_both!(late_leader_writes_nothing, only_connected_agent_reports,);
