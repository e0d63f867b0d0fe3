//! What is seen of the fleet: the only source of the page and of the timeline.

mod fault;
mod observation;

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, MultiClusterIngress, Remedy};
use karmada_rules::health::observation::Failure;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use self::fault::{ApiFault, DnsFault};
pub(crate) use self::observation::{Observation, Vote};

/// Something that was seen.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// All Clusters there are.
    Clusters(Vec<Arc<Cluster>>),
    /// All Remedies there are.
    Remedies(Vec<Arc<Remedy>>),
    /// All ingresses there are.
    Ingresses(Vec<Arc<MultiClusterIngress>>),
    /// All leases there are.
    Leases(Vec<Arc<Lease>>),
    /// How a cluster's DNS server behaves.
    Dns { cluster: String, fault: DnsFault },
    /// A pod asked its cluster's DNS.
    Asked {
        cluster: String,
        result: Result<(), Failure>,
    },
    /// An agent began, or ended.
    Agent {
        cluster: String,
        node: String,
        alive: bool,
    },
    /// What an agent says of its node; none: it did not answer.
    Voted {
        cluster: String,
        node: String,
        observation: Option<Observation>,
    },
    /// A request was sent to a cluster.
    Sent { cluster: String },
    /// It came to an end.
    Answered { cluster: String, ok: bool },
    /// A request was sent nowhere: no cluster is served.
    Unserved,
    /// Whether the Karmada API answered.
    ApiAnswers(bool),
    /// What is wrong with the Karmada API, and until when.
    Api {
        fault: ApiFault,
        until: Option<Instant>,
    },
}

/// Where facts are told. Clones lead to the same place.
#[derive(Clone, Debug)]
pub(crate) struct Facts(mpsc::UnboundedSender<(Instant, Fact)>);

/// Facts as they were told, each with when.
pub(crate) type Told = mpsc::UnboundedReceiver<(Instant, Fact)>;

/// A place to tell facts, and to hear them.
pub(crate) fn channel() -> (Facts, Told) {
    let (sender, told) = mpsc::unbounded_channel();
    (Facts(sender), told)
}

impl Facts {
    /// Tells a fact, of now. Nobody need listen.
    pub(crate) fn tell(&self, fact: Fact) {
        drop(self.0.send((Instant::now(), fact)));
    }
}
