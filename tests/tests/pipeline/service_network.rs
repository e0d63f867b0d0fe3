//! The Service network as a signal of its own, beside DNS. kube-proxy is emulated.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use anyhow::Result;
use karmada_api::{
    TRAFFIC_CONTROL,
    condition::{DNS_READY, REPORTER_READY, SERVICE_NETWORK_READY},
};
use lab_parts::kube_proxy::Rule;
use pipeline_tests::{
    agents::{self, Agents, MEMBER, PREFIX, has_condition},
    control_plane::ApiKind,
    fleet::{Fleet, on_failure_of},
    kube_proxy::KubeProxy,
    on_both,
};

const NODES: u8 = 5;

/// A cluster whose agents probe DNS and the Service network.
struct Cluster {
    fleet: Fleet,
    proxy: KubeProxy,
    agents: Agents,
    leader: u8,
}

impl Cluster {
    /// Starts a healthy one.
    async fn start(server: ApiKind) -> Result<Self> {
        let fleet = agents::fleet(server).await?;
        let endpoints = (0..NODES).map(agents::address).collect();
        let proxy = KubeProxy::start(NODES, endpoints)?;
        let agents = Agents::start_with(&fleet, NODES, |node| {
            vec![
                "--detectors=coredns-detector,service-network".to_owned(),
                KubeProxy::flag(node),
            ]
        })
        .await?;
        let leader = agents.leader().await?;
        let cluster = Self {
            fleet,
            proxy,
            agents,
            leader,
        };
        cluster.votes("healthy", NODES).await?;
        cluster.agents.votes(leader, "healthy", NODES).await?;
        cluster
            .has(SERVICE_NETWORK_READY, "True", "no node fails")
            .await?;
        cluster.has(DNS_READY, "True", "no node fails").await?;
        cluster
            .has(REPORTER_READY, "True", "enough nodes vote")
            .await?;
        Ok(cluster)
    }

    /// Waits until the leader counts so many nodes with this vote on the Service network.
    async fn votes(&self, vote: &str, count: u8) -> Result<()> {
        let metric = format!("{PREFIX}service_network_nodes{{answer=\"{vote}\"}}");
        let leader = self.agents.on(self.leader)?;
        let count = f64::from(count);
        leader
            .until_metric(&metric, |value| (value - count).abs() < 0.5)
            .await
    }

    async fn has(&self, kind: &str, status: &str, text: &str) -> Result<()> {
        has_condition(&self.fleet, kind, status, text).await
    }

    async fn status(&self, kind: &str) -> Result<String> {
        let cluster = self.fleet.clusters().get(&MEMBER.name()).await?;
        Ok(cluster.condition(kind).unwrap().status.clone())
    }
}

/// Whichever of the two is dead makes its own condition False, and a Remedy on either acts on that one alone.
async fn each_condition_stands_alone(server: ApiKind) -> Result<()> {
    let mut cluster = Cluster::start(server).await?;
    let remedy = on_failure_of(SERVICE_NETWORK_READY);
    cluster
        .fleet
        .create_remedy("service-network", remedy)
        .await?;
    let controller = cluster.fleet.remedy_controller().await?;

    cluster.agents.dns_works_on([]);
    cluster.has(DNS_READY, "False", "nodes fail").await?;
    assert_eq!(cluster.status(SERVICE_NETWORK_READY).await?, "True");
    cluster.fleet.has_actions(MEMBER, &[]).await?;
    cluster.agents.dns_works_on(0..NODES);
    cluster.has(DNS_READY, "True", "").await?;

    cluster.proxy.set(0..NODES, Rule::Drop)?;
    cluster
        .fleet
        .has_actions(MEMBER, &[TRAFFIC_CONTROL])
        .await?;
    assert_eq!(cluster.status(DNS_READY).await?, "True");
    cluster.proxy.set(0..NODES, Rule::Forward)?;
    cluster.fleet.has_actions(MEMBER, &[]).await?;
    controller.stop().await?;
    cluster.agents.stop_all().await
}

on_both!(long: each_condition_stands_alone);

mod with_tools {
    use pipeline_tests::service_outage;

    use super::*;

    /// A Remedy on it moves traffic, and that of dead DNS moves none.
    #[expect(clippy::print_stdout, reason = "libtest captures it")]
    async fn remedy_moves_traffic(server: ApiKind) -> Result<()> {
        let timeline = service_outage::play(server).await?;
        println!("{timeline}");
        timeline.check()
    }

    on_both!(long: remedy_moves_traffic,);
}
