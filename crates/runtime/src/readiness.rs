//! The conditions on which a program begins to act: named gates that each open once. A gate also shows
//! while its objects cannot be read for a while, which ends leadership and closes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use crate::fair_watch::FairWatch;

/// The gates of a program. `/readyz` lists the closed ones.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    closed: FairWatch<Names>,
    unable: Arc<watch::Sender<Names>>,
}

type Names = BTreeSet<&'static str>;

/// A gate, closed until [`Gate::open`].
#[derive(Debug)]
pub struct Gate {
    name: &'static str,
    closed: FairWatch<Names>,
    unable: Arc<watch::Sender<Names>>,
}

impl Readiness {
    /// Adds a closed gate. Its name must be unique within the program.
    #[must_use = "a gate that is dropped never opens"]
    pub fn gate(&self, name: &'static str) -> Gate {
        self.closed.send_if_modified(|closed| closed.insert(name));
        Gate {
            name,
            closed: self.closed.clone(),
            unable: Arc::clone(&self.unable),
        }
    }

    /// Waits until every gate is open.
    pub async fn opened(&self) {
        self.closed.wait_for(BTreeSet::is_empty).await;
    }

    /// Returns the names of the closed gates.
    pub fn closed(&self) -> Vec<&'static str> {
        self.closed.read(|closed| closed.iter().copied().collect())
    }

    /// Returns the names of the watches that this replica cannot read, as they change.
    pub(crate) fn unable(&self) -> watch::Receiver<Names> {
        self.unable.subscribe()
    }
}

impl Gate {
    /// Opens the gate for the rest of the program's life.
    pub fn open(&self) {
        self.closed
            .send_if_modified(|closed| closed.remove(self.name));
    }

    /// Records that the objects of the gate cannot be read, or that they can again.
    pub(crate) fn set_unable(&self, unable: bool) {
        self.unable.send_if_modified(|names| {
            if unable {
                names.insert(self.name)
            } else {
                names.remove(self.name)
            }
        });
    }

    /// Returns the name of the gate.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}
