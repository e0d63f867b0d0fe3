//! The leader among a cluster's agents, and its succession.
#![expect(clippy::print_stdout, reason = "libtest captures it")]

use std::{pin::pin, time::Duration};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use jiff::SignedDuration;
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
use tokio::time::{Instant, timeout};

/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(15);
/// Ample for an immediate reaction on a busy machine, and well below the duration of a lease.
const AT_ONCE: Duration = Duration::from_secs(8);
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

/// Returns the node of the lease's holder.
fn holder(lease: &LeaseSpec) -> Option<String> {
    let holder = lease.holder_identity.as_deref()?;
    Some(holder.split_once('_')?.0.to_owned())
}

/// Waits until `is` returns `true` for the lease, and returns the time of that.
async fn until(
    lease: &mut (impl Stream<Item = LeaseSpec> + Unpin),
    is: impl Fn(&LeaseSpec) -> bool,
) -> Result<(LeaseSpec, Instant)> {
    let looking = async {
        loop {
            let now = lease.next().await.context("the watch has ended")?;
            if is(&now) {
                return Ok((now, Instant::now()));
            }
        }
    };
    timeout(HANGS, looking)
        .await
        .context("the lease never came to be so")?
}

/// A leader that is stopped hands over at once.
async fn stopped_leader_hands_over(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let mut agents = Agents::start(&fleet, 5, Others::Named).await?;
    let mut lease = pin!(lease(&fleet));
    for _ in 0..3 {
        let leader = agents.leader().await?;
        let name = agents::name(leader);
        until(&mut lease, |lease| holder(lease).as_ref() == Some(&name)).await?;
        agents.stop(leader).await?;
        let (_, released) = until(&mut lease, |lease| lease.holder_identity.is_none()).await?;
        let another = |lease: &LeaseSpec| holder(lease).is_some_and(|holder| holder != name);
        let (_, taken) = until(&mut lease, another).await?;
        println!("handed over within {:?}", taken - released);
        assert!(taken - released < AT_ONCE, "{:?}", taken - released);
        agents.restart(leader).await?;
    }
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 5).await?;
    has_condition(&fleet, REPORTER_READY, "True", "enough nodes vote").await?;
    agents.stop_all().await
}

/// A dead leader's lease is taken when it has run out, and not before.
async fn dead_leaders_lease_runs_out(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let mut agents = Agents::start(&fleet, 5, Others::Named).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 5).await?;
    let name = agents::name(leader);
    let mut lease = pin!(lease(&fleet));
    let (mut last, _) = until(&mut lease, |lease| holder(lease).as_ref() == Some(&name)).await?;
    agents.kill(leader).await?;
    let killed = Instant::now();
    let (taken, at) = loop {
        let (now, at) = until(&mut lease, |_| true).await?;
        if holder(&now).as_ref() != Some(&name) {
            break (now, at);
        }
        last = now;
    };
    println!("taken {:?} after it died", at - killed);
    // By the times in the lease: this watch may hear of a renewal later than the agents do.
    let renewed = last.renew_time.context("it was never renewed")?.0;
    let acquired = taken.acquire_time.context("it was never acquired")?.0;
    assert!(acquired.duration_since(renewed) >= SignedDuration::try_from(LEASE)?);
    assert!(at - killed < LEASE + AT_ONCE);
    let new = agents.leader().await?;
    agents.votes(new, "silent", 1).await?;
    agents.stop_all().await
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
    let mut lease = pin!(lease(&fleet));
    until(&mut lease, |lease| {
        holder(lease).is_some_and(|holder| holder != name)
    })
    .await?;
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

/// When all agents are dead the lease shows it.
async fn lease_shows_dead_agents(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let mut agents = Agents::start(&fleet, 3, Others::Named).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 3).await?;
    has_condition(&fleet, REPORTER_READY, "True", "enough nodes vote").await?;
    agents.kill_all().await?;
    let mut lease = pin!(lease(&fleet));
    let (last, _) = until(&mut lease, |lease| lease.holder_identity.is_some()).await?;
    assert_eq!(last.lease_duration_seconds, Some(15));
    let renewal = timeout(LEASE, lease.next()).await;
    assert!(renewal.is_err(), "somebody renewed it: {renewal:?}");
    let cluster = fleet.clusters().get(&MEMBER.name()).await?;
    assert_eq!(cluster.condition(DNS_READY).context("none")?.status, "True");
    Ok(())
}

on_both!(
    stopped_leader_hands_over,
    dead_leaders_lease_runs_out,
    late_leader_writes_nothing,
    only_connected_agent_reports,
    lease_shows_dead_agents,
);
