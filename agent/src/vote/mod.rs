//! Keeps this node's votes from the rounds of its probes and publishes each change at once.
//!
//! `own` votes on one signal of the agents' own cluster, `clusters` on one of several others; both publish `votes`.

mod clusters;
mod own;
mod votes;

use health::signal::{PerTarget, Signal};
use health::threshold::{Round, Threshold, Thresholds};
use karmada_runtime::program::Program;
use tokio::sync::{mpsc, watch};

use self::clusters::ClusterVoting;
pub(crate) use self::own::Voting;
#[cfg(test)]
pub(crate) use self::votes::on_dns;
pub(crate) use self::votes::{ByCluster, Votes, kind};
use crate::metrics::VoteMetrics;

/// The finished rounds of an agent's probes.
pub(crate) enum Rounds {
    /// Of each signal of its own cluster.
    Own(PerTarget<mpsc::Receiver<Round>>),
    /// Of one signal of several other clusters.
    Others(&'static Signal, mpsc::Receiver<Round<ByCluster>>),
}

impl Rounds {
    /// Returns a value for each signal, of no cluster by name.
    pub(crate) fn per_signal<T: Clone>(&self, value: &T) -> PerTarget<T> {
        match self {
            Self::Own(rounds) => rounds.map(|_, _| value.clone()),
            Self::Others(signal, _) => PerTarget::from_iter([(*signal, value.clone())]),
        }
    }
}

/// Spawns a task of `program` for the vote on each signal, and returns the votes, for others to watch and for signals that
/// are declared later.
pub(crate) fn start(
    program: &mut Program,
    thresholds: Thresholds,
    rounds: Rounds,
) -> watch::Sender<Votes> {
    let stopping = program.stopping.clone();
    match rounds {
        Rounds::Own(rounds) => {
            let changed = watch::Sender::new(rounds.map(|_, _| None));
            for (target, rounds) in rounds {
                let signal = target.signal;
                let voting = Voting {
                    signal,
                    threshold: Threshold::new(thresholds),
                    rounds,
                    votes: changed.clone(),
                    metrics: VoteMetrics::register(&mut program.registry, signal),
                };
                program.tasks.spawn("vote", voting.run(stopping.clone()));
            }
            changed
        }
        Rounds::Others(signal, rounds) => {
            let changed = watch::Sender::new(Votes::default());
            let metrics = VoteMetrics::register(&mut program.registry, signal);
            let voting = ClusterVoting::new(signal, thresholds, rounds, changed.clone(), metrics);
            program.tasks.spawn("vote", voting.run(stopping));
            changed
        }
    }
}
