//! The programs, and the APIs that each reaches.

use anyhow::Result;
use clap::Parser;
use ingress_controller::provider::{Kubernetes, NamedBalancer};
use karmada_runtime::program::{Identity, Program};
use karmada_runtime::write::Writer;
use traffic::ingress::kubernetes::Ingresses;

use super::apis::Apis;
use super::kinds::Side;
use crate::harness::{self, Connections, Role as _, programs};

/// The `spec.controller` of our classes, and the name of our finalizer.
pub(crate) const CONTROLLER: &str = "karmada-rs.io/ingress-controller";

/// A program under simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The remedy-controller.
    Remedy,
    /// The ingress-controller.
    Ingress,
}

impl Role {
    /// Returns the name of the program and of its lease.
    pub(crate) fn name(self) -> &'static str {
        self.identity().name
    }
}

impl harness::Role for Role {
    const REPLICAS: u8 = 2;
    // Requests are judged by the instant in which they are sent.
    const LATENCY: u64 = 0;

    fn all() -> Vec<Self> {
        vec![Self::Remedy, Self::Ingress]
    }

    fn identity(self) -> Identity {
        match self {
            Self::Remedy => remedy_controller::IDENTITY,
            Self::Ingress => ingress_controller::IDENTITY,
        }
    }
}

/// One process of a replica of a program.
pub(crate) type Process = harness::Process<Role>;

/// Assembles a process.
pub(crate) async fn assemble(apis: &Apis, connections: &Connections<Role>) -> Result<Program> {
    let role = connections.process.program;
    let mut program = programs::program(role.identity());
    let karmada = apis.client(Side::Karmada, connections).await?;
    match role {
        Role::Remedy => {
            let args = remedy_controller::Args::try_parse_from([role.name()])?;
            remedy_controller::assemble(&args, karmada, &mut program);
        }
        Role::Ingress => {
            let args = ingress_controller::Args::try_parse_from([role.name()])?;
            let routing = Ingresses::new(&CONTROLLER.parse().map_err(anyhow::Error::msg)?, None);
            let client = apis.client(Side::Gateway, connections).await?;
            let balancers =
                |writer: &Writer| NamedBalancer::only(Kubernetes::new(client, writer, routing));
            ingress_controller::assemble(args, karmada, balancers, &mut program);
        }
    }
    Ok(program)
}
