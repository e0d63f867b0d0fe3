//! The cluster's DNS dies behind a cache on the node, which goes on answering what it knows.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use karmada_api::condition::DNS_READY;
use lab_parts::thresholds::Thresholds;
use pipeline_tests::{
    control_plane::Server,
    coredns::CoreDns,
    fleet::{Fleet, Member},
    netns::add_address,
    programs::{Profile, Running},
};

/// The DNS pod behind the caches of both members.
const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 53));

const ROUNDS: &str = "karmada_cluster_health_agent_probe_rounds_total";

async fn a_server_that_dies_behind_a_cache_is_found_by_asking_what_the_cache_cannot_know(
    server: Server,
) -> Result<()> {
    let members @ [asking, trusting] = [Member(1), Member(2)];
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
    let mut flags = Thresholds::SHORT.flags().to_vec();
    let trusting_agent = fleet.agent(trusting, &flags).await?;
    flags.extend([
        "--probe-uncached".to_owned(),
        format!("--probe-endpoints={POD}"),
    ]);
    let asking_agent = fleet.agent(asking, &flags).await?;
    for member in members {
        fleet.has_condition(member, DNS_READY, "True").await?;
    }

    server.stop().await?;
    fleet.has_condition(asking, DNS_READY, "False").await?;
    let message = message(&fleet, asking).await?;
    let told = format!("from {} (every pod)", asking.dns().ip());
    ensure!(message.contains(&told), "{message}");
    // Its thresholds have passed too, and it has seen nothing.
    let (all, good) = rounds(&trusting_agent).await?;
    ensure!(all > 0.0 && good >= all, "{good} of {all} rounds resolved");

    server.restart().await?;
    fleet.has_condition(asking, DNS_READY, "True").await?;
    asking_agent.stop().await?;
    trusting_agent.stop().await
}

/// All rounds of an agent, and those in which everything resolved.
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

    use super::a_server_that_dies_behind_a_cache_is_found_by_asking_what_the_cache_cannot_know;

    on_both!(a_server_that_dies_behind_a_cache_is_found_by_asking_what_the_cache_cannot_know);
}
