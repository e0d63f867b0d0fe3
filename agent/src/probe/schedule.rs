//! The rounds of a probe: one starts every period, and each ends with an observation.

use std::time::Duration;

use health::observation::Observation;
use health::threshold::Round;
use karmada_runtime::readiness::Gate;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The schedule of one probe, whose rounds observe an `O`.
#[derive(Debug)]
pub(super) struct Schedule<O = Observation> {
    ticks: Interval,
    finished: mpsc::Sender<Round<O>>,
    /// Opened by the first finished round. A probe that is started later has none.
    first_round: Option<Gate>,
}

impl<O> Schedule<O> {
    /// Creates a schedule whose first round is due at a random moment of the first period. A
    /// `DaemonSet` starts its agents together, and their rounds must not reach the servers together ever after.
    pub(super) fn spread(
        period: Duration,
        finished: mpsc::Sender<Round<O>>,
        first_round: Gate,
    ) -> Self {
        let phase = period.mul_f64(fastrand::f64());
        Self::new(period, phase, finished, first_round)
    }

    /// Creates a schedule like [`Self::spread`] of a probe that is started, and ends, while the program runs: nothing waits for
    /// its first round.
    pub(super) fn while_running(period: Duration, finished: mpsc::Sender<Round<O>>) -> Self {
        let phase = period.mul_f64(fastrand::f64());
        Self::starting_at(Instant::now() + phase, period, finished)
    }

    /// Creates a schedule whose first round is due after `phase`. The first finished round opens
    /// `first_round`.
    pub(super) fn new(
        period: Duration,
        phase: Duration,
        finished: mpsc::Sender<Round<O>>,
        first_round: Gate,
    ) -> Self {
        Self {
            first_round: Some(first_round),
            ..Self::starting_at(Instant::now() + phase, period, finished)
        }
    }

    fn starting_at(first: Instant, period: Duration, finished: mpsc::Sender<Round<O>>) -> Self {
        let mut ticks = interval_at(first, period);
        // After a stall the rounds keep their phase; catching up would only load the servers.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            ticks,
            finished,
            first_round: None,
        }
    }

    /// Waits until a round is due and returns the moment at which it was. After a stall of the process
    /// that is now: nothing was observed since the moment it has missed.
    pub(super) async fn due(&mut self) -> Instant {
        let (due, now) = (self.ticks.tick().await, Instant::now());
        if now.duration_since(due) < self.ticks.period() {
            due
        } else {
            now
        }
    }

    /// Hands over the observation of the round that was due at `scheduled`. Returns `false` once nobody
    /// receives rounds any more.
    pub(super) async fn finish(&self, scheduled: Instant, observation: O) -> bool {
        if let Some(gate) = &self.first_round {
            gate.open();
        }
        let round = Round {
            scheduled: scheduled.into_std(),
            finished: Instant::now().into_std(),
            observation,
        };
        self.finished.send(round).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use karmada_runtime::program::Program;
    use tokio::time::advance;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);

    fn gate() -> Gate {
        let program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        program.readiness.gate("probe")
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_agents_that_start_together_spread_their_rounds_over_the_period() {
        let mut quarters = [0; 4];
        for _ in 0..1_000 {
            let start = Instant::now();
            let (finished, _rounds) = mpsc::channel::<Round>(1);
            let mut schedule = Schedule::spread(PERIOD, finished, gate());
            let phase = schedule.due().await - start;
            quarters[usize::try_from(phase.as_nanos() * 4 / PERIOD.as_nanos()).unwrap() % 4] += 1;
        }
        assert!(quarters.iter().all(|agents| *agents > 150), "{quarters:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_round_is_due_within_a_period_and_the_others_a_period_apart() {
        for _ in 0..100 {
            let start = Instant::now();
            let (finished, _rounds) = mpsc::channel::<Round>(1);
            let mut schedule = Schedule::spread(PERIOD, finished, gate());
            let first = schedule.due().await;
            assert!(first - start <= PERIOD);
            assert_eq!(schedule.due().await - first, PERIOD);
        }
    }

    /// The missed tick's time would date the round to before the stall.
    #[tokio::test(start_paused = true)]
    async fn a_round_is_due_as_scheduled_or_after_a_stall_when_it_starts() {
        let (finished, _rounds) = mpsc::channel::<Round>(1);
        let mut schedule = Schedule::new(PERIOD, Duration::ZERO, finished, gate());
        let started = schedule.due().await;
        // A little late.
        advance(PERIOD + Duration::from_millis(300)).await;
        assert_eq!(schedule.due().await, started + PERIOD);
        advance(Duration::from_secs(47)).await;
        assert_eq!(schedule.due().await, Instant::now());
        // Then in phase again.
        assert_eq!(schedule.due().await, started + 11 * PERIOD);
    }
}
