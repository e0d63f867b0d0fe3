//! The programs, and the identity of one process of a program.

use karmada_runtime::program::Identity;

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
    pub(crate) const ALL: [Self; 2] = [Self::Remedy, Self::Ingress];

    /// Returns the name of the program and of its lease.
    pub(crate) fn name(self) -> &'static str {
        self.identity().name
    }

    pub(crate) fn identity(self) -> Identity {
        match self {
            Self::Remedy => remedy_controller::IDENTITY,
            Self::Ingress => ingress_controller::IDENTITY,
        }
    }
}

/// One process of one replica of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) program: Role,
    pub(crate) replica: u8,
    /// The number of earlier starts of that replica.
    pub(crate) life: u16,
}
