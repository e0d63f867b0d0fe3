//! The answer that a command gives, which becomes the exit code.

/// The answer of a command that has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All is well, or done; exit code 0.
    Yes,
    /// Something is wrong with the fleet, or was refused for its sake; exit code 1.
    No,
}

impl From<bool> for Answer {
    fn from(is_well: bool) -> Self {
        if is_well { Self::Yes } else { Self::No }
    }
}
