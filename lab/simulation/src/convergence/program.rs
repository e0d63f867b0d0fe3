//! The programs.

use karmada_runtime::program::Identity;

use crate::harness::{self, Role as _};

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
