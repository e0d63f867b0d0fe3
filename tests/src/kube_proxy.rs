//! An emulated kube-proxy: what each node does with connections to the cluster IP of the agents' Service.
//!
//! All nodes share one network namespace here, so each has a port of its own at the cluster IP, and its
//! rules are those for that port. Where `nft` is installed they are rules of nftables in the namespace, as
//! kube-proxy writes them; elsewhere a relay stands for them, which has to accept a connection before it can
//! lose it. The output says which of them it is.

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::netns;

/// The cluster IP.
const CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 20);
/// The address that resets every connection.
const RESETS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 244, 99, 99)), 8080);
/// The port of the first node.
const FIRST_PORT: u16 = 8100;

/// What a node does with a connection to the cluster IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Leads it to an endpoint at random.
    Forward,
    /// Rejects it: the node has no rule.
    Refuse,
    /// Leads it to somebody who resets it.
    Reset,
    /// Drops its packets.
    Drop,
}

/// The emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Rules of nftables.
    Nftables,
    /// Relays.
    Relay,
}

impl Plane {
    /// Returns the closest one that this machine has.
    pub fn available() -> Self {
        let found = Command::new("nft").arg("--version").output();
        match found {
            Ok(output) if output.status.success() => Self::Nftables,
            _ => Self::Relay,
        }
    }
}

/// The emulated kube-proxy of some nodes.
#[derive(Debug)]
pub struct KubeProxy {
    plane: Plane,
    endpoints: Vec<SocketAddr>,
    rules: watch::Sender<Vec<Rule>>,
    _servers: JoinSet<()>,
}

impl KubeProxy {
    /// Starts with rules on each of so many nodes that lead to the endpoints.
    #[expect(clippy::print_stderr, reason = "which emulation a test has used")]
    pub async fn start(plane: Plane, nodes: u8, endpoints: Vec<SocketAddr>) -> Result<Self> {
        eprintln!("kube-proxy is emulated by {plane:?}");
        netns::add_address(CLUSTER_IP.into())?;
        netns::add_address(RESETS.ip())?;
        let rules = watch::Sender::new(vec![Rule::Forward; nodes.into()]);
        let mut servers = JoinSet::new();
        match plane {
            Plane::Nftables => {
                servers.spawn(reset_all(TcpListener::bind(RESETS).await?));
            }
            Plane::Relay => {
                for node in 0..nodes {
                    let rules = rules.subscribe();
                    servers.spawn(relay(node, endpoints.clone(), rules));
                }
            }
        }
        let proxy = Self {
            plane,
            endpoints,
            rules,
            _servers: servers,
        };
        proxy.apply()?;
        Ok(proxy)
    }

    /// Returns the flag with the cluster IP for the agent of a node.
    pub fn flag(node: u8) -> String {
        format!("--service-network-address={}", address(node))
    }

    /// Replaces the rules of these nodes.
    pub fn set(&self, nodes: impl IntoIterator<Item = u8>, rule: Rule) -> Result<()> {
        self.rules.send_modify(|rules| {
            for node in nodes {
                rules[usize::from(node)] = rule;
            }
        });
        self.apply()
    }

    /// Writes all rules anew. The relays see them by themselves.
    fn apply(&self) -> Result<()> {
        if self.plane == Plane::Relay {
            return Ok(());
        }
        let (mut filter, mut nat) = (Vec::new(), Vec::new());
        for (node, rule) in (0..).zip(self.rules.borrow().iter()) {
            let to = format!("ip daddr {CLUSTER_IP} tcp dport {}", address(node).port());
            match rule {
                Rule::Forward => {
                    let endpoints = (0..).zip(&self.endpoints);
                    let endpoints = endpoints.map(|(number, to): (u8, _)| {
                        format!("{number} : {} . {}", to.ip(), to.port())
                    });
                    let (count, map) = (self.endpoints.len(), endpoints.collect::<Vec<_>>());
                    let map = map.join(", ");
                    nat.push(format!(
                        "{to} dnat to numgen random mod {count} map {{ {map} }}"
                    ));
                }
                Rule::Refuse => filter.push(format!("{to} reject with tcp reset")),
                Rule::Reset => nat.push(format!("{to} dnat to {RESETS}")),
                Rule::Drop => filter.push(format!("{to} drop")),
            }
        }
        let (filter, nat) = (filter.join("\n"), nat.join("\n"));
        nft(&format!(
            "table ip kube_proxy\n\
             delete table ip kube_proxy\n\
             table ip kube_proxy {{\n\
             chain filter {{ type filter hook output priority -150;\n{filter}\n}}\n\
             chain nat {{ type nat hook output priority -100;\n{nat}\n}}\n}}\n"
        ))
    }
}

fn address(node: u8) -> SocketAddr {
    (CLUSTER_IP, FIRST_PORT + u16::from(node)).into()
}

/// Applies a file of nftables as one transaction.
fn nft(rules: &str) -> Result<()> {
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run nft")?;
    let mut input = nft.stdin.take().context("nft has no input")?;
    input.write_all(rules.as_bytes())?;
    drop(input);
    let status = nft.wait()?;
    ensure!(
        status.success(),
        "nft refuses the rules ({status}):\n{rules}"
    );
    Ok(())
}

/// Closes every connection without reading its request, so that the client gets a reset.
async fn reset_all(listener: TcpListener) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(reset(connection));
    }
}

async fn reset(connection: TcpStream) {
    // With something unread, closing it resets it.
    if connection.readable().await.is_ok() {
        drop(connection);
    }
}

/// Stands for the rules of a node.
async fn relay(node: u8, endpoints: Vec<SocketAddr>, mut rules: watch::Receiver<Vec<Rule>>) {
    loop {
        let rule = rules.borrow_and_update()[usize::from(node)];
        let listener = match rule {
            Rule::Refuse => None,
            _ => TcpListener::bind(address(node)).await.ok(),
        };
        let connections = async {
            let Some(listener) = &listener else {
                return std::future::pending().await;
            };
            let mut lost = Vec::new();
            for turn in 0.. {
                let Ok((connection, _)) = listener.accept().await else {
                    continue;
                };
                match rule {
                    Rule::Forward => {
                        let endpoint = endpoints[turn % endpoints.len()];
                        tokio::spawn(forward(connection, endpoint));
                    }
                    Rule::Reset => {
                        tokio::spawn(reset(connection));
                    }
                    // Kept open, and never answered.
                    Rule::Drop | Rule::Refuse => lost.push(connection),
                }
            }
        };
        tokio::select! {
            () = connections => {}
            changed = rules.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

async fn forward(mut connection: TcpStream, endpoint: SocketAddr) {
    if let Ok(mut endpoint) = TcpStream::connect(endpoint).await {
        // Fails when either side is done.
        drop(copy_bidirectional(&mut connection, &mut endpoint).await);
    }
}
