//! A member cluster: its DNS, its pods, its agents.

mod agents;
mod backend;
mod dns;
mod lookup;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::agents::{Agents, Setting};
use self::backend::Backend;
use self::dns::DnsServer;
use self::lookup::Lookup;
use crate::facts::{DnsFault, Fact, Facts};
use crate::thresholds::Thresholds;

/// Nodes of each member.
const NODES: usize = 3;

/// A member cluster. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Member {
    name: String,
    dns: DnsServer,
    agents: Agents,
    backend: Backend,
    facts: Facts,
}

impl Member {
    /// Starts a healthy member, whose agents report to the API of `kubeconfig`.
    pub(crate) async fn start(
        name: &str,
        kubeconfig: PathBuf,
        thresholds: Thresholds,
        facts: Facts,
    ) -> Result<Self> {
        let dns = DnsServer::start(thresholds.too_late())
            .await
            .with_context(|| format!("cannot start the DNS server of {name}"))?;
        let lookup = Lookup {
            cluster: name.to_owned(),
            server: dns.address(),
            facts: facts.clone(),
        };
        let backend = Backend::start(lookup)
            .await
            .with_context(|| format!("cannot start the backend of {name}"))?;
        let setting = Setting {
            cluster: name.to_owned(),
            kubeconfig,
            nameserver: dns.address(),
            thresholds,
            facts: facts.clone(),
        };
        let agents = Agents::start(NODES, setting)
            .with_context(|| format!("cannot start the agents of {name}"))?;
        let member = Self {
            name: name.to_owned(),
            dns,
            agents,
            backend,
            facts,
        };
        member.break_dns(DnsFault::None);
        Ok(member)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where its instance of the Service listens.
    pub(crate) fn backend(&self) -> SocketAddr {
        self.backend.address
    }

    /// Breaks its DNS in this way, or mends it.
    pub(crate) fn break_dns(&self, fault: DnsFault) {
        self.dns.set(fault);
        self.facts.tell(Fact::Dns {
            cluster: self.name.clone(),
            fault,
        });
    }

    /// Kills the agent of a node.
    pub(crate) async fn kill_agent(&self, node: &str) -> Result<()> {
        self.agents.kill(node).await
    }

    /// Starts the agent of a node again.
    pub(crate) fn start_agent(&self, node: &str) -> Result<()> {
        self.agents.revive(node)
    }
}
