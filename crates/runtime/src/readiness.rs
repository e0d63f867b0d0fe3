//! The conditions on which a program begins to act: named gates that each open once.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

/// The gates of a program. `/readyz` lists the closed ones.
#[derive(Clone, Debug)]
pub struct Readiness {
    closed: Arc<watch::Sender<BTreeSet<&'static str>>>,
}

/// A gate, closed until [`Gate::open`].
#[derive(Debug)]
pub struct Gate {
    name: &'static str,
    closed: Arc<watch::Sender<BTreeSet<&'static str>>>,
}

impl Readiness {
    pub(crate) fn new() -> Self {
        Self {
            closed: Arc::new(watch::Sender::new(BTreeSet::new())),
        }
    }

    /// Adds a closed gate. Its name must be unique within the program.
    #[must_use = "a gate that is dropped never opens"]
    pub fn gate(&self, name: &'static str) -> Gate {
        self.closed.send_modify(|closed| {
            closed.insert(name);
        });
        Gate {
            name,
            closed: Arc::clone(&self.closed),
        }
    }

    /// Waits until every gate is open.
    pub async fn opened(&self) {
        // The sender lives in `self`, so the wait cannot end early.
        drop(self.closed.subscribe().wait_for(BTreeSet::is_empty).await);
    }

    /// Returns the names of the closed gates.
    pub fn closed(&self) -> Vec<&'static str> {
        self.closed.borrow().iter().copied().collect()
    }
}

impl Gate {
    /// Opens the gate for the rest of the program's life.
    pub fn open(&self) {
        self.closed
            .send_if_modified(|closed| closed.remove(self.name));
    }
}
