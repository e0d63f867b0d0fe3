//! The faults to inject, by the names that the page uses.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DnsFault {
    /// No fault.
    #[default]
    None,
    /// The server does not listen.
    Stop,
    /// Every response is REFUSED.
    Refuse,
    /// Every response is SERVFAIL.
    Servfail,
    /// Every response is NXDOMAIN.
    Nxdomain,
    /// Every query is dropped.
    Drop,
    /// Responses come too late.
    Slow,
    /// Three of ten queries are dropped.
    Lose,
}

/// A fault of kube-proxy's rules for the agents' Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServiceNetworkFault {
    /// No fault.
    #[default]
    None,
    /// The first node has no rules.
    OneNode,
    /// No node has rules.
    Refuse,
    /// Every connection is reset.
    Reset,
    /// Every connection is lost.
    Drop,
}

/// A fault of a cluster as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outage {
    /// Nothing.
    #[default]
    None,
    /// Its power: its agents are gone, and neither its API nor its backends answer.
    PowerOff,
    /// The link between it and the control plane, in both directions. The gateway has another one.
    LinkCut,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApiFault {
    /// No fault.
    #[default]
    None,
    /// Every connection is lost.
    Cut,
    /// Every response takes a second longer.
    Slow,
    /// Every second write conflicts.
    Conflicts,
    /// Every third request fails.
    Errors,
}
