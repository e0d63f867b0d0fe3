//! Updates on the fleet, each of something that was observed: the only input of the page and of the
//! timeline.

use std::sync::Arc;

use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot, ResourceSnapshot};
use health::observation::Failure;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, ClusterView, MultiClusterIngress, Remedy, Work};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::fault::{ApiFault, DnsFault, Outage, ServiceNetworkFault};
use crate::node_vote::NodeVote;
use crate::site::Site;

/// An update on one part of the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    /// All Clusters that exist.
    Clusters(Vec<Arc<Cluster>>),
    /// All Clusters that exist, with their taints.
    Profiles(Vec<Arc<ClusterView>>),
    /// All Remedies that exist.
    Remedies(Vec<Arc<Remedy>>),
    /// All `MultiClusterIngresses` that exist.
    Ingresses(Vec<Arc<MultiClusterIngress>>),
    /// All Leases that exist.
    Leases(Vec<Arc<Lease>>),
    /// All Deployments of the shop in the Karmada API.
    Templates(Vec<Arc<Deployment>>),
    /// All Works that exist.
    Works(Vec<Arc<Work>>),
    /// All Deployments of a website in a member.
    Copies {
        site: Site,
        cluster: String,
        copies: Vec<Arc<Deployment>>,
    },
    /// The objects of one kind on the hub.
    Hub(HubUpdate),
    /// A fault of a cluster as a whole.
    Outage { cluster: String, outage: Outage },
    /// Whether a cluster responds to somebody.
    Reach {
        cluster: String,
        from: Side,
        reached: bool,
    },
    /// The fault injected into a cluster's DNS server.
    Dns { cluster: String, fault: DnsFault },
    /// The fault injected into a cluster's Service network.
    ServiceNetwork {
        cluster: String,
        fault: ServiceNetworkFault,
    },
    /// The number of nodes from which pods cannot connect to Services.
    Connections { cluster: String, failing: usize },
    /// A pod's query to its cluster's DNS.
    Lookup {
        cluster: String,
        result: Result<(), Failure>,
    },
    /// The start or the end of an agent.
    Agent {
        cluster: String,
        node: String,
        alive: bool,
    },
    /// A node's vote; none if its agent did not respond.
    Vote {
        cluster: String,
        node: String,
        vote: Option<NodeVote>,
    },
    /// A user's request to a website.
    Request(Site, Request),
    /// The availability of the Karmada API.
    ApiAvailable(bool),
    /// The fault injected into the Karmada API, and its end.
    Api {
        fault: ApiFault,
        until: Option<Instant>,
    },
}

/// All objects of one kind on the hub.
#[derive(Clone, Debug)]
pub(crate) enum HubUpdate {
    /// The Deployments of the store.
    Deployments(Vec<Arc<Deployment>>),
    /// The clusters of the fleet.
    Clusters(Vec<Arc<MemberCluster>>),
    Placements(Vec<Arc<Placement>>),
    /// The snapshots of policies.
    Policies(Vec<Arc<PolicySnapshot>>),
    /// The snapshots of the selected objects.
    Snapshots(Vec<Arc<ResourceSnapshot>>),
    Bindings(Vec<Arc<Binding>>),
}

/// Those who connect to clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    /// The gateway, to the shop's pod.
    Gateway,
    /// The control plane, to the API.
    ControlPlane,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// It was sent to a cluster.
    Sent { cluster: String },
    /// It ended, having been sent to a cluster.
    Responded { cluster: String, ok: bool },
    /// It could be sent to no cluster.
    Unserved,
}

/// The sending half of the updates. Its clones send to the same receiver.
#[derive(Clone, Debug)]
pub(crate) struct UpdateSender(mpsc::UnboundedSender<(Instant, Update)>);

/// The receiving half of the updates, each with its time.
pub(crate) type UpdateReceiver = mpsc::UnboundedReceiver<(Instant, Update)>;

/// Creates both halves.
pub(crate) fn channel() -> (UpdateSender, UpdateReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (UpdateSender(sender), receiver)
}

impl UpdateSender {
    /// Sends an update that is timed now.
    pub(crate) fn send(&self, update: Update) {
        // Without a receiver the sandbox is about to end.
        drop(self.0.send((Instant::now(), update)));
    }
}
