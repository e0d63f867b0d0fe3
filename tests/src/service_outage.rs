//! The scenario of the Service network, with a real Traefik and an emulated kube-proxy: the rules of one node
//! of member1 break, then those of most nodes, and its traffic goes elsewhere; they are repaired, and the
//! traffic returns. Then its DNS dies alone, on which no Remedy acts.

use std::fmt;

use anyhow::{Result, ensure};
use karmada_api::{
    TRAFFIC_CONTROL,
    condition::{DNS_READY, SERVICE_NETWORK_READY},
};
use lab_parts::kube_proxy::Rule;
use tokio::time::Instant;

use crate::{
    agents::{self, Agents, MEMBER, PREFIX, has_condition},
    backend::HttpBackend,
    control_plane::ApiKind,
    fleet::{Fleet, GATEWAY_CLASS, HOST, Member, PROXY, on_failure_of},
    kube_proxy::KubeProxy,
    programs::{Profile, Running},
    traefik::Traefik,
    traffic::{Counts, LEFT_AFTER, Traffic, reaches},
};

/// The nodes of member1.
const NODES: u8 = 5;

/// The events of the scenario, each with its time, and the requests.
#[derive(Clone, Debug)]
pub struct Timeline {
    steps: Vec<(&'static str, Instant)>,
    /// All requests.
    pub all: Counts,
    /// Requests sent while member1 was blocked.
    pub blocked: Counts,
    /// Requests sent since DNS of member1 died.
    pub without_dns: Counts,
}

/// Plays the scenario in the network namespace of this process.
pub async fn play(server: ApiKind) -> Result<Timeline> {
    let mut stage = Stage::start(server).await?;
    stage.break_one_node().await?;
    let blocked = stage.break_most_nodes().await?;
    stage.repair().await?;
    let without_dns = stage.kill_dns().await?;
    let all = stage.traffic.counts();
    let mut steps = stage.stop().await?;
    steps.sort_by_key(|(_, at)| *at);
    Ok(Timeline {
        steps,
        all,
        blocked,
        without_dns,
    })
}

/// Everything that runs in the scenario.
struct Stage {
    fleet: Fleet,
    proxy: KubeProxy,
    agents: Agents,
    leader: u8,
    controllers: [Running; 2],
    traffic: Traffic,
    steps: Vec<(&'static str, Instant)>,
    _backends: Vec<HttpBackend>,
    _traefik: Traefik,
}

impl Stage {
    /// Starts two healthy members that both get requests.
    async fn start(server: ApiKind) -> Result<Self> {
        let members = [MEMBER, Member(2)];
        Fleet::lay_network(&members)?;
        let fleet = Fleet::with_members(server, Profile::Debug, &members).await?;
        let remedy = on_failure_of(SERVICE_NETWORK_READY);
        fleet.create_remedy("service-network", remedy).await?;
        let controllers = [
            fleet.remedy_controller().await?,
            fleet.ingress_controller().await?,
        ];
        let endpoints = (0..NODES).map(agents::address).collect();
        let proxy = KubeProxy::start(NODES, endpoints)?;
        let agents = Agents::start_with(&fleet, NODES, |node| {
            vec![
                "--detectors=coredns-detector,service-network".to_owned(),
                KubeProxy::flag(node),
            ]
        });
        let agents = agents.await?;
        let leader = agents.leader().await?;
        let mut backends = Vec::new();
        for member in members {
            backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
        }
        let access = fleet.proxy_access().await?;
        let traefik = Traefik::start(PROXY.parse()?, &access, Some(GATEWAY_CLASS)).await?;

        for kind in [SERVICE_NETWORK_READY, DNS_READY] {
            has_condition(&fleet, kind, "True", "no node fails").await?;
        }
        reaches(PROXY.parse()?, HOST, &members.map(Member::name)).await?;
        let started = std::time::Instant::now();
        let traffic = Traffic::start(PROXY.parse()?, HOST);
        for member in members {
            traffic.first_to(&member.name(), started).await?;
        }
        Ok(Self {
            fleet,
            proxy,
            agents,
            leader,
            controllers,
            traffic,
            steps: Vec::new(),
            _backends: backends,
            _traefik: traefik,
        })
    }

    /// Breaks the rules of one node, which the leader names.
    async fn break_one_node(&mut self) -> Result<()> {
        let broken = (self.leader + 1) % NODES;
        self.step("rules of one node broken");
        self.proxy.set([broken], Rule::Refuse)?;
        let named = format!(
            "{PREFIX}service_network_failing_node{{node=\"{}\"}}",
            agents::name(broken)
        );
        let leader = self.agents.on(self.leader)?;
        leader.until_metric(&named, |value| value > 0.5).await?;
        self.step("that node named by the leader");
        self.has(SERVICE_NETWORK_READY, "True", "").await
    }

    /// Breaks the rules of all nodes but the leader's. Returns the requests sent while member1 is blocked.
    async fn break_most_nodes(&mut self) -> Result<Counts> {
        let most = (0..NODES).filter(|node| *node != self.leader);
        let most: Vec<u8> = most.collect();
        self.step("rules of most nodes broken");
        self.proxy.set(most, Rule::Refuse)?;
        let message = "4 of 5 nodes fail: refused from ";
        self.has(SERVICE_NETWORK_READY, "False", message).await?;
        self.step("condition False");
        let actions = self.fleet.has_actions(MEMBER, &[TRAFFIC_CONTROL]).await?;
        let blocked = self.fleet.has_blocked(&[MEMBER]).await?;
        self.steps.push(("remedyActions set", actions));
        self.steps.push(("trafficBlockClusters set", blocked));
        let member = MEMBER.name();
        let blocked = blocked.into_std();
        self.traffic.left(&member, LEFT_AFTER, blocked).await?;
        if let Some(last) = self.traffic.last_to(&member) {
            self.steps.push(("last request to member1", last.into()));
        }
        self.has(DNS_READY, "True", "").await?;
        let left = std::time::Instant::now();
        self.traffic.next(LEFT_AFTER, left).await
    }

    /// Repairs the rules of all nodes.
    async fn repair(&mut self) -> Result<()> {
        let repaired = self.step("rules repaired");
        self.proxy.set(0..NODES, Rule::Forward)?;
        self.has(SERVICE_NETWORK_READY, "True", "").await?;
        self.step("condition True");
        let cleared = self.fleet.has_blocked(&[]).await?;
        self.steps.push(("trafficBlockClusters cleared", cleared));
        let (member, repaired) = (MEMBER.name(), repaired.into_std());
        let first = self.traffic.first_to(&member, repaired).await?;
        self.steps.push(("first request to member1", first.into()));
        Ok(())
    }

    /// Kills DNS on every node. Returns the requests sent since its condition shows it.
    async fn kill_dns(&mut self) -> Result<Counts> {
        self.step("DNS of member1 dead on every node");
        self.agents.dns_works_on([]);
        self.has(DNS_READY, "False", "nodes fail").await?;
        let dead = self.step("condition of DNS False");
        self.has(SERVICE_NETWORK_READY, "True", "").await?;
        self.fleet.has_actions(MEMBER, &[]).await?;
        self.traffic.next(LEFT_AFTER, dead.into_std()).await
    }

    /// Records a step that happens now, and returns its time.
    fn step(&mut self, step: &'static str) -> Instant {
        let now = Instant::now();
        self.steps.push((step, now));
        now
    }

    async fn has(&self, kind: &str, status: &str, text: &str) -> Result<()> {
        has_condition(&self.fleet, kind, status, text).await
    }

    /// Stops our programs with SIGTERM, and returns the steps.
    async fn stop(self) -> Result<Vec<(&'static str, Instant)>> {
        self.agents.stop_all().await?;
        for controller in self.controllers {
            controller.stop().await?;
        }
        Ok(self.steps)
    }
}

impl Timeline {
    /// Checks that no request failed, that member1 got none while it was blocked, and that the death of its
    /// DNS moved none.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn check(&self) -> Result<()> {
        let Self {
            all,
            blocked,
            without_dns,
            ..
        } = self;
        ensure!(all.failed() == 0, "requests failed: {all}");
        ensure!(
            blocked.to("member1") == 0,
            "member1 got requests while blocked: {blocked}"
        );
        for member in ["member1", "member2"] {
            ensure!(
                without_dns.to(member) > 0,
                "{member} got none without DNS: {without_dns}"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.steps.first().map(|(_, at)| *at);
        for (what, at) in &self.steps {
            let since = start.map(|start| *at - start).unwrap_or_default();
            writeln!(f, "{:>9.3} s  {what}", since.as_secs_f64())?;
        }
        writeln!(f, "requests: {}", self.all)?;
        writeln!(f, "while member1 was blocked: {}", self.blocked)?;
        writeln!(f, "while its DNS was dead: {}", self.without_dns)
    }
}
