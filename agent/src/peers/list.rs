//! Who the other agents are: as the flags say, or as the EndpointSlices of the agents' Service do.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease;
use karmada_runtime::readiness::Gate;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Asked, Own};
use crate::metrics::PeerMetrics;

/// The name of the port that serves observations, in the agents' Service.
const PORT: &str = "admin";

/// How often an agent that is led looks who the others are; a quarter more or less.
const LOOK_EVERY: Duration = Duration::from_mins(10);

/// More addresses than that no agent has.
const MOST_ADDRESSES: usize = 8;

/// Another agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its node, when the member's API tells.
    pub(crate) node: Option<String>,
    /// Where it may answer, as `host:port`, the likeliest first.
    pub(crate) addresses: Vec<String>,
}

/// The other agents, each once.
pub(crate) type List = BTreeMap<String, Peer>;

/// The list as it is known now; none until it is.
#[derive(Debug)]
pub(super) struct Listing {
    others: watch::Sender<Option<Arc<List>>>,
    known: watch::Sender<Option<usize>>,
    metrics: PeerMetrics,
}

/// The agents' Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Without it, the namespace that this agent runs in.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// What the slices of a Service have told so far. A list without any agent is none, for at least this
/// one should be in it.
#[derive(Debug)]
struct Slices {
    own_node: String,
    own_port: u16,
    known: BTreeMap<String, Vec<Found>>,
    /// The slices that a list under way has shown.
    listing: BTreeMap<String, Vec<Found>>,
}

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// What it is one endpoint of: a node or, when it names none, a pod or an address.
    key: String,
    node: Option<String>,
    terminating: bool,
    addresses: Vec<String>,
}

impl Listing {
    /// Nothing is known yet.
    pub(super) fn new(metrics: PeerMetrics) -> Self {
        Self {
            others: watch::Sender::new(None),
            known: watch::Sender::new(None),
            metrics,
        }
    }

    /// The other agents.
    pub(super) fn list(&self) -> watch::Receiver<Option<Arc<List>>> {
        self.others.subscribe()
    }

    /// How many agents there are, this one included.
    pub(super) fn known(&self) -> watch::Receiver<Option<usize>> {
        self.known.subscribe()
    }

    /// From now on, these are the other agents.
    pub(super) fn set(&self, list: List) {
        let known = list.len() + 1;
        self.metrics.known(known);
        self.others.send_if_modified(|before| {
            let changed = before.as_deref() != Some(&list);
            if changed {
                *before = Some(Arc::new(list));
            }
            changed
        });
        self.known
            .send_if_modified(|before| before.replace(known) != Some(known));
    }
}

/// Learns the list from the EndpointSlices of a Service.
pub(super) struct Follow {
    pub(super) client: Client,
    pub(super) service: Service,
    pub(super) own: Arc<Own>,
    pub(super) listing: Arc<Listing>,
    /// Opens once there is a list.
    pub(super) gate: Gate,
    pub(super) asked: watch::Receiver<Option<Asked>>,
}

impl Follow {
    /// Keeps the list at what the slices tell, until the program stops. Every change of a slice goes to
    /// everyone who watches it, so only those watch who lead or may soon: an agent that a leader asks,
    /// and that does not stand by, looks at the list from time to time.
    pub(super) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        let following = async {
            let mut slices = Slices::new(&self.own);
            loop {
                self.watch(&mut slices).await;
                let look = LOOK_EVERY.mul_f64(0.75 + fastrand::f64() / 2.0);
                tokio::select! {
                    biased;
                    () = until(&mut self.asked, |led| !led) => {}
                    () = sleep(look) => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            () = following => Ok(()),
        }
    }

    /// Lists, and then watches until another agent leads.
    async fn watch(&mut self, slices: &mut Slices) {
        let Service { namespace, name } = &self.service;
        let own_namespace = || self.client.default_namespace();
        let namespace = namespace
            .as_deref()
            .unwrap_or_else(own_namespace)
            .to_owned();
        let api: Api<Decoded<EndpointSlice>> = Api::namespaced(self.client.clone(), &namespace);
        let selected = Config::default().labels(&format!("kubernetes.io/service-name={name}"));
        let mut events = pin!(events(api, selected));
        let (mut listed, mut told_empty) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                () = until(&mut self.asked, |led| led), if listed => return,
                Some(event) = events.next() => event,
            };
            listed |= matches!(event, Event::InitDone);
            if !slices.observe(event) {
                continue;
            }
            if let Some(list) = slices.list() {
                self.listing.set(list);
                self.gate.open();
                told_empty = false;
            } else if !std::mem::replace(&mut told_empty, true) {
                let service = &self.service.name;
                tracing::warn!(
                    service,
                    namespace,
                    "No EndpointSlice of the agents' Service lists an agent, waiting: apply manifests/member, or name the Service with --peer-service"
                );
            }
        }
    }
}

/// Waits until it `is` so that another agent leads and this one does not stand by.
async fn until(asked: &mut watch::Receiver<Option<Asked>>, is: impl Fn(bool) -> bool) {
    loop {
        let until = asked
            .borrow_and_update()
            .filter(|asked| !asked.standby)
            .map(|asked| asked.at + lease::DURATION)
            .filter(|until| *until > Instant::now());
        if is(until.is_some()) {
            return;
        }
        tokio::select! {
            biased;
            Ok(()) = asked.changed() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            else => std::future::pending().await,
        }
    }
}

impl Slices {
    fn new(own: &Own) -> Self {
        Self {
            own_node: own.node.clone(),
            own_port: own.port,
            known: BTreeMap::new(),
            listing: BTreeMap::new(),
        }
    }

    /// Takes an event in; says whether the list may have changed. A slice that cannot be read keeps
    /// its last good version.
    fn observe(&mut self, event: Event<Decoded<EndpointSlice>>) -> bool {
        match event {
            Event::Init => {
                self.listing.clear();
                false
            }
            Event::InitApply(slice) => {
                if let Some((name, found)) = self.read(slice) {
                    self.listing.insert(name, found);
                }
                false
            }
            Event::InitDone => {
                self.known = std::mem::take(&mut self.listing);
                true
            }
            Event::Apply(slice) => {
                self.known.extend(self.read(slice));
                true
            }
            Event::Delete(slice) => {
                let name = slice.metadata().name.as_deref().unwrap_or_default();
                self.known.remove(name);
                true
            }
        }
    }

    fn read(&self, slice: Decoded<EndpointSlice>) -> Option<(String, Vec<Found>)> {
        match slice {
            Decoded::Valid(slice) => {
                let name = slice.metadata.name.clone()?;
                Some((name, found(slice, self.own_port)))
            }
            Decoded::Invalid { metadata, error } => {
                let name = metadata.name?;
                tracing::warn!(
                    slice = name,
                    error,
                    "Unreadable EndpointSlice, keeping its last good version"
                );
                let found = self.known.get(&name)?.clone();
                Some((name, found))
            }
        }
    }

    /// The other agents. An agent with addresses of several families is listed in several slices, and
    /// one that is being replaced has two pods on its node: each node counts once.
    fn list(&self) -> Option<List> {
        let mut all: Vec<&Found> = self.known.values().flatten().collect();
        // A pod that ends is asked last.
        all.sort_by_key(|found| found.terminating);
        if all.is_empty() {
            return None;
        }
        let mut list = List::new();
        for found in all {
            if found.node.as_deref() == Some(&self.own_node) {
                continue;
            }
            let peer = list.entry(found.key.clone()).or_default();
            peer.node.clone_from(&found.node);
            for address in &found.addresses {
                if peer.addresses.len() < MOST_ADDRESSES && !peer.addresses.contains(address) {
                    peer.addresses.push(address.clone());
                }
            }
        }
        Some(list)
    }
}

/// The endpoints of a slice that have an address. Whether they are ready does not matter: an agent
/// that is not has no vote, and says so.
fn found(slice: EndpointSlice, own_port: u16) -> Vec<Found> {
    let ports = slice.ports.unwrap_or_default();
    let named = |name| ports.iter().find(|port| port.name.as_deref() == Some(name));
    let port = named(PORT)
        .or_else(|| ports.first())
        .and_then(|port| u16::try_from(port.port?).ok())
        .unwrap_or(own_port);
    let endpoints = slice.endpoints.unwrap_or_default();
    endpoints
        .into_iter()
        .filter_map(|endpoint| read(endpoint, port))
        .collect()
}

fn read(endpoint: Endpoint, port: u16) -> Option<Found> {
    let addresses: Vec<String> = endpoint
        .addresses
        .iter()
        .filter_map(|address| address.parse().ok())
        .map(|ip: IpAddr| SocketAddr::new(ip, port).to_string())
        .collect();
    let pod = endpoint.target_ref.and_then(|pod| pod.uid);
    let first = addresses.first()?.clone();
    let node = endpoint.node_name;
    Some(Found {
        key: node.clone().or(pod).unwrap_or(first),
        node,
        terminating: endpoint
            .conditions
            .and_then(|conditions| conditions.terminating)
            .unwrap_or_default(),
        addresses,
    })
}

#[cfg(test)]
mod tests;
