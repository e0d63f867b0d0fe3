//! The programs, and the APIs that each reaches.

use anyhow::Result;
use clap::Parser;
use karmada_runtime::program::{Identity, Program};

use super::apis::Apis;
use crate::harness::clusters::{self, CLUSTERS};
use crate::harness::{self, Api, Connections, Explain, Reads, Role as _, programs};

/// A program under simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// On the hub.
    Controller,
    /// In a member.
    Agent(u8),
}

impl harness::Role for Role {
    fn all() -> Vec<Self> {
        let agents = (0..CLUSTERS).map(Self::Agent);
        [Self::Controller].into_iter().chain(agents).collect()
    }

    fn identity(self) -> Identity {
        match self {
            Self::Controller => placement_controller::IDENTITY,
            Self::Agent(_) => placement_agent::IDENTITY,
        }
    }

    fn user_agent(self) -> String {
        let name = self.identity().name;
        match self {
            Self::Controller => name.to_owned(),
            Self::Agent(nth) => format!("{name}-{}", clusters::name(nth)),
        }
    }
}

/// Its writes have the explanations of every world only.
impl Reads for Role {}

impl Explain for Role {}

/// The flag of every program: the election of a leader is a property of its own.
const ALONE: &str = "--leader-elect=false";

/// Assembles a process.
pub(crate) fn assemble(apis: &Apis, connections: &Connections<Role>) -> Result<Program> {
    let role = connections.process.program;
    let identity = role.identity();
    let mut program = programs::program(identity);
    let hub = connections.client(Api::Hub, apis.hub.service())?;
    match role {
        Role::Controller => {
            let flags = [identity.name, ALONE, "--force-leave-after=5m"];
            let args = placement_controller::Args::try_parse_from(flags)?;
            placement_controller::assemble(&args, hub, &mut program);
        }
        Role::Agent(nth) => {
            let member = connections.client(Api::Member(nth), apis.member(nth).service())?;
            let flags = [identity.name, ALONE, "--cluster-name", &clusters::name(nth)];
            let args = placement_agent::Args::try_parse_from(flags)?;
            placement_agent::assemble(&args, hub, member, &mut program);
        }
    }
    Ok(program)
}
