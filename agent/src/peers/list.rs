//! The list of other agents, from flags or from the EndpointSlices of the agents' Service.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_runtime::client::Addresses;
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::{CampaignMode, Leadership};
use karmada_runtime::readiness::Gate;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Identity;
use crate::metrics::PeerMetrics;

/// The name of the port that serves vote documents, in the agents' Service.
const PORT: &str = "admin";

/// The interval at which an agent that does not watch lists the slices, give or take a quarter.
const LIST_EVERY: Duration = Duration::from_mins(10);

/// The least interval, whoever sends requests from addresses that are not on the list.
const LIST_SOONEST: Duration = Duration::from_mins(1);

/// The time over which agents that start together spread their first lists. Each is not ready before its
/// own, so it is short.
const FIRST_LIST_WITHIN: Duration = Duration::from_secs(5);

/// Bounds the memory that a list with endless addresses of one node may take.
const MOST_ADDRESSES: usize = 8;

/// Another agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its node, if the member's API names it.
    pub(crate) node: Option<String>,
    /// Its addresses as `host:port`, the one most likely to respond first.
    pub(crate) addresses: Vec<String>,
}

/// The other agents by a key that is unique to each.
pub(crate) type PeerList = BTreeMap<String, Peer>;

/// The newest list, for those who watch it; `None` until there is one.
#[derive(Debug)]
pub(super) struct Directory {
    own_node: String,
    list: watch::Sender<Option<Arc<PeerList>>>,
    known: watch::Sender<Option<usize>>,
    /// Set when the list may be old.
    doubt: Notify,
    metrics: PeerMetrics,
}

/// The agents' Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// `None` stands for the namespace that this agent runs in.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// The endpoints in the slices of a Service.
#[derive(Debug)]
struct Slices {
    own_node: String,
    own_port: u16,
    known: BTreeMap<String, Vec<AgentEndpoint>>,
    /// The slices of a list under way.
    listing: BTreeMap<String, Vec<AgentEndpoint>>,
}

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentEndpoint {
    /// The agent it belongs to: its node or, if it names none, its pod or address.
    key: String,
    node: Option<String>,
    terminating: bool,
    addresses: Vec<String>,
}

impl Directory {
    pub(super) fn new(own: &Identity, metrics: PeerMetrics) -> Self {
        Self {
            own_node: own.node.clone(),
            list: watch::Sender::new(None),
            known: watch::Sender::new(None),
            doubt: Notify::new(),
            metrics,
        }
    }

    /// Watches the list of other agents.
    pub(super) fn list(&self) -> watch::Receiver<Option<Arc<PeerList>>> {
        self.list.subscribe()
    }

    /// Watches the number of agents, this one included.
    pub(super) fn known(&self) -> watch::Receiver<Option<usize>> {
        self.known.subscribe()
    }

    /// Returns `true` if an agent has the address, which `addresses` knows of those that are given by name.
    pub(super) fn has(&self, address: IpAddr, addresses: &Addresses) -> bool {
        let list = self.list.borrow();
        let mut hosts = list
            .iter()
            .flat_map(|list| list.values())
            .flat_map(|peer| &peer.addresses)
            .filter_map(|peer| Some(peer.rsplit_once(':')?.0.trim_matches(['[', ']'])));
        hosts.any(|host| match host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical() == address,
            Err(_) => addresses.known(host).contains(&address),
        })
    }

    /// Has the list read anew: an agent may have an address that it lacks.
    pub(super) fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Replaces the list.
    pub(super) fn set(&self, list: PeerList) {
        // Plus this agent, unless it is in the list.
        let known = list.len() + usize::from(!list.contains_key(&self.own_node));
        self.metrics.set_known(known);
        self.list.send_if_modified(|before| {
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

/// Discovers the other agents in the EndpointSlices of a Service.
pub(super) struct Discovery {
    pub(super) client: Client,
    pub(super) service: Service,
    pub(super) own: Arc<Identity>,
    pub(super) directory: Arc<Directory>,
    /// Opens once there is a list.
    pub(super) gate: Gate,
    pub(super) election: Election,
}

/// This agent's part in the election of the leader.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    pub(crate) mode: watch::Receiver<CampaignMode>,
    pub(crate) leadership: Leadership,
}

impl Election {
    /// Waits until this agent leads or stands by, or until it does neither.
    async fn until(&mut self, wanted: bool) {
        loop {
            let mode = *self.mode.borrow_and_update();
            // Not also those that campaign in turn: while nobody can lead, that is every agent in the end.
            let stands_by = mode == CampaignMode::Eager;
            let leads = self.leadership.held_until().is_some();
            if (stands_by || leads) == wanted {
                return;
            }
            tokio::select! {
                biased;
                Ok(()) = self.mode.changed() => {}
                () = self.leadership.acquired(), if !leads => {}
                () = self.leadership.lost(), if leads => {}
            }
        }
    }
}

impl Discovery {
    /// Keeps the list up to date until the program stops.
    ///
    /// The API server sends each change of a slice to every watch of it, and a rollout changes the
    /// slices once per node. So only the leader and the agents that stand by watch them; all others list
    /// them from time to time, and an agent that becomes the leader lists them at once.
    pub(super) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        let discovery = async {
            let mut slices = Slices::new(&self.own);
            sleep(FIRST_LIST_WITHIN.mul_f64(fastrand::f64())).await;
            loop {
                self.watch(&mut slices).await;
                // Spread, so that agents started together do not list together for ever.
                let rest = LIST_EVERY.mul_f64(0.75 + fastrand::f64() / 2.0);
                let doubted = async {
                    sleep(LIST_SOONEST).await;
                    self.directory.doubt.notified().await;
                    sleep(FIRST_LIST_WITHIN.mul_f64(fastrand::f64())).await;
                };
                tokio::select! {
                    biased;
                    () = self.election.until(true) => {}
                    () = doubted => {}
                    () = sleep(rest) => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            () = discovery => Ok(()),
        }
    }

    /// Lists the slices, and then watches them while this agent leads or stands by.
    async fn watch(&mut self, slices: &mut Slices) {
        let Service { namespace, name } = &self.service;
        let namespace = namespace
            .as_deref()
            .unwrap_or_else(|| self.client.default_namespace())
            .to_owned();
        let api: Api<Decoded<EndpointSlice>> = Api::namespaced(self.client.clone(), &namespace);
        let selected = Config::default().labels(&format!("kubernetes.io/service-name={name}"));
        let mut events = pin!(events(api, selected));
        let (mut listed, mut warned_empty) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                // Not before there is a list, which is all that an agent that is led needs.
                () = self.election.until(false), if listed => return,
                Some(event) = events.next() => event,
            };
            if !slices.observe(event) {
                continue;
            }
            if let Some(list) = slices.list() {
                self.directory.set(list);
                self.gate.open();
                (listed, warned_empty) = (true, false);
            } else if !std::mem::replace(&mut warned_empty, true) {
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

impl Slices {
    fn new(own: &Identity) -> Self {
        Self {
            own_node: own.node.clone(),
            own_port: own.port,
            known: BTreeMap::new(),
            listing: BTreeMap::new(),
        }
    }

    /// Applies an event and returns `true` if the list may have changed. An unreadable slice keeps its
    /// last good version.
    fn observe(&mut self, event: Event<Decoded<EndpointSlice>>) -> bool {
        match event {
            Event::Init => {
                self.listing.clear();
                false
            }
            Event::InitApply(slice) => {
                if let Some((name, endpoints)) = self.read(slice) {
                    self.listing.insert(name, endpoints);
                }
                false
            }
            // Only a complete list replaces the known slices: one that is cut off removes nobody.
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

    fn read(&self, slice: Decoded<EndpointSlice>) -> Option<(String, Vec<AgentEndpoint>)> {
        match slice {
            Decoded::Valid(slice) => {
                let name = slice.metadata.name.clone()?;
                Some((name, endpoints(slice, self.own_port)))
            }
            Decoded::Invalid { metadata, error } => {
                let name = metadata.name?;
                tracing::warn!(
                    slice = name,
                    error,
                    "Unreadable EndpointSlice, keeping its last good version"
                );
                let endpoints = self.known.get(&name)?.clone();
                Some((name, endpoints))
            }
        }
    }

    /// Returns the agents, each node once: an agent with addresses of both families is in two slices, and
    /// one that is being replaced has two pods on its node. The agent on the node of our name is ourselves
    /// as a rule, but another one if several have that name by mistake: its response decides.
    ///
    /// Returns `None` for slices without any endpoint. They are incomplete, since at least this agent
    /// belongs there.
    fn list(&self) -> Option<PeerList> {
        let mut all: Vec<&AgentEndpoint> = self.known.values().flatten().collect();
        // The addresses of a terminating pod come last: its successor has the fresher vote.
        all.sort_by_key(|endpoint| endpoint.terminating);
        if all.is_empty() {
            return None;
        }
        let mut list = PeerList::new();
        for endpoint in all {
            // The agent that ran here before us.
            if endpoint.terminating && endpoint.node.as_deref() == Some(&self.own_node) {
                continue;
            }
            let peer = list.entry(endpoint.key.clone()).or_default();
            peer.node.clone_from(&endpoint.node);
            for address in &endpoint.addresses {
                if peer.addresses.len() < MOST_ADDRESSES && !peer.addresses.contains(address) {
                    peer.addresses.push(address.clone());
                }
            }
        }
        Some(list)
    }
}

/// Returns the endpoints of a slice that have an address, ready or not: an agent that is not ready
/// responds that it has no vote.
fn endpoints(slice: EndpointSlice, own_port: u16) -> Vec<AgentEndpoint> {
    let ports = slice.ports.unwrap_or_default();
    let mut all = ports.iter();
    let port = all
        .find(|port| port.name.as_deref() == Some(PORT))
        .or_else(|| ports.first())
        .and_then(|port| u16::try_from(port.port?).ok())
        .unwrap_or(own_port);
    let endpoints = slice.endpoints.unwrap_or_default();
    endpoints
        .into_iter()
        .filter_map(|endpoint| read(endpoint, port))
        .collect()
}

fn read(endpoint: Endpoint, port: u16) -> Option<AgentEndpoint> {
    let addresses: Vec<String> = endpoint
        .addresses
        .iter()
        // An endpoint's address may be a host name, which the agent does not resolve.
        .filter_map(|address| address.parse().ok())
        .map(|ip: IpAddr| SocketAddr::new(ip, port).to_string())
        .collect();
    let pod = endpoint.target_ref.and_then(|pod| pod.uid);
    let first = addresses.first()?.clone();
    let node = endpoint.node_name;
    Some(AgentEndpoint {
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
