//! An emulated kube-proxy: the rule of each node for connections to the cluster IP of the agents' Service.
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
use lab_parts::kube_proxy::{NodeRules, Rule};

use crate::netns;

/// The cluster IP.
const CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 20);
/// The address that resets every connection.
const RESETS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 244, 99, 99)), 8080);
/// The port of the first node.
const FIRST_PORT: u16 = 8100;

/// The emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plane {
    Nftables,
    Relay,
}

impl Plane {
    /// Returns the closest one that this machine has.
    fn available() -> Self {
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
    endpoints: Vec<SocketAddr>,
    rules: Vec<Rule>,
    /// The relays of all nodes, unless nftables stands for them.
    relays: Vec<NodeRules>,
    /// The server that answers at [`RESETS`], where nftables stands for them.
    _resetting: Option<NodeRules>,
}

impl KubeProxy {
    /// Starts with rules on each of so many nodes that lead to the endpoints.
    #[expect(clippy::print_stderr, reason = "which emulation a test has used")]
    pub fn start(nodes: u8, endpoints: Vec<SocketAddr>) -> Result<Self> {
        let plane = Plane::available();
        eprintln!("kube-proxy is emulated by {plane:?}");
        netns::add_address(CLUSTER_IP.into())?;
        netns::add_address(RESETS.ip())?;
        let (mut relays, mut resetting) = (Vec::new(), None);
        match plane {
            Plane::Nftables => {
                let rules = NodeRules::start(RESETS, Vec::new());
                rules.set(Rule::Reset);
                resetting = Some(rules);
            }
            Plane::Relay => {
                relays.extend(
                    (0..nodes).map(|node| NodeRules::start(address(node), endpoints.clone())),
                );
            }
        }
        let proxy = Self {
            endpoints,
            rules: vec![Rule::Forward; nodes.into()],
            relays,
            _resetting: resetting,
        };
        proxy.apply()?;
        Ok(proxy)
    }

    /// Returns the flag with the cluster IP for the agent of a node.
    pub fn flag(node: u8) -> String {
        format!("--service-network-address={}", address(node))
    }

    /// Replaces the rules of these nodes.
    pub fn set(&mut self, nodes: impl IntoIterator<Item = u8>, rule: Rule) -> Result<()> {
        for node in nodes {
            self.rules[usize::from(node)] = rule;
        }
        self.apply()
    }

    /// Puts all rules in force anew.
    fn apply(&self) -> Result<()> {
        for (relay, rule) in self.relays.iter().zip(&self.rules) {
            relay.set(*rule);
        }
        if self.relays.is_empty() {
            return self.write_rules();
        }
        Ok(())
    }

    fn write_rules(&self) -> Result<()> {
        let (mut filter, mut nat) = (Vec::new(), Vec::new());
        for (node, rule) in (0..).zip(&self.rules) {
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
