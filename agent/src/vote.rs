//! Keeps this node's vote from the probe's rounds and publishes each change at once.

use std::mem::{Discriminant, discriminant};

use karmada_rules::health::threshold::{Round, Threshold, Thresholds, Vote};
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::metrics::VoteMetrics;

/// Spawns the vote as a task of `program`, and returns it for others to watch.
pub(crate) fn start(
    program: &mut Program,
    thresholds: Thresholds,
    rounds: mpsc::Receiver<Round>,
) -> watch::Receiver<Option<Vote>> {
    let (changed, votes) = watch::channel(None);
    let task = run(
        Threshold::new(thresholds),
        rounds,
        changed,
        VoteMetrics::register(&mut program.registry),
        program.stopping.clone(),
    );
    program.tasks.spawn("vote", task);
    votes
}

/// Feeds `rounds` to `threshold` and publishes its vote to `votes`, until the program stops.
async fn run(
    mut threshold: Threshold,
    mut rounds: mpsc::Receiver<Round>,
    votes: watch::Sender<Option<Vote>>,
    metrics: VoteMetrics,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    loop {
        let change = threshold.next_change().map(Instant::from_std);
        tokio::select! {
            // Rounds before the timer: a success that has arrived must end a streak of failures that
            // is about to become a vote.
            biased;
            () = stopping.cancelled() => return Ok(()),
            Some(round) = rounds.recv() => threshold.observe(&round),
            () = sleep_until(change.unwrap_or_else(Instant::now)), if change.is_some() => {
                threshold.advance(Instant::now().into_std());
            }
        }
        metrics.set_hold(threshold.hold());
        let vote = threshold.vote();
        // Another failure is published, for its class and server, but the vote has not changed.
        let changed = kind(vote) != kind(*votes.borrow());
        if votes.send_if_modified(|before| std::mem::replace(before, vote) != vote) {
            metrics.set(vote);
        }
        if changed {
            match vote {
                None => tracing::warn!("This node has no vote"),
                Some(Vote::FirstSuccess) => tracing::info!("This node's first answer is good"),
                Some(Vote::Healthy | Vote::Partial(_)) => tracing::info!("This node votes healthy"),
                Some(Vote::Unhealthy(failure)) => {
                    tracing::warn!(%failure, "This node votes unhealthy");
                }
            }
        }
    }
}

/// Returns the kind of a vote, without its failure or family.
pub(crate) fn kind(vote: Option<Vote>) -> Option<Discriminant<Vote>> {
    let whole = |vote| match vote {
        Vote::Partial(_) => Vote::Healthy,
        vote => vote,
    };
    vote.map(|vote| discriminant(&whole(vote)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use karmada_rules::health::failure::FailureClass;
    use karmada_rules::health::observation::{Failure, Observation};
    use karmada_runtime::metrics::Registry;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);
    const THRESHOLD: Duration = Duration::from_secs(12);

    /// A running vote task.
    struct Voting {
        rounds: mpsc::Sender<Round>,
        votes: watch::Receiver<Option<Vote>>,
        metrics: Registry,
    }

    impl Voting {
        fn start() -> Self {
            let (rounds, finished) = mpsc::channel(1);
            let (changed, votes) = watch::channel(None);
            let mut metrics = Registry::default();
            let threshold = Threshold::new(Thresholds {
                period: PERIOD,
                failure: THRESHOLD,
                success: THRESHOLD,
                silence: 2 * THRESHOLD,
                max_hold: 3 * THRESHOLD,
            });
            let labels = VoteMetrics::register(&mut metrics);
            let stopping = CancellationToken::new();
            tokio::spawn(run(threshold, finished, changed, labels, stopping));
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
            while !is(&self.votes.borrow()) {
                self.round(observation).await;
                let is = self.votes.wait_for(&is);
                drop(tokio::time::timeout(PERIOD, is).await);
            }
        }

        async fn next(&mut self) -> Option<Vote> {
            self.votes.changed().await.unwrap();
            *self.votes.borrow_and_update()
        }

        fn shows(&self, line: &str) -> bool {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &self.metrics).unwrap();
            text.lines().any(|shown| shown == line)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_vote_changes_by_the_clock_and_not_by_the_next_round() {
        let failure = Failure::new(FailureClass::Refused, "10.96.0.10:53".parse().unwrap());
        let mut voting = Voting::start();
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
        let mut voting = Voting::start();
        let begun = Instant::now();
        voting.round(Observation::Resolved).await;
        assert_eq!(voting.next().await, Some(Vote::FirstSuccess));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..2 {
            tokio::time::sleep(PERIOD).await;
            voting.round(Observation::Resolved).await;
        }
        assert_eq!(voting.next().await, Some(Vote::Healthy));
        assert_eq!(begun.elapsed(), THRESHOLD);
        assert_eq!(voting.next().await, None);
        assert_eq!(begun.elapsed(), 2 * PERIOD + 2 * THRESHOLD);
    }

    #[tokio::test(start_paused = true)]
    async fn the_metrics_show_how_long_recovery_takes_now() {
        let failure = Failure::new(FailureClass::Refused, "10.96.0.10:53".parse().unwrap());
        let mut voting = Voting::start();
        for (failures, hold) in [(0, 12), (1, 12), (2, 24), (3, 36), (4, 36)] {
            if failures > 0 {
                let fails = |vote: &Option<Vote>| matches!(vote, Some(Vote::Unhealthy(_)));
                voting.until(Observation::Failed(failure), fails).await;
            }
            let works = |vote: &Option<Vote>| *vote == Some(Vote::Healthy);
            let recovered = Instant::now();
            voting.until(Observation::Resolved, works).await;
            assert_eq!(recovered.elapsed(), Duration::from_secs(hold), "{failures}");
            let line = format!("recovery_hold_seconds {hold}.0");
            assert!(voting.shows(&line), "{failures}");
        }
    }
}
