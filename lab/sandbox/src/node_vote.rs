//! The votes of agents, as their peers read them.

use serde::{Deserialize, Serialize};

/// An agent's response to `GET /v1/observation`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct NodeVote {
    pub(crate) vote: Vote,
    /// The failure's class, with an unhealthy vote.
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
        let class = self.class.as_ref()?;
        Some(match &self.server {
            Some(server) => format!("{class} from {server}"),
            None => class.clone(),
        })
    }
}
