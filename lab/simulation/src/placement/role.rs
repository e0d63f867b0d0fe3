//! The programs.

use karmada_runtime::program::Identity;

use super::clusters::{CLUSTERS, cluster};

/// A program under simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// On the hub.
    Controller,
    /// In a member.
    Agent(u8),
}

impl Role {
    /// Returns every program.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Controller]
            .into_iter()
            .chain((0..CLUSTERS).map(Self::Agent))
    }

    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        self.identity().name
    }

    pub(crate) fn identity(self) -> Identity {
        match self {
            Self::Controller => placement_controller::IDENTITY,
            Self::Agent(_) => placement_agent::IDENTITY,
        }
    }

    /// Returns the name of the process in the log.
    pub(crate) fn process(self) -> String {
        match self {
            Self::Controller => self.name().to_owned(),
            Self::Agent(nth) => format!("{}-{}", self.name(), cluster(nth)),
        }
    }
}
