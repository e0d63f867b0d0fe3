//! The state as the page receives it.

use karmada_api::condition::{DNS_READY, FALSE, REACHABLE, SERVICE_NETWORK_READY, TRUE};
use serde::Serialize;

use super::member::Member;
use crate::fault::{ApiFault, DnsFault, Outage, ServiceNetworkFault};
use crate::node_vote::Vote;
use crate::update::Side;

/// The fleet at one moment. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    pub(crate) now_ms: u64,
    pub(crate) thresholds: ThresholdsState,
    pub(crate) kubeconfig: String,
    pub(crate) clusters: Vec<ClusterState>,
    pub(crate) rollout: RolloutState,
    pub(crate) placements: PlacementsState,
    pub(crate) remedies: Vec<RemedyState>,
    pub(crate) api: ApiState,
    /// Their number; none before the first list.
    pub(crate) ingresses: Option<usize>,
    /// Requests that no cluster could be sent.
    pub(crate) unserved: u64,
}

impl State {
    pub(crate) fn cluster(&self, name: &str) -> Option<&ClusterState> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// Counts the requests to a cluster since the start.
    pub(crate) fn requests_to(&self, cluster: &str) -> u64 {
        self.cluster(cluster).map_or(0, |cluster| cluster.requests)
    }

    /// Counts the requests to all clusters since the start.
    pub(crate) fn requests(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.requests).sum()
    }

    /// Counts the requests that failed since the start, those without a cluster included.
    pub(crate) fn errors(&self) -> u64 {
        let of_clusters: u64 = self.clusters.iter().map(|cluster| cluster.errors).sum();
        of_clusters + self.unserved
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names on the wire have the unit"
)]
pub(crate) struct ThresholdsState {
    pub(crate) period_ms: u64,
    pub(crate) failure_ms: u64,
    pub(crate) success_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterState {
    pub(crate) name: String,
    pub(crate) phase: Phase,
    /// Set if its Cluster object was deleted.
    pub(crate) deleted: bool,
    pub(crate) outage: Outage,
    /// Those to whom it does not respond.
    pub(crate) lost_by: Vec<Side>,
    pub(crate) dns: DnsState,
    pub(crate) service_network: ServiceNetworkState,
    pub(crate) nodes: Vec<NodeState>,
    pub(crate) conditions: Vec<ConditionState>,
    pub(crate) actions: Vec<ActionState>,
    pub(crate) blocked: bool,
    pub(crate) requests_per_second: usize,
    pub(crate) errors_per_second: usize,
    /// Requests that ended since the start.
    pub(crate) requests: u64,
    /// The errors among them.
    pub(crate) errors: u64,
}

/// The state of a cluster in one word, which its card shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// No agent has reported a verdict on its DNS yet.
    #[default]
    NoVerdict,
    /// Its DNS works, and it gets requests.
    InService,
    /// Its DNS works, and it gets no requests.
    Idle,
    /// Its DNS or its Service network has a fault, or it lacks its power or its link.
    Disturbed,
    /// All work again, but the verdict on one is still False.
    Recovering,
    /// An ingress blocks it.
    Blocked,
    /// An ingress blocks it, and all work again.
    BlockedRecovering,
    /// Its Cluster object was deleted.
    Deleted,
}

impl Phase {
    /// Determines the phase of a member that gets so many requests per second.
    pub(super) fn of(member: &Member, requests_per_second: usize) -> Self {
        let has_fault = member.dns != DnsFault::None
            || member.service_network != ServiceNetworkFault::None
            || member.outage != Outage::None;
        let is_failed = [DNS_READY, SERVICE_NETWORK_READY, REACHABLE]
            .into_iter()
            .any(|kind| member.verdict(kind) == Some(FALSE));
        let is_recovering = !has_fault && is_failed;
        if member.deleted {
            Self::Deleted
        } else if member.blocked_since.is_some() {
            if is_recovering {
                Self::BlockedRecovering
            } else {
                Self::Blocked
            }
        } else if is_recovering {
            Self::Recovering
        } else if has_fault {
            Self::Disturbed
        } else if member.verdict(DNS_READY) != Some(TRUE) {
            Self::NoVerdict
        } else if requests_per_second > 0 {
            Self::InService
        } else {
            Self::Idle
        }
    }
}

/// The part of [`State`] that the plots show, by the same names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    now_ms: u64,
    clusters: Vec<ClusterSample>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ClusterSample {
    name: String,
    dns: DnsState,
    blocked: bool,
    requests_per_second: usize,
    errors_per_second: usize,
}

impl Sample {
    pub(crate) fn of(state: &State) -> Self {
        let clusters = state.clusters.iter().map(|cluster| ClusterSample {
            name: cluster.name.clone(),
            dns: cluster.dns.clone(),
            blocked: cluster.blocked,
            requests_per_second: cluster.requests_per_second,
            errors_per_second: cluster.errors_per_second,
        });
        Self {
            now_ms: state.now_ms,
            clusters: clusters.collect(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DnsState {
    pub(crate) fault: DnsFault,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ServiceNetworkState {
    pub(crate) fault: ServiceNetworkFault,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) alive: bool,
    pub(crate) leader: bool,
    pub(crate) vote: Vote,
    /// The failure of DNS there: `timeout from 127.0.0.1:5301`.
    pub(crate) failure: Option<String>,
    /// The failure of its connections to Services, if they fail.
    pub(crate) network_failure: Option<String>,
    pub(crate) since_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ConditionState {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) since_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ActionState {
    pub(crate) action: String,
    pub(crate) remedies: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RolloutState {
    /// The version that the template wants; none while there is no template.
    pub(crate) wanted: Option<String>,
    pub(crate) clusters: Vec<RolloutClusterState>,
}

impl RolloutState {
    /// Returns `true` if every cluster runs the version of the template, and none is paused.
    pub(crate) fn is_complete(&self) -> bool {
        let mut clusters = self.clusters.iter();
        self.wanted.is_some() && clusters.all(|it| it.runs == self.wanted && !it.paused)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RolloutClusterState {
    pub(crate) name: String,
    /// The version of the pods that are ready.
    pub(crate) runs: Option<String>,
    /// The version of pods that are not ready yet.
    pub(crate) starts: Option<String>,
    /// Set if changes to it wait.
    pub(crate) paused: bool,
    /// The number of changes of the Deployment there.
    pub(crate) generation: i64,
}

/// The fleet of the hub, and the placements in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PlacementsState {
    /// The version of the store that the hub has; none while it has no store.
    pub(crate) wanted: Option<String>,
    pub(crate) clusters: Vec<FleetClusterState>,
    pub(crate) placements: Vec<PlacementState>,
    /// Requests to the store that no cluster could be sent.
    pub(crate) unserved: u64,
}

impl PlacementsState {
    /// Returns the placement of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&PlacementState> {
        self.placements.iter().find(|it| it.name == name)
    }

    pub(crate) fn cluster(&self, name: &str) -> Option<&FleetClusterState> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// Counts the requests to the store since the start.
    pub(crate) fn requests(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.requests).sum()
    }

    /// Counts the requests to the store that failed since the start, those without a cluster included.
    pub(crate) fn errors(&self) -> u64 {
        let of_clusters: u64 = self.clusters.iter().map(|cluster| cluster.errors).sum();
        of_clusters + self.unserved
    }

    /// Returns `true` if every cluster is in the fleet, and all that is placed is available.
    pub(crate) fn is_complete(&self) -> bool {
        let (mut clusters, mut placements) = (self.clusters.iter(), self.placements.iter());
        clusters.all(|it| it.membership == Membership::Joined)
            && !self.placements.is_empty()
            && placements.all(|it| it.phase == PlacementPhase::Available)
    }
}

/// A cluster of the sandbox, as the hub knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FleetClusterState {
    pub(crate) name: String,
    pub(crate) membership: Membership,
    /// Set if somebody has placements give it nothing new.
    pub(crate) cordoned: bool,
    /// Set if they give it nothing new because its DNS is dead.
    pub(crate) sick: bool,
    /// The version of the store whose pods are ready there.
    pub(crate) runs: Option<String>,
    /// The version of pods of the store that are not ready yet.
    pub(crate) starts: Option<String>,
    pub(crate) requests_per_second: usize,
    pub(crate) errors_per_second: usize,
    /// Requests to the store there that ended since the start.
    pub(crate) requests: u64,
    /// The errors among them.
    pub(crate) errors: u64,
}

/// Whether a cluster is in the fleet of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Membership {
    /// It is registered, and its agent has not joined yet.
    Joining,
    Joined,
    /// It is to leave, and its agent has not yet.
    Leaving,
    Left,
}

/// A placement, in each cluster of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlacementState {
    pub(crate) name: String,
    pub(crate) phase: PlacementPhase,
    /// The first of its conditions that is not True, in its own words.
    pub(crate) says: Option<String>,
    pub(crate) clusters: Vec<PlacedClusterState>,
}

/// The state of a placement in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlacementPhase {
    /// The latest is not everywhere yet.
    RollingOut,
    /// The latest is everywhere, and available.
    Available,
    /// The latest will not be available in a cluster.
    Stuck,
}

/// A placement in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlacedClusterState {
    pub(crate) name: String,
    pub(crate) phase: PlacedPhase,
    /// The wave in which it got the latest, counted from 1.
    pub(crate) wave: Option<usize>,
    /// Its state and the reason for its wait, or why it is not picked.
    pub(crate) text: String,
    /// Why it is picked.
    pub(crate) picked: Option<String>,
    /// The objects there that are not as they are to be.
    pub(crate) failures: Vec<String>,
}

/// The state of a placement in a cluster in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlacedPhase {
    /// It is not there, and not to be.
    NotPicked,
    /// It waits for its turn to get the latest.
    Waiting,
    /// It has or gets the latest, which is not available yet.
    RollingOut,
    /// It has the latest, and all of it is available.
    Available,
    /// It has the latest, which will not be available.
    Stuck,
    /// It is to lose its objects.
    Removing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RemedyState {
    pub(crate) name: String,
    /// Its actions, clusters and conditions in words.
    pub(crate) rule: String,
    pub(crate) phase: RemedyPhase,
    pub(crate) conditions: Vec<ConditionState>,
    /// The clusters that have its actions.
    pub(crate) acting: Vec<String>,
    /// Those that the bound keeps unblocked.
    pub(crate) refused: Vec<String>,
    /// The moment from which it acts no more; none if it has no end.
    pub(crate) expires_ms: Option<u64>,
    /// The reason for which it was made, if its annotation gives one.
    pub(crate) reason: Option<String>,
}

/// The state of a Remedy in one word, as its own status tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RemedyPhase {
    /// It is a sample that does not exist.
    Absent,
    /// It has no status about its spec yet.
    NoStatus,
    /// It is not carried out as it is written.
    NotAccepted,
    /// It names the clusters on which it would act, and does nothing.
    ObserveOnly,
    /// It acts on a cluster.
    Active,
    /// It acts on no cluster now.
    Idle,
    /// Its end has passed.
    Expired,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ApiState {
    pub(crate) fault: ApiFault,
    /// Milliseconds until the fault ends by itself.
    pub(crate) left_ms: Option<u64>,
}
