//! The result of a cluster that joins.

use crate::requests::Written;
use crate::{terminal, token};

/// The result.
pub(super) struct Joined {
    written: Written,
    token: String,
}

impl Joined {
    /// Returns the result of a cluster of which `itself` was written: whatever was created `besides`, one that had that has joined
    /// before.
    pub(super) fn new(itself: Written, besides: Written, token: String) -> Self {
        let written = match itself {
            Written::Created => itself,
            _ => itself.max(besides).min(Written::Configured),
        };
        Self { written, token }
    }

    /// Prints the line of the cluster.
    pub(super) fn print(&self, cluster: &str) {
        let done = match self.written {
            Written::Created => "joined",
            Written::Configured => "configured",
            Written::Unchanged => "unchanged",
        };
        let end = token::end(&self.token);
        terminal::print(&format!("{cluster} {done}; {end}\n"));
    }
}
