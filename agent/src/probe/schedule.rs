//! The rounds of a probe: one starts every period, and each ends with an observation.

use std::time::Duration;

use karmada_rules::health::observation::Observation;
use karmada_rules::health::threshold::Round;
use karmada_runtime::readiness::Gate;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// The schedule of one probe.
#[derive(Debug)]
pub(super) struct Schedule {
    ticks: Interval,
    finished: mpsc::Sender<Round>,
    first_round: Gate,
}

impl Schedule {
    /// Creates a schedule whose first round is due now. The first finished round opens `first_round`.
    pub(super) fn new(period: Duration, finished: mpsc::Sender<Round>, first_round: Gate) -> Self {
        let mut ticks = interval(period);
        // After a stall the rounds keep their phase; catching up would only load the servers.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            ticks,
            finished,
            first_round,
        }
    }

    /// Waits until a round is due and returns the moment at which it was.
    pub(super) async fn due(&mut self) -> Instant {
        self.ticks.tick().await
    }

    /// Hands over what the round that was due at `scheduled` observed. Returns `false` once nobody
    /// receives rounds any more.
    pub(super) async fn finish(&self, scheduled: Instant, observation: Observation) -> bool {
        self.first_round.open();
        let round = Round {
            scheduled: scheduled.into_std(),
            finished: Instant::now().into_std(),
            observation,
        };
        self.finished.send(round).await.is_ok()
    }
}
