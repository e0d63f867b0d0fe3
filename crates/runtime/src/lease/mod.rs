//! Leadership through a `Lease`: at most one replica at a time believes that it leads.
//!
//! `election` decides without I/O or a clock, `request` reads and writes the lease, and `driver`
//! connects the two. `candidacy` keeps a replica that cannot read its API from holding the lease. As in client-go's leader election, a lease expires its duration after the last
//! *observed* change by the local monotonic clock. Its timestamps are never compared, so the clocks of
//! the replicas need not agree.

mod candidacy;
mod config;
mod driver;
mod election;
mod request;

use std::time::Duration;

use tokio::time::Instant;

pub use config::{CampaignMode, LeaseConfig};
pub use driver::{campaign, leadership, leadership_by};

use crate::fair_watch::FairWatch;

/// The validity of a lease after its last renewal (client-go's `LeaseDuration`).
pub const DURATION: Duration = Duration::from_secs(15);

/// The leadership of this process, known to hold until an instant.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// The instant at which leadership ends unless it is renewed; `None` without the lease.
    held_until: FairWatch<Option<Instant>>,
}

impl Leadership {
    /// Returns the leadership of a program that runs without leader election.
    pub fn always() -> Self {
        // As far away as an `Instant` certainly reaches on every platform (as in tokio).
        const AGES: Duration = Duration::from_hours(24 * 365 * 30);
        Self {
            held_until: FairWatch::new(Some(Instant::now() + AGES)),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> (Self, FairWatch<Option<Instant>>) {
        let held_until = FairWatch::default();
        let leadership = Self {
            held_until: held_until.clone(),
        };
        (leadership, held_until)
    }

    /// Returns the instant until which this process certainly leads; `None` if it does not lead.
    pub fn held_until(&self) -> Option<Instant> {
        let until = self.held_until.read(Option::clone);
        until.filter(|until| Instant::now() < *until)
    }

    /// Waits until this process leads.
    pub async fn acquired(&self) {
        self.held_until
            .wait_for(|until| until.is_some_and(|until| Instant::now() < until))
            .await;
    }

    /// Waits until this process no longer leads.
    pub async fn lost(&self) {
        while let Some(until) = self.held_until() {
            tokio::select! {
                biased;
                // A renewal that arrives together with the deadline extends it.
                () = self.held_until.wait_for(|now| *now != Some(until)) => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}
