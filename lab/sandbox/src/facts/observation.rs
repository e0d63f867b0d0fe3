//! What an agent says.

use serde::{Deserialize, Serialize};

/// What an agent says of its node: its answer to `GET /v1/observation`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Observation {
    pub(crate) vote: Vote,
    /// How DNS fails, with an unhealthy vote.
    class: Option<String>,
    /// Which server fails so.
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

impl Observation {
    /// How DNS fails, if it does: `timeout from 127.0.0.1:5301`.
    pub(crate) fn failure(&self) -> Option<String> {
        let class = self.class.as_ref()?;
        Some(match &self.server {
            Some(server) => format!("{class} from {server}"),
            None => class.clone(),
        })
    }
}
