//! Leadership through a `Lease`: at most one replica at a time believes that it leads.
//!
//! `election` decides, without I/O or clock; `driver` reads and writes the lease for it. Time is
//! our own monotonic clock since a change of the lease was *observed*, never its timestamps, so
//! clocks need not agree (the rule of client-go's leader election).

mod driver;
mod election;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use driver::{Candidate, Seeking, campaign, leadership};

/// How long a lease lasts after it was last renewed.
pub const DURATION: Duration = Duration::from_secs(15);

/// Whether this process leads, and until when that is sure.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// None: it does not lead. A value in the past: neither.
    held_until: watch::Receiver<Option<Instant>>,
}

impl Leadership {
    /// Leadership of a program that runs alone.
    pub fn always() -> Self {
        const AGES: Duration = Duration::from_hours(24 * 365 * 30);
        let (sender, held_until) = watch::channel(Some(Instant::now() + AGES));
        drop(sender);
        Self { held_until }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> (Self, watch::Sender<Option<Instant>>) {
        let (sender, held_until) = watch::channel(None);
        (Self { held_until }, sender)
    }

    /// Until when it surely leads; none if it does not.
    pub fn held_until(&self) -> Option<Instant> {
        let until = *self.held_until.borrow();
        until.filter(|until| Instant::now() < *until)
    }

    /// Waits until it leads.
    pub async fn acquired(&self) {
        let mut held = self.held_until.clone();
        let leads = |until: &Option<Instant>| until.is_some_and(|until| Instant::now() < until);
        if held.wait_for(leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until it no longer leads.
    pub async fn lost(&self) {
        let mut held = self.held_until.clone();
        loop {
            let Some(until) = *held.borrow_and_update() else {
                return;
            };
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                biased;
                Ok(()) = held.changed() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}
