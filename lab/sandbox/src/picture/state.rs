//! The page's view of everything, as it goes over the wire.

use serde::Serialize;

use crate::facts::{ApiFault, DnsFault, Vote};

/// Everything at one moment. Moments are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    pub(crate) now_ms: u64,
    pub(crate) thresholds: ThresholdsState,
    pub(crate) kubeconfig: String,
    pub(crate) clusters: Vec<ClusterState>,
    pub(crate) remedies: Vec<RemedyState>,
    pub(crate) api: ApiState,
    /// How many there are; none until they were first listed.
    pub(crate) ingresses: Option<usize>,
    /// Requests for which no cluster was served.
    pub(crate) unserved: u64,
}

impl State {
    pub(crate) fn cluster(&self, name: &str) -> Option<&ClusterState> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// Answers since the start, whoever gave them.
    pub(crate) fn requests(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.requests).sum()
    }

    /// Requests that failed since the start, whoever got them.
    pub(crate) fn errors(&self) -> u64 {
        let of_clusters: u64 = self.clusters.iter().map(|cluster| cluster.errors).sum();
        of_clusters + self.unserved
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names on the wire say the unit"
)]
pub(crate) struct ThresholdsState {
    pub(crate) period_ms: u64,
    pub(crate) failure_ms: u64,
    pub(crate) success_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterState {
    pub(crate) name: String,
    /// Whether its Cluster object was deleted.
    pub(crate) deleted: bool,
    pub(crate) dns: DnsState,
    pub(crate) nodes: Vec<NodeState>,
    pub(crate) conditions: Vec<ConditionState>,
    pub(crate) actions: Vec<ActionState>,
    pub(crate) blocked: bool,
    pub(crate) requests_per_second: usize,
    pub(crate) errors_per_second: usize,
    /// Answers since the start.
    pub(crate) requests: u64,
    /// Those of them that were errors.
    pub(crate) errors: u64,
}

/// What the plots show of one moment, by the same names.
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
        let cluster = |cluster: &ClusterState| ClusterSample {
            name: cluster.name.clone(),
            dns: cluster.dns.clone(),
            blocked: cluster.blocked,
            requests_per_second: cluster.requests_per_second,
            errors_per_second: cluster.errors_per_second,
        };
        Self {
            now_ms: state.now_ms,
            clusters: state.clusters.iter().map(cluster).collect(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DnsState {
    pub(crate) fault: DnsFault,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) alive: bool,
    pub(crate) leader: bool,
    pub(crate) vote: Vote,
    /// How DNS fails there: `timeout from 127.0.0.1:5301`.
    pub(crate) failure: Option<String>,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RemedyState {
    pub(crate) name: String,
    /// Whether it exists.
    pub(crate) active: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ApiState {
    pub(crate) fault: ApiFault,
    /// Until the fault ends by itself.
    pub(crate) left_ms: Option<u64>,
}
