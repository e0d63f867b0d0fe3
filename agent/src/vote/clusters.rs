//! Keeps this node's votes on other clusters, from rounds that observe all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use health::signal::{Signal, Target};
use health::threshold::{Round, Threshold, Thresholds};
use karmada_runtime::error::BoxError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::votes::{ByCluster, Votes, log_change};
use crate::metrics::VoteMetrics;

/// The votes on one signal of each cluster.
pub(super) struct ClusterVoting {
    signal: &'static Signal,
    thresholds: Thresholds,
    rounds: mpsc::Receiver<Round<ByCluster>>,
    clusters: BTreeMap<Arc<str>, Threshold>,
    /// The clusters that the newest round observed.
    observed: BTreeSet<Arc<str>>,
    votes: watch::Sender<Votes>,
    metrics: VoteMetrics,
}

impl ClusterVoting {
    pub(super) fn new(
        signal: &'static Signal,
        thresholds: Thresholds,
        rounds: mpsc::Receiver<Round<ByCluster>>,
        votes: watch::Sender<Votes>,
        metrics: VoteMetrics,
    ) -> Self {
        Self {
            signal,
            thresholds,
            rounds,
            clusters: BTreeMap::new(),
            observed: BTreeSet::new(),
            votes,
            metrics,
        }
    }

    /// Feeds the rounds to the threshold of each cluster and publishes their votes, until the program stops.
    pub(super) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        loop {
            let changes = self.clusters.values().filter_map(Threshold::next_change);
            let change = changes.min().map(Instant::from_std);
            tokio::select! {
                // Rounds before the timer, as for the agents' own cluster.
                biased;
                () = stopping.cancelled() => return Ok(()),
                Some(round) = self.rounds.recv() => self.observe(round),
                () = sleep_until(change.unwrap_or_else(Instant::now)), if change.is_some() => {
                    let now = Instant::now().into_std();
                    for threshold in self.clusters.values_mut() {
                        threshold.advance(now);
                    }
                }
            }
            // The endpoints of a cluster may be gone for a moment only: its history is forgotten with its vote.
            let observed = &self.observed;
            self.clusters.retain(|cluster, threshold| {
                threshold.vote().is_some() || observed.contains(cluster)
            });
            self.publish();
        }
    }

    fn observe(&mut self, round: Round<ByCluster>) {
        let Round {
            scheduled,
            finished,
            observation,
        } = round;
        self.observed = observation.keys().cloned().collect();
        for (cluster, observation) in observation {
            let threshold = self.clusters.entry(cluster);
            let threshold = threshold.or_insert_with(|| Threshold::new(self.thresholds));
            threshold.observe(&Round {
                scheduled,
                finished,
                observation,
            });
        }
    }

    fn publish(&self) {
        let now = self.clusters.iter().map(|(cluster, threshold)| {
            let target = Target {
                signal: self.signal,
                cluster: Some(Arc::clone(cluster)),
            };
            (target, threshold.vote())
        });
        let now: Votes = now.collect();
        let mut before = Votes::default();
        let modified = self.votes.send_if_modified(|votes| {
            if *votes == now {
                return false;
            }
            before = std::mem::replace(votes, now.clone());
            true
        });
        if !modified {
            return;
        }
        for (target, vote) in now.iter() {
            let last = before.of(target).copied().flatten();
            if last != *vote {
                self.metrics.set(target.cluster.as_ref(), *vote);
                log_change(target, last, *vote);
            }
        }
        for (target, vote) in before.iter() {
            if now.of(target).is_none() {
                self.metrics.set(target.cluster.as_ref(), None);
                log_change(target, *vote, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use health::observation::{Failure, Observation};
    use health::reachability::{REACHABILITY, ReachabilityClass};
    use health::threshold::Vote;
    use karmada_runtime::metrics::Registry;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);
    const THRESHOLD: Duration = Duration::from_secs(30);

    struct Running {
        rounds: mpsc::Sender<Round<ByCluster>>,
        votes: watch::Receiver<Votes>,
        started: Instant,
    }

    impl Running {
        fn start() -> Self {
            let (rounds, finished) = mpsc::channel(1);
            let (changed, votes) = watch::channel(Votes::default());
            let thresholds = Thresholds {
                period: PERIOD,
                failure: THRESHOLD,
                success: THRESHOLD,
                silence: THRESHOLD,
                max_hold: THRESHOLD,
            };
            let metrics = VoteMetrics::register(&mut Registry::default(), &REACHABILITY);
            let voting = ClusterVoting::new(&REACHABILITY, thresholds, finished, changed, metrics);
            tokio::spawn(voting.run(CancellationToken::new()));
            Self {
                rounds,
                votes,
                started: Instant::now(),
            }
        }

        /// Sends rounds with these observations until so many seconds have passed.
        async fn until(&self, second: u64, observed: &[(&str, Observation)]) {
            let end = self.started + Duration::from_secs(second);
            while Instant::now() < end {
                let now = Instant::now().into_std();
                let observation = observed
                    .iter()
                    .map(|(cluster, observation)| (Arc::from(*cluster), *observation));
                let round = Round {
                    scheduled: now,
                    finished: now,
                    observation: observation.collect(),
                };
                self.rounds.send(round).await.unwrap();
                tokio::time::sleep(PERIOD).await;
            }
        }

        fn shown(&self) -> Vec<(String, Option<Vote>)> {
            let votes = self.votes.borrow();
            let all = votes.iter();
            all.map(|(target, vote)| (target.cluster.as_deref().unwrap().to_owned(), *vote))
                .collect()
        }
    }

    fn unreached() -> Failure {
        Failure::new(ReachabilityClass::Timeout, ([10, 0, 0, 7], 80).into())
    }

    /// Each cluster has a vote of its own, which serves its own threshold.
    #[tokio::test(start_paused = true)]
    async fn each_cluster_has_its_vote() {
        let voting = Running::start();
        let both = [
            ("m1", Observation::Success),
            ("m2", Observation::Failed(unreached())),
        ];
        let cut = Some(Vote::Unhealthy(unreached()));
        for (second, m1, m2) in [(5, Vote::FirstSuccess, None), (40, Vote::Healthy, cut)] {
            voting.until(second, &both).await;
            let expected = [("m1".to_owned(), Some(m1)), ("m2".to_owned(), m2)];
            assert_eq!(voting.shown(), expected);
        }
    }

    /// A cluster whose endpoints are gone keeps its vote for a while, then has none and is forgotten.
    #[tokio::test(start_paused = true)]
    async fn cluster_without_endpoints_has_none() {
        let voting = Running::start();
        let both = [("m1", Observation::Success), ("m2", Observation::Success)];
        voting.until(40, &both).await;
        voting.until(60, &both[..1]).await;
        assert_eq!(voting.shown().len(), 2);
        voting.until(80, &both[..1]).await;
        assert_eq!(voting.shown(), [("m1".to_owned(), Some(Vote::Healthy))]);
    }
}
