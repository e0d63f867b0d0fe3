//! The cluster's DNS dies behind a cache on the node, which still serves cached names.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use karmada_api::condition::DNS_READY;
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    coredns::CoreDns,
    fleet::{Fleet, Member},
    netns::add_address,
    programs::{Profile, Running},
};

/// The DNS pod behind the caches of both members.
const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 53));

const ROUNDS: &str = "karmada_cluster_health_agent_probe_rounds_total";

/// A server that dies behind a cache is found by queries that no cache can serve.
async fn cache_hides_no_outage(server: ApiKind) -> Result<()> {
    let members @ [uncached, cached] = [Member(1), Member(2)];
    Fleet::lay_network(&members)?;
    add_address(POD)?;
    let pod = SocketAddr::new(POD, 53);
    let fleet = Fleet::start(server, Profile::Debug).await?;
    let mut server = CoreDns::start(pod, fleet.gateway.kubeconfig_path()).await?;
    let mut caches = Vec::new();
    for member in members {
        fleet.join(member).await?;
        caches.push(CoreDns::cache(member.dns(), pod).await?);
    }
    let mut flags = ProbeTiming::SHORT.flags().to_vec();
    let cached_agent = fleet.agent(cached, &flags).await?;
    flags.extend([
        "--probe-uncached".to_owned(),
        format!("--probe-endpoints={POD}"),
    ]);
    let uncached_agent = fleet.agent(uncached, &flags).await?;
    for member in members {
        fleet.has_condition(member, DNS_READY, "True").await?;
    }

    server.stop().await?;
    fleet.has_condition(uncached, DNS_READY, "False").await?;
    let message = message(&fleet, uncached).await?;
    let expected = format!("from {} (every pod)", uncached.dns().ip());
    ensure!(message.contains(&expected), "{message}");
    // Its thresholds have passed too, and it has seen nothing.
    let (all, good) = rounds(&cached_agent).await?;
    ensure!(all > 0.0 && good >= all, "{good} of {all} rounds resolved");

    server.restart().await?;
    fleet.has_condition(uncached, DNS_READY, "True").await?;
    uncached_agent.stop().await?;
    cached_agent.stop().await
}

/// Returns the number of rounds of an agent, and of those in which every name resolved.
async fn rounds(agent: &Running) -> Result<(f64, f64)> {
    let resolved = format!("{ROUNDS}{{result=\"resolved\"}}");
    Ok((agent.metric(ROUNDS).await?, agent.metric(&resolved).await?))
}

async fn message(fleet: &Fleet, member: Member) -> Result<String> {
    let cluster = fleet.clusters().get(&member.name()).await?;
    let condition = cluster.condition(DNS_READY).context("no condition")?;
    Ok(condition.message.clone())
}

mod with_tools {
    use pipeline_tests::on_both;

    use super::cache_hides_no_outage;

    on_both!(long: cache_hides_no_outage);
}
