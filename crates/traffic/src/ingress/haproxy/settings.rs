use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::ingress::ControllerName;
use crate::ingress::kubernetes::managed_by;

/// The settings that are the same for every server, and their owner.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Begins the names of our servers.
    pub(super) owner: String,
    pub(super) parameters: ServerParameters,
    /// The time between drain and maintenance.
    pub(super) grace: Duration,
    /// Set if connections that are open after that are ended.
    pub(super) ends_connections: bool,
}

impl ServerSettings {
    /// Creates the settings of `controller`'s servers.
    pub fn new(
        controller: &ControllerName,
        parameters: ServerParameters,
        grace: Duration,
        ends_connections: bool,
    ) -> Self {
        Self {
            owner: managed_by(controller),
            parameters,
            grace,
            ends_connections,
        }
    }
}

/// The parameters with which servers are added, for they inherit nothing of `default-server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerParameters(String);

impl ServerParameters {
    /// Returns `true` if they have a server's health checked.
    pub(super) fn checks(&self) -> bool {
        self.has("check")
    }

    /// Returns `true` if a server cuts the requests that it has when its check fails.
    pub fn cut_requests(&self) -> bool {
        self.has("on-marked-down")
    }

    fn has(&self, word: &str) -> bool {
        self.0.split_whitespace().any(|found| found == word)
    }
}

impl fmt::Display for ServerParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Default for ServerParameters {
    /// Without the last two a server that is added keeps no idle connection.
    fn default() -> Self {
        Self("check inter 2s pool-max-conn 100 pool-purge-delay 5s".to_owned())
    }
}

/// The parameters cannot follow a server's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidParameters {
    /// They would be more than one command.
    Command,
    /// An agent sets weights, which are kept as they are added.
    Agent,
}

impl fmt::Display for InvalidParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => {
                "must be parameters of a server such as `check inter 2s`, without ';', '\\', '<' and line breaks"
            }
            Self::Agent => {
                "must not have `agent-check`: an agent changes weights, which the controller restores"
            }
        })
    }
}

impl std::error::Error for InvalidParameters {}

impl FromStr for ServerParameters {
    type Err = InvalidParameters;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(|c: char| c.is_control() || matches!(c, ';' | '\\' | '<')) {
            return Err(InvalidParameters::Command);
        }
        let parameters = Self(text.trim().to_owned());
        if parameters.has("agent-check") {
            return Err(InvalidParameters::Agent);
        }
        Ok(parameters)
    }
}
