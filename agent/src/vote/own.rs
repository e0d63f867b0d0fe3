//! This node's vote on one signal of its own cluster.

use health::signal::Signal;
use health::threshold::{Round, Threshold, Vote};
use karmada_runtime::error::BoxError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::votes::{Votes, log_change};
use crate::metrics::VoteMetrics;

/// The vote on one signal.
pub(crate) struct Voting {
    pub(crate) signal: &'static Signal,
    pub(crate) threshold: Threshold,
    pub(crate) rounds: mpsc::Receiver<Round>,
    /// The votes on all signals.
    pub(crate) votes: watch::Sender<Votes>,
    pub(crate) metrics: VoteMetrics,
}

impl Voting {
    /// Feeds the rounds to the threshold and publishes its vote, until the program stops.
    pub(crate) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        loop {
            let change = self.threshold.next_change().map(Instant::from_std);
            tokio::select! {
                // Rounds before the timer: a success that has arrived must end a streak of failures that
                // is about to become a vote.
                biased;
                () = stopping.cancelled() => return Ok(()),
                Some(round) = self.rounds.recv() => self.threshold.observe(&round),
                () = sleep_until(change.unwrap_or_else(Instant::now)), if change.is_some() => {
                    self.threshold.advance(Instant::now().into_std());
                }
            }
            self.metrics.set_hold(self.threshold.hold());
            self.publish(self.threshold.vote());
        }
    }

    fn publish(&self, vote: Option<Vote>) {
        let mut before = None;
        let modified = self.votes.send_if_modified(|votes| {
            let Some(own) = votes.get_mut(self.signal) else {
                return false;
            };
            before = std::mem::replace(own, vote);
            before != vote
        });
        if modified {
            self.metrics.set(None, vote);
        }
        log_change(&self.signal.into(), before, vote);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use health::dns::{DNS, DnsClass};
    use health::observation::{Failure, Observation};
    use health::threshold::Thresholds;
    use karmada_runtime::metrics::Registry;

    use super::super::votes::on_dns;
    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);
    const THRESHOLD: Duration = Duration::from_secs(12);

    /// A running vote task.
    struct Running {
        rounds: mpsc::Sender<Round>,
        votes: watch::Receiver<Votes>,
        metrics: Registry,
    }

    impl Running {
        fn start() -> Self {
            let (rounds, finished) = mpsc::channel(1);
            let (changed, votes) = watch::channel(on_dns(None));
            let mut metrics = Registry::default();
            let threshold = Threshold::new(Thresholds {
                period: PERIOD,
                failure: THRESHOLD,
                success: THRESHOLD,
                silence: 2 * THRESHOLD,
                max_hold: 3 * THRESHOLD,
            });
            let voting = Voting {
                signal: &DNS,
                threshold,
                rounds: finished,
                votes: changed,
                metrics: VoteMetrics::register(&mut metrics, &DNS),
            };
            tokio::spawn(voting.run(CancellationToken::new()));
            Self {
                rounds,
                votes,
                metrics,
            }
        }

        async fn round(&self, observation: Observation) {
            let now = Instant::now().into_std();
            let round = Round {
                scheduled: now,
                finished: now,
                observation,
            };
            self.rounds.send(round).await.unwrap();
        }

        /// Sends a round with this observation each period until the vote `is` so.
        async fn until(&mut self, observation: Observation, is: impl Fn(&Option<Vote>) -> bool) {
            let is = |votes: &Votes| is(votes.get(&DNS).unwrap());
            while !is(&self.votes.borrow()) {
                self.round(observation).await;
                let is = self.votes.wait_for(&is);
                drop(tokio::time::timeout(PERIOD, is).await);
            }
        }

        async fn next(&mut self) -> Option<Vote> {
            self.votes.changed().await.unwrap();
            *self.votes.borrow_and_update().get(&DNS).unwrap()
        }

        fn shows(&self, line: &str) -> bool {
            let text = self.metrics.encode().unwrap();
            text.lines().any(|shown| shown == line)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_vote_changes_by_the_clock_and_not_by_the_next_round() {
        let failure = Failure::new(DnsClass::Refused, "10.96.0.10:53".parse().unwrap());
        let mut voting = Running::start();
        let begun = Instant::now();
        for _ in 0..3 {
            voting.round(Observation::Failed(failure)).await;
            tokio::time::sleep(PERIOD).await;
        }
        // The third round began after 10 s; the fourth would after 15 s.
        assert!(begun.elapsed() > THRESHOLD);
        assert_eq!(voting.next().await, Some(Vote::Unhealthy(failure)));
        assert!(voting.shows("vote{vote=\"unhealthy\"} 1"));
        assert!(voting.shows("vote{vote=\"healthy\"} 0"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_success_is_published_at_once_then_the_settled_vote_then_none() {
        let mut voting = Running::start();
        let begun = Instant::now();
        voting.round(Observation::Success).await;
        assert_eq!(voting.next().await, Some(Vote::FirstSuccess));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..2 {
            tokio::time::sleep(PERIOD).await;
            voting.round(Observation::Success).await;
        }
        assert_eq!(voting.next().await, Some(Vote::Healthy));
        assert_eq!(begun.elapsed(), THRESHOLD);
        assert_eq!(voting.next().await, None);
        assert_eq!(begun.elapsed(), 2 * PERIOD + 2 * THRESHOLD);
    }

    #[tokio::test(start_paused = true)]
    async fn the_metrics_show_how_long_recovery_takes_now() {
        let failure = Failure::new(DnsClass::Refused, "10.96.0.10:53".parse().unwrap());
        let mut voting = Running::start();
        for (failures, hold) in [(0, 12), (1, 12), (2, 24), (3, 36), (4, 36)] {
            if failures > 0 {
                let failed = Observation::Failed(failure);
                voting
                    .until(failed, |vote| matches!(vote, Some(Vote::Unhealthy(_))))
                    .await;
            }
            let recovered = Instant::now();
            voting
                .until(Observation::Success, |vote| *vote == Some(Vote::Healthy))
                .await;
            assert_eq!(recovered.elapsed(), Duration::from_secs(hold), "{failures}");
            let line = format!("recovery_hold_seconds {hold}.0");
            assert!(voting.shows(&line), "{failures}");
        }
    }
}
