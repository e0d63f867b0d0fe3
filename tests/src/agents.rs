//! The agents of one member cluster, each on a node of its own: with an address of its own and a
//! scripted DNS server.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use hickory_proto::op::ResponseCode;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::execution_namespace;
use kube::{Api, Client, api::PostParams};
use lab_parts::{
    dns::{self, DnsServer, Response},
    thresholds::ProbeTiming,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, Member},
    netns,
    programs::{Binary, Profile, Running},
};

/// The interval between two looks at something that cannot be watched.
const POLL: Duration = Duration::from_millis(50);
/// The limit until an agent leads: an abandoned lease lasts 15 s, and agents campaign after a random
/// delay.
const LED_WITHIN: Duration = Duration::from_mins(1);
/// The agents' port.
const PORT: u16 = 8080;

/// The namespace and the name of the agents' Service in the member.
pub const SERVICE: (&str, &str) = ("karmada-rs", "cluster-health-agent");

/// The agents of member 1.
pub struct Agents {
    /// The kubeconfig of the API whose Service lists them; otherwise each has a flag for each of the others.
    listed: Option<PathBuf>,
    kubeconfig: PathBuf,
    /// The nodes that cannot reach Karmada, and their kubeconfig.
    cut_off: (Vec<u8>, PathBuf),
    nodes: Vec<Node>,
}

struct Node {
    dns: DnsServer,
    flags: Vec<String>,
    running: Option<Running>,
}

/// The cluster of the agents.
pub const MEMBER: Member = Member(1);

/// Starts a fleet with the cluster of the agents, which has no verdict yet.
pub async fn fleet(server: ApiKind) -> Result<Fleet> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    Ok(fleet)
}

impl Agents {
    /// Starts agents on so many nodes, all with working DNS.
    pub async fn start(fleet: &Fleet, count: u8) -> Result<Self> {
        Self::start_all(fleet, count, None, Vec::new(), |_| Vec::new()).await
    }

    /// Starts agents like [`Self::start`] that find each other by the Service in the API of this kubeconfig.
    pub async fn start_listed(fleet: &Fleet, count: u8, kubeconfig: PathBuf) -> Result<Self> {
        Self::start_all(fleet, count, Some(kubeconfig), Vec::new(), |_| Vec::new()).await
    }

    /// Starts agents like [`Self::start`], each with these flags, too.
    pub async fn start_with(
        fleet: &Fleet,
        count: u8,
        flags: impl Fn(u8) -> Vec<String>,
    ) -> Result<Self> {
        Self::start_all(fleet, count, None, Vec::new(), flags).await
    }

    /// Starts agents like [`Self::start`], of which those on the nodes `cut_off` cannot reach Karmada.
    pub async fn start_cut_off(fleet: &Fleet, count: u8, cut_off: Vec<u8>) -> Result<Self> {
        Self::start_all(fleet, count, None, cut_off, |_| Vec::new()).await
    }

    async fn start_all(
        fleet: &Fleet,
        count: u8,
        listed: Option<PathBuf>,
        cut_off: Vec<u8>,
        flags: impl Fn(u8) -> Vec<String>,
    ) -> Result<Self> {
        let namespace = execution_namespace(&MEMBER.name());
        let kubeconfig = fleet
            .karmada
            .account_kubeconfig(&namespace, "cluster-health-agent")?;
        let nowhere = kubeconfig.with_file_name("nowhere");
        let server = fleet.karmada.address().to_string();
        let text = fs::read_to_string(&kubeconfig)?.replace(&server, "127.0.0.1:1");
        fs::write(&nowhere, text)?;
        let mut agents = Self {
            listed,
            kubeconfig,
            cut_off: (cut_off, nowhere),
            nodes: Vec::new(),
        };
        for node in 0..count {
            netns::add_address(address(node).ip())?;
            let dns = DnsServer::start(dns::cluster()).await?;
            agents.nodes.push(Node {
                dns,
                flags: flags(node),
                running: None,
            });
        }
        for node in 0..count {
            agents.restart(node).await?;
        }
        Ok(agents)
    }

    /// Starts the agent of a node that has none.
    pub async fn restart(&mut self, node: u8) -> Result<()> {
        let count = u8::try_from(self.nodes.len())?;
        let (cut_off, nowhere) = &self.cut_off;
        let kubeconfig = if cut_off.contains(&node) {
            nowhere
        } else {
            &self.kubeconfig
        };
        let at = &mut self.nodes[usize::from(node)];
        ensure!(at.running.is_none(), "an agent runs on node {node} already");
        let mut flags: Vec<OsString> = [
            format!("--karmada-kubeconfig={}", kubeconfig.display()),
            format!("--cluster-name={}", MEMBER.name()),
            format!("--host-name={}", name(node)),
            format!("--nameserver={}", at.dns.address()),
        ]
        .map(OsString::from)
        .into();
        flags.extend(ProbeTiming::SHORT.flags().map(OsString::from));
        flags.extend(at.flags.iter().map(OsString::from));
        match &self.listed {
            None => {
                let others = (0..count).filter(|other| *other != node);
                flags.extend(others.map(|other| format!("--peer={}", address(other).ip()).into()));
            }
            Some(kubeconfig) => {
                let (namespace, service) = SERVICE;
                flags.push(format!("--peer-service={namespace}/{service}").into());
                flags.push(format!("--member-kubeconfig={}", kubeconfig.display()).into());
            }
        }
        let running = Running::start_at(Binary::Agent, Profile::Debug, address(node), flags);
        at.running = Some(running.await?);
        Ok(())
    }

    /// Makes DNS work on these nodes and on no other.
    pub fn dns_works_on(&self, nodes: impl IntoIterator<Item = u8>) {
        let nodes: Vec<u8> = nodes.into_iter().collect();
        for (number, node) in (0..).zip(&self.nodes) {
            node.dns.set(if nodes.contains(&number) {
                dns::cluster()
            } else {
                Response::Code(ResponseCode::Refused).into()
            });
        }
    }

    /// Stops the agent of a node with SIGTERM.
    pub async fn stop(&mut self, node: u8) -> Result<()> {
        let running = self.nodes[usize::from(node)].running.take();
        let running = running.with_context(|| format!("no agent runs on node {node}"))?;
        running.stop().await
    }

    /// Returns the agent of a node.
    pub fn on(&self, node: u8) -> Result<&Running> {
        let running = self.nodes[usize::from(node)].running.as_ref();
        running.with_context(|| format!("no agent runs on node {node}"))
    }

    /// Waits until one of them leads and knows the votes of all nodes, and returns its node.
    pub async fn leader(&self) -> Result<u8> {
        let looking = async {
            loop {
                for (number, node) in (0..).zip(&self.nodes) {
                    if let Some(running) = &node.running
                        && let Ok(1.0) = metric(running, "lease_holder").await
                        && metric(running, "nodes").await?
                            >= metric(running, "known_agents").await?
                    {
                        return anyhow::Ok(number);
                    }
                }
                sleep(POLL).await;
            }
        };
        timeout(LED_WITHIN, looking)
            .await
            .context("no agent leads")?
    }

    /// Waits until the leader counts so many nodes with this vote.
    pub async fn votes(&self, leader: u8, vote: &str, count: u8) -> Result<()> {
        let metric = format!("{PREFIX}nodes{{answer=\"{vote}\"}}");
        let running = self.on(leader)?;
        running
            .until_metric(&metric, |value| (value - f64::from(count)).abs() < 0.5)
            .await
            .with_context(|| format!("not {count} nodes are {vote}"))
    }

    /// Stops all of them with SIGTERM.
    pub async fn stop_all(mut self) -> Result<()> {
        let running = self.nodes.iter_mut().filter_map(|node| node.running.take());
        try_join_all(running.map(Running::stop)).await.map(drop)
    }

    /// Kills all of them.
    pub async fn kill_all(&mut self) -> Result<()> {
        let running = self.nodes.iter_mut().filter_map(|node| node.running.take());
        let killed = join_all(running.map(Running::kill)).await;
        killed.into_iter().collect()
    }
}

/// The prefix of the agents' metrics.
pub const PREFIX: &str = "karmada_cluster_health_agent_";

async fn metric(running: &Running, name: &str) -> Result<f64> {
    running.metric(&format!("{PREFIX}{name}")).await
}

/// Returns the name of a node.
pub fn name(node: u8) -> String {
    format!("n{node}")
}

/// Returns the address of the agent of a node.
pub fn address(node: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 244, 100, node + 1), PORT).into()
}

/// Waits until a condition of member 1 has this status, with `text` in its message.
pub async fn has_condition(fleet: &Fleet, kind: &str, status: &str, text: &str) -> Result<()> {
    fleet.tells(MEMBER, kind, status, text).await.map(drop)
}

/// Creates the EndpointSlice of the agents' Service with so many nodes, as the member's own controller
/// does.
pub async fn list(member: Client, count: u8) -> Result<()> {
    let (namespace, service) = SERVICE;
    let endpoints = (0..count).map(|node| {
        json!({
            "addresses": [address(node).ip()],
            "nodeName": name(node),
            "conditions": { "ready": false, "serving": false },
        })
    });
    let slice = serde_json::from_value(json!({
        "metadata": {
            "name": format!("{service}-1"),
            "labels": { "kubernetes.io/service-name": service },
        },
        "addressType": "IPv4",
        "ports": [{ "name": "admin", "port": PORT, "protocol": "TCP" }],
        "endpoints": endpoints.collect::<Vec<_>>(),
    }))?;
    let slices: Api<EndpointSlice> = Api::namespaced(member, namespace);
    slices.create(&PostParams::default(), &slice).await?;
    Ok(())
}
