//! The programs.

use karmada_runtime::program::Identity;

/// A program under simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is a program")]
pub enum Role {
    Propagation,
    Scheduler,
    Execution,
}

impl Role {
    /// Every program.
    pub const ALL: [Self; 3] = [Self::Propagation, Self::Scheduler, Self::Execution];

    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        self.identity().name
    }

    pub(crate) fn identity(self) -> Identity {
        match self {
            Self::Propagation => propagation_controller::IDENTITY,
            Self::Scheduler => scheduler::IDENTITY,
            Self::Execution => execution_controller::IDENTITY,
        }
    }
}
