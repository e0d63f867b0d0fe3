//! The other agents of this cluster: says what this node's vote is when asked, and asks them for
//! theirs while leading.
//!
//! Nothing is decided here: what the agents say is counted, and `karmada_rules::health::quorum` judges.

mod ask;
mod list;
mod observation;
mod poll;
mod roster;
mod serve;

use std::sync::Arc;
use std::time::Duration;

use karmada_rules::health::threshold::Vote;
use karmada_runtime::program::{Program, StartError};
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use self::list::{Follow, Listing};
pub(crate) use self::list::{List, Peer, Service};
use crate::metrics::PeerMetrics;

/// Where an agent says what its node's vote is.
const PATH: &str = "/v1/observation";

/// Where the other agents are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// There are none.
    Alone,
    /// There are these.
    Fixed(List),
    /// The member's API knows.
    Listed(Service),
}

/// Whom this agent speaks for.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) cluster: String,
    pub(crate) node: String,
    /// The port it listens on; another agent's, when nothing else is said.
    pub(crate) port: u16,
}

/// That a leader has asked this agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// When.
    pub(crate) at: Instant,
    /// Whether this agent is to take over when that leader is gone.
    pub(crate) standby: bool,
}

/// What a leader needs to ask the others.
#[derive(Debug)]
pub(crate) struct Peers {
    own: Arc<Own>,
    /// Once in so long every agent is asked.
    period: Duration,
    votes: watch::Receiver<Option<Vote>>,
    listing: Arc<Listing>,
    metrics: PeerMetrics,
}

/// The peers, and what is to be known of them outside.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) peers: Peers,
    /// When a leader on another node last asked this agent.
    pub(crate) asked: watch::Receiver<Option<Asked>>,
    /// How many agents the cluster has, this one included; none until that is known.
    pub(crate) known: watch::Receiver<Option<usize>>,
}

/// Serves this node's vote, and learns who the other agents are.
///
/// # Errors
/// When they are to be learned from the member's API and there is none.
pub(crate) fn start(
    program: &mut Program,
    own: Own,
    (others, member): (Others, Option<Client>),
    period: Duration,
    votes: watch::Receiver<Option<Vote>>,
) -> Result<Started, StartError> {
    let own = Arc::new(own);
    let (asking, asked) = watch::channel(None);
    let (saying, said) = serve::nothing_said();
    let routes = serve::routes(Arc::clone(&own), said, asking);
    program.routes = std::mem::take(&mut program.routes).merge(routes);
    let note = serve::note(votes.clone(), saying, program.stopping.clone());
    program.tasks.spawn("observation", note);

    let metrics = PeerMetrics::register(&mut program.registry);
    let listing = Arc::new(Listing::new(metrics.clone()));
    match others {
        Others::Alone => {
            tracing::warn!(
                "Neither --peer nor a member API: this agent's vote alone is the cluster's verdict"
            );
            listing.set(List::new());
        }
        Others::Fixed(list) => listing.set(list),
        Others::Listed(service) => {
            let member = member.ok_or_else(|| {
                let problem = "--peer-service needs the API of the member cluster: run in it, or name --member-kubeconfig";
                StartError::Config(problem.to_owned())
            })?;
            let gate = program.readiness.gate("peers");
            let follow = Follow {
                client: member,
                service,
                own: Arc::clone(&own),
                listing: Arc::clone(&listing),
                gate,
                asked: asked.clone(),
            };
            let follow = follow.run(program.stopping.clone());
            program.tasks.spawn("peers", follow);
        }
    }
    Ok(Started {
        known: listing.known(),
        peers: Peers {
            own,
            period,
            votes,
            listing,
            metrics,
        },
        asked,
    })
}

#[cfg(test)]
impl Peers {
    /// Of the only agent of its cluster.
    pub(crate) fn alone(
        node: &str,
        period: Duration,
        votes: watch::Receiver<Option<Vote>>,
    ) -> Self {
        let metrics = PeerMetrics::register(&mut prometheus_client::registry::Registry::default());
        let listing = Arc::new(Listing::new(metrics.clone()));
        listing.set(List::new());
        Self {
            own: Arc::new(Own {
                cluster: "member1".to_owned(),
                node: node.to_owned(),
                port: 8080,
            }),
            period,
            votes,
            listing,
            metrics,
        }
    }
}
