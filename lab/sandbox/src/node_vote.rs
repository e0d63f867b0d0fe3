//! The votes of agents, as their peers read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The Service network among the signals.
const SERVICE_NETWORK: &str = "service-network";

/// An agent's response to `GET /v1/observation`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct NodeVote {
    pub(crate) vote: Vote,
    #[serde(flatten)]
    dns: VotedFailure,
    #[serde(default)]
    signals: BTreeMap<String, VotedFailure>,
}

/// The failure of an unhealthy vote; empty in any other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct VotedFailure {
    class: Option<String>,
    /// The server that fails.
    server: Option<String>,
}

/// A node's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Vote {
    Healthy,
    Unhealthy,
    FirstSuccess,
    #[serde(rename(deserialize = "no_vote"))]
    None,
}

impl NodeVote {
    /// Describes the failure of DNS, if any: `timeout from 127.0.0.1:5301`.
    pub(crate) fn failure(&self) -> Option<String> {
        self.dns.text()
    }

    /// Describes the failure of connections to Services, if any.
    pub(crate) fn network_failure(&self) -> Option<String> {
        self.signals.get(SERVICE_NETWORK)?.text()
    }
}

impl VotedFailure {
    fn text(&self) -> Option<String> {
        let class = self.class.as_ref()?;
        Some(match &self.server {
            Some(server) => format!("{class} from {server}"),
            None => class.clone(),
        })
    }
}
