//! The agents on a gateway's nodes: whether connections from there reach each member, and what follows.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use karmada_api::{
    Cluster, TRAFFIC_CONTROL,
    condition::{
        GATEWAY_REPORTER_READY, REACHABLE, REPORTER_READY, REPORTER_SILENT_REASON,
        UNREACHABLE_REASON,
    },
};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    agents::PREFIX,
    backend::HttpBackend,
    control_plane::ApiKind,
    fleet::{Fleet, Member, on_failure_of},
    manifests, netns, on_both,
    programs::{Profile, Running},
    wait::until,
};

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const NODES: [&str; 2] = ["g1", "g2"];

/// Two members behind a gateway of two nodes, and a Remedy that blocks what is not reached.
struct Stage {
    fleet: Fleet,
    agents: Vec<Running>,
    controllers: [Running; 2],
    backends: Vec<HttpBackend>,
}

fn address(node: usize) -> SocketAddr {
    let last = [101, 102][node];
    (Ipv4Addr::new(10, 244, 0, last), 8080).into()
}

impl Stage {
    /// Starts them, all well.
    async fn start(server: ApiKind) -> Result<Self> {
        Fleet::lay_network(&MEMBERS)?;
        let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
        manifests::apply(&fleet.karmada.client(), "karmada/gateway-agent.yaml").await?;
        manifests::apply(&fleet.gateway.client(), "gateway/reachability/rights.yaml").await?;
        let remedy = on_failure_of(REACHABLE);
        fleet.create_remedy("unreachable", remedy).await?;
        let mut backends = Vec::new();
        for member in MEMBERS {
            backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
        }
        let grace = ["--reporter-grace-period=1s"];
        let controllers = [
            fleet.remedy_controller_with(&grace).await?,
            fleet
                .ingress_controller_with(&["--keep-blocked-endpoints"])
                .await?,
        ];
        fleet.serves(&MEMBERS).await?;
        let mut agents = Vec::new();
        for (node, name) in NODES.into_iter().enumerate() {
            netns::add_address(address(node).ip())?;
            let mut flags: Vec<String> = ProbeTiming::SHORT.flags().into();
            flags.push(format!("--peer={}", address(1 - node).ip()));
            agents.push(fleet.gateway_agent(name, address(node), &flags).await?);
        }
        let stage = Self {
            fleet,
            agents,
            controllers,
            backends,
        };
        for member in MEMBERS {
            stage.has(member, REACHABLE, "True", "").await?;
            stage
                .has(member, GATEWAY_REPORTER_READY, "True", "")
                .await?;
        }
        Ok(stage)
    }

    /// Waits until a condition of a member has this status, and this text in its reason or message.
    async fn has(&self, member: Member, kind: &str, status: &str, text: &str) -> Result<()> {
        let is = |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|it| {
                it.status == status && (it.message.contains(text) || it.reason == text)
            })
        };
        let what = format!("{kind} {status} with {text:?}");
        let clusters = self.fleet.clusters();
        until(&clusters, &member.name(), &what, is).await.map(drop)
    }

    /// Takes the power of member1: its backend is gone, and its address with it.
    fn power_off(&mut self) -> Result<()> {
        self.backends.remove(0);
        netns::remove_address(Member(1).backend().ip())
    }

    async fn power_on(&mut self) -> Result<()> {
        let member = Member(1);
        netns::add_address(member.backend().ip())?;
        let backend = HttpBackend::start(member.backend(), &member.name()).await?;
        self.backends.insert(0, backend);
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        for program in self.agents.into_iter().chain(self.controllers) {
            program.stop().await?;
        }
        Ok(())
    }
}

/// The power of a member fails: its traffic goes elsewhere, and comes back with it, though a blocked member has no
/// endpoint in a Service of the gateway.
async fn power_failure_moves_traffic(server: ApiKind) -> Result<()> {
    let mut stage = Stage::start(server).await?;
    stage.power_off()?;
    stage
        .has(Member(1), REACHABLE, "False", UNREACHABLE_REASON)
        .await?;
    let message = "2 of 2 nodes fail: unreachable from 10.244.1.10:8080 (2); g1, g2";
    stage.has(Member(1), REACHABLE, "False", message).await?;
    stage
        .fleet
        .has_actions(Member(1), &[TRAFFIC_CONTROL])
        .await?;
    stage.fleet.serves(&[Member(2)]).await?;
    stage
        .has(Member(2), REACHABLE, "True", "no node fails")
        .await?;
    stage.power_on().await?;
    stage.has(Member(1), REACHABLE, "True", "").await?;
    stage.fleet.serves(&MEMBERS).await?;
    stage.stop().await
}

/// A program of the member that is gone, and refuses connections, is no power failure.
async fn refused_connection_blocks_nothing(server: ApiKind) -> Result<()> {
    let mut stage = Stage::start(server).await?;
    stage.backends.remove(0);
    let result =
        format!("{PREFIX}reachability_probe_rounds_total{{member=\"member1\",result=\"reached\"}}");
    for agent in &stage.agents {
        let before = agent.metric(&result).await?;
        // More rounds than a threshold has.
        agent
            .until_metric(&result, |now| now > before + 8.0)
            .await?;
    }
    stage.has(Member(1), REACHABLE, "True", "").await?;
    stage.fleet.has_actions(Member(1), &[]).await?;
    stage.stop().await
}

/// The control plane is cut off from a member, whose own agents fall silent: nothing is blocked.
async fn cut_control_plane_blocks_nothing(server: ApiKind) -> Result<()> {
    let stage = Stage::start(server).await?;
    let own = stage.fleet.dns(Member(1)).await?;
    let flags = ProbeTiming::SHORT.flags();
    let agent = stage.fleet.agent(Member(1), &flags).await?;
    stage.has(Member(1), REPORTER_READY, "True", "").await?;
    // Killed, it gives its lease not back.
    agent.kill().await?;
    stage
        .has(Member(1), REPORTER_READY, "False", REPORTER_SILENT_REASON)
        .await?;
    stage.has(Member(1), REACHABLE, "True", "").await?;
    stage.fleet.has_actions(Member(1), &[]).await?;
    stage.fleet.serves(&MEMBERS).await?;
    drop(own);
    stage.stop().await
}

/// No agent of the gateway can write any more, as when all their tokens have ended: the verdicts are stale, and stand.
async fn silent_gateway_blocks_nothing(server: ApiKind) -> Result<()> {
    let mut stage = Stage::start(server).await?;
    for agent in std::mem::take(&mut stage.agents) {
        agent.kill().await?;
    }
    for member in MEMBERS {
        let silent = REPORTER_SILENT_REASON;
        stage
            .has(member, GATEWAY_REPORTER_READY, "False", silent)
            .await?;
        stage.has(member, REACHABLE, "True", "").await?;
        stage.fleet.has_actions(member, &[]).await?;
    }
    stage.fleet.serves(&MEMBERS).await?;
    stage.stop().await
}

on_both!(
    long:
    power_failure_moves_traffic,
    refused_connection_blocks_nothing,
    cut_control_plane_blocks_nothing,
    silent_gateway_blocks_nothing,
);
