//! The other agents of this cluster: serves this node's votes to them and, while leading, requests
//! theirs.
//!
//! Nothing is decided here: votes are counted, and `health::quorum` judges the tally.

mod client;
mod identity;
mod list;
mod poll;
mod roster;
mod serve;
mod vote_document;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use health::campaign::LeaderContact;
use health::quorum::Quorum;
use health::signal::PerTarget;
use karmada_runtime::client::Addresses;
use karmada_runtime::program::{Program, StartError};
use kube::Client;
use tokio::sync::watch;

pub(crate) use self::identity::Identity;
use self::list::{Directory, Discovery};
pub(crate) use self::list::{Election, Peer, PeerList, Service};
pub(crate) use self::vote_document::{OBSERVATION_PATH, VoteDocument};
use crate::metrics::PeerMetrics;
use crate::vote::Votes;

/// The source of the list of other agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerSource {
    /// There are no other agents.
    Alone,
    /// Flags.
    Fixed(PeerList),
    /// The EndpointSlices of a Service in the member cluster.
    Service(Service),
}

impl PeerSource {
    /// Returns the host names of peers that flags give by name.
    pub(crate) fn names(&self) -> Vec<String> {
        let Self::Fixed(list) = self else {
            return Vec::new();
        };
        let addresses = list.values().flat_map(|peer| &peer.addresses);
        let hosts = addresses.filter_map(|address| Some(address.rsplit_once(':')?.0));
        let names = hosts.filter(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().is_err());
        names.map(ToOwned::to_owned).collect()
    }
}

/// The other agents, for a leader to poll.
#[derive(Debug)]
pub(crate) struct Peers {
    own: Arc<Identity>,
    /// From the start of one round of requests to the start of the next.
    period: Duration,
    votes: watch::Receiver<Votes>,
    directory: Arc<Directory>,
    /// The addresses of agents that are given by name.
    addresses: Addresses,
    /// The largest response of an agent that is read, in bytes.
    largest: usize,
    metrics: PeerMetrics,
}

/// The settings and connections of discovery and polling.
pub(crate) struct PeerSettings {
    pub(crate) source: PeerSource,
    /// The API of the member cluster.
    pub(crate) member: Option<Client>,
    /// Looks up peers given by name.
    pub(crate) addresses: Addresses,
    pub(crate) election: Election,
    /// The interval of polls.
    pub(crate) period: Duration,
    /// The quorum of each signal that the agents vote on.
    pub(crate) quorums: PerTarget<Quorum>,
}

/// The running parts of this module.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) peers: Peers,
    /// The last request of a leader on another node.
    pub(crate) contacts: watch::Receiver<Option<LeaderContact>>,
    /// The number of agents in the cluster, this one included; `None` until it is known.
    pub(crate) known: watch::Receiver<Option<usize>>,
}

/// Serves this node's votes and spawns the discovery of the other agents.
///
/// # Errors
/// Returns an error if they must be discovered and `member` is `None`.
pub(crate) fn start(
    program: &mut Program,
    own: Identity,
    settings: PeerSettings,
    votes: watch::Receiver<Votes>,
) -> Result<Started, StartError> {
    let PeerSettings {
        source,
        member,
        addresses,
        election,
        period,
        quorums,
    } = settings;
    let own = Arc::new(own);
    let mut targets = quorums.iter().map(|(target, _)| target);
    let largest = if targets.all(|target| target.signal.is_of_own_cluster()) {
        client::LARGEST
    } else {
        client::LARGEST_ON_OTHERS
    };
    let (contacted, contacts) = watch::channel(None);
    let (dating, dated) = watch::channel(serve::dated_now(&votes.borrow()));
    let task = serve::date_votes(votes.clone(), dating, program.stopping.clone());
    program.tasks.spawn("observation", task);

    let metrics = PeerMetrics::register(&mut program.registry, &quorums);
    let directory = Arc::new(Directory::new(&own, metrics.clone()));
    let callers = serve::Callers {
        directory: Arc::clone(&directory),
        addresses: addresses.clone(),
    };
    let routes = serve::routes(Arc::clone(&own), dated, contacted, callers);
    program.routes = std::mem::take(&mut program.routes).merge(routes);
    match source {
        PeerSource::Alone => {
            tracing::warn!(
                "Neither --peer nor a member API: this agent's vote alone is the cluster's verdict"
            );
            directory.set(PeerList::new());
        }
        PeerSource::Fixed(list) => directory.set(list),
        PeerSource::Service(service) => {
            let member = member.ok_or_else(|| {
                let problem = "--peer-service needs the API of the member cluster: run in it, or name --member-kubeconfig";
                StartError::Config(problem.to_owned())
            })?;
            // Until there is a list, a quorum cannot be told from a lone agent.
            let gate = program.readiness.gate("peers");
            let discovery = Discovery {
                client: member,
                service,
                own: Arc::clone(&own),
                directory: Arc::clone(&directory),
                gate,
                election,
            };
            let discovery = discovery.run(program.stopping.clone());
            program.tasks.spawn("peers", discovery);
        }
    }
    Ok(Started {
        known: directory.known(),
        peers: Peers {
            own,
            period,
            votes,
            directory,
            addresses,
            largest,
            metrics,
        },
        contacts,
    })
}

#[cfg(test)]
impl Peers {
    /// Creates the peers of an agent, at whose addresses nobody responds.
    pub(crate) fn for_tests(
        node: &str,
        period: Duration,
        votes: watch::Receiver<Votes>,
        silent: u16,
    ) -> Self {
        let mut registry = karmada_runtime::metrics::Registry::default();
        let metrics = PeerMetrics::register(&mut registry, &votes.borrow());
        let own = Arc::new(Identity {
            cluster: "member1".to_owned(),
            node: node.to_owned(),
            id: uuid::Uuid::new_v4(),
            port: 8080,
        });
        let directory = Arc::new(Directory::new(&own, metrics.clone()));
        let peers = (1..=silent).map(|port| {
            let addresses = vec![format!("127.0.0.1:{port}")];
            (
                addresses[0].clone(),
                Peer {
                    node: None,
                    addresses,
                },
            )
        });
        directory.set(peers.collect());
        Self {
            own,
            period,
            votes,
            directory,
            addresses: Addresses::by_system(),
            largest: client::LARGEST,
            metrics,
        }
    }
}
