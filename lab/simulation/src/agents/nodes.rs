//! Agents within this process.

use std::net::SocketAddr;
use std::ops::Range;

use anyhow::{Context, Result};
use clap::Parser;
use cluster_health_agent::{Args, IDENTITY, NAME};
use karmada_runtime::program::Program;
use tokio::task::JoinSet;

use super::addresses::{address, name};
use super::apis::{Apis, SERVICE};
use super::options::Options;

/// Running agents, which are killed when dropped.
pub(super) struct Nodes {
    agents: JoinSet<bool>,
}

impl Nodes {
    /// Starts the agents of `nodes`.
    pub(super) fn start(
        options: &Options,
        apis: &Apis,
        dns: SocketAddr,
        port: u16,
        nodes: Range<u16>,
    ) -> Result<Self> {
        let mut agents = JoinSet::new();
        for node in nodes {
            let flags = flags(options, apis, dns, address(node, port), &name(node));
            let args = Args::try_parse_from(std::iter::once(NAME.to_owned()).chain(flags))?;
            let mut program = Program::new(IDENTITY, address(node, port));
            let (karmada, member) = (apis.karmada.agents.clone(), apis.member.agents.clone());
            cluster_health_agent::assemble(args, karmada, Some(member), &mut program)
                .with_context(|| format!("cannot start the agent of {}", name(node)))?;
            program.serve()?;
            agents.spawn(program.run_until(async || std::future::pending().await));
        }
        Ok(Self { agents })
    }

    /// Kills the agents and waits until they have ended.
    pub(super) async fn stop(mut self) {
        self.agents.shutdown().await;
    }
}

/// Returns the flags of a node's agent.
pub(super) fn flags(
    options: &Options,
    apis: &Apis,
    dns: SocketAddr,
    listen: SocketAddr,
    node: &str,
) -> Vec<String> {
    let (namespace, service) = SERVICE;
    let mut flags = options.flags(dns);
    flags.extend([
        format!("--karmada-kubeconfig={}", apis.karmada.kubeconfig.display()),
        format!("--member-kubeconfig={}", apis.member.kubeconfig.display()),
        format!("--peer-service={namespace}/{service}"),
        format!("--listen-address={listen}"),
        format!("--host-name={node}"),
    ]);
    flags
}
