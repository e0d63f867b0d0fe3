//! A member cluster: its DNS, its Service network, its pods and its agents.

mod agents;
mod backend;
mod dns;
mod lookup;
mod service_network;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab_parts::dns::DnsServer;
use lab_parts::thresholds::ProbeTiming;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use self::agents::{Agents, Setting};
use self::backend::Backend;
use self::lookup::Lookup;
use crate::fault::{DnsFault, Outage, ServiceNetworkFault};
use crate::member_controllers::ReadyImage;
use crate::network::Pod;
use crate::site::Site;
use crate::update::{Update, UpdateSender};

/// The number of nodes of each member.
const NODES: usize = 3;

/// A member cluster. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Member {
    name: String,
    dns: DnsServer,
    /// The delay of a slow response: too late for a round of an agent, and for any pod.
    too_late: Duration,
    agents: Agents,
    shop: Backend,
    store: Backend,
    outage: Mutex<Outage>,
    updates: UpdateSender,
}

impl Member {
    /// Starts a member without fault, whose agents report to the API of `kubeconfig`. `ready` has the pods of the
    /// store that are.
    pub(crate) async fn start(
        name: &str,
        kubeconfig: PathBuf,
        thresholds: ProbeTiming,
        ready: watch::Receiver<ReadyImage>,
        updates: UpdateSender,
    ) -> Result<Self> {
        let dns = dns::start()
            .await
            .with_context(|| format!("cannot start the DNS server of {name}"))?;
        let lookup = Lookup {
            cluster: name.to_owned(),
            server: dns.address(),
            updates: updates.clone(),
        };
        let failed = || format!("cannot start a backend of {name}");
        let shop = Backend::of_shop(lookup).await.with_context(failed)?;
        let store = Backend::of_store(name, ready).await.with_context(failed)?;
        let setting = Setting {
            cluster: name.to_owned(),
            kubeconfig,
            nameserver: dns.address(),
            thresholds,
            updates: updates.clone(),
        };
        let agents = Agents::start(NODES, setting)
            .with_context(|| format!("cannot start the agents of {name}"))?;
        let member = Self {
            name: name.to_owned(),
            dns,
            too_late: thresholds.period.max(Duration::from_secs(1)),
            agents,
            shop,
            store,
            outage: Mutex::default(),
            updates,
        };
        member.inject_dns(DnsFault::None).await?;
        Ok(member)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of its DNS server.
    pub(crate) fn nameserver(&self) -> SocketAddr {
        self.dns.address()
    }

    /// Returns its instance of a website.
    pub(crate) fn pod(&self, site: Site) -> Pod {
        let backend = match site {
            Site::Shop => &self.shop,
            Site::Store => &self.store,
        };
        Pod {
            cluster: self.name.clone(),
            socket: backend.relay.address(),
        }
    }

    /// Injects a fault into its DNS in place of the one before.
    pub(crate) async fn inject_dns(&self, fault: DnsFault) -> Result<()> {
        dns::inject(&self.dns, fault, self.too_late)
            .await
            .with_context(|| format!("cannot change the DNS server of {}", self.name))?;
        self.updates.send(Update::Dns {
            cluster: self.name.clone(),
            fault,
        });
        Ok(())
    }

    /// Injects a fault into its Service network in place of the one before.
    pub(crate) fn inject_network(&self, fault: ServiceNetworkFault) {
        self.agents.inject(fault);
        self.updates.send(Update::ServiceNetwork {
            cluster: self.name.clone(),
            fault,
        });
    }

    /// Declares a signal: whether its instance of the store responds.
    pub(crate) fn declare(&self) -> Result<()> {
        let url = format!("http://{}/", self.store.relay.address());
        let signal = json!({ "name": "store", "condition": "StoreServing", "period": "1s",
            "probe": { "http": { "url": url } } });
        let signals = json!({ "signals": [signal] }).to_string();
        let declared = self.agents.declare(&signals);
        declared.with_context(|| format!("cannot declare a signal of {}", self.name))
    }

    /// Takes the declaration back.
    pub(crate) fn withdraw(&self) -> Result<()> {
        let withdrawn = self.agents.withdraw();
        withdrawn.with_context(|| format!("cannot withdraw the signal of {}", self.name))
    }

    /// Takes its power, or gives it back. Its link is not here.
    pub(crate) async fn inject_outage(&self, outage: Outage) -> Result<()> {
        let is_off = outage == Outage::PowerOff;
        let before = std::mem::replace(&mut *self.outage.lock(), outage);
        for backend in [&self.shop, &self.store] {
            backend.relay.set_silent(is_off);
        }
        if before == Outage::PowerOff && !is_off {
            self.agents.revive_all()?;
        }
        self.updates.send(Update::Outage {
            cluster: self.name.clone(),
            outage,
        });
        if is_off {
            self.agents.kill_all().await;
        }
        Ok(())
    }

    /// Kills the agent of a node.
    pub(crate) async fn kill_agent(&self, node: &str) -> Result<()> {
        self.agents.kill(node).await
    }

    /// Starts the agent of a node again.
    pub(crate) fn start_agent(&self, node: &str) -> Result<()> {
        if *self.outage.lock() == Outage::PowerOff {
            bail!("{} has no power: press Restore first", self.name);
        }
        self.agents.revive(node)
    }
}
