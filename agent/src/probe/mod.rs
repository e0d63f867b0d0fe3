//! Asks the cluster's DNS, as a pod would, once a period.

mod behind;
mod exchange;
mod lookup;
mod resolv_conf;
mod round;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;
use hickory_proto::op::Query;
use hickory_proto::rr::Name;
use karmada_rules::health::diagnosis::Transport;
use karmada_rules::health::threshold::Round;
use karmada_runtime::error::BoxError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub(crate) use self::behind::{Behind, Origin, Past, start as behind};
use self::exchange::Unanswered;
use self::lookup::Ask;
pub(crate) use self::resolv_conf::nameserver;
use self::round::Rounds;
use crate::metrics::ProbeMetrics;

/// What is asked, of whom, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Names that must have an address, as a pod would write them.
    pub(crate) names: Vec<Name>,
    /// The addresses that are right; without any, every one is.
    pub(crate) expected: Vec<IpAddr>,
    /// Whether to ask also for a name that no cache can know.
    pub(crate) uncached: bool,
    /// The servers; without any, those of `resolv_conf`.
    pub(crate) nameservers: Vec<SocketAddr>,
    /// From the start of a round to the start of the next.
    pub(crate) period: Duration,
    /// The longest a round takes.
    pub(crate) timeout: Duration,
    /// Where the search list and the servers come from; read anew for every round.
    pub(crate) resolv_conf: PathBuf,
}

/// Real questions to real servers.
#[derive(Debug)]
struct Wire;

impl Ask for Wire {
    fn ask(
        &self,
        server: SocketAddr,
        transport: Transport,
        question: Query,
        deadline: Instant,
    ) -> impl Future<Output = Result<Vec<IpAddr>, Unanswered>> + Send {
        exchange::ask(server, transport, question, deadline)
    }
}

impl Probe {
    /// Sends a [`Round`] each period until the program stops; calls `asked` after each.
    pub(crate) async fn run(
        self,
        behind: watch::Receiver<Behind>,
        rounds: mpsc::Sender<Round>,
        metrics: ProbeMetrics,
        asked: impl Fn() + Send,
        stopping: CancellationToken,
    ) -> Result<(), BoxError> {
        let all = Rounds::new(self, Wire, behind, metrics, Rng::new()).all(rounds, asked);
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            () = all => Ok(()),
        }
    }
}

impl<A: Ask> Rounds<A> {
    /// One round after the other, as long as somebody takes them.
    async fn all(mut self, rounds: mpsc::Sender<Round>, asked: impl Fn() + Send) {
        let mut ticks = interval(self.probe.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut before = None;
        loop {
            let scheduled = ticks.tick().await;
            let started = Instant::now();
            let seen = self.round().await;
            let observation = seen.observation();
            self.metrics.observe(observation, started.elapsed());
            let now = (observation.as_str(), seen.fault);
            if before.replace(now) != Some(now) {
                seen.tell();
            }
            asked();
            let round = Round {
                scheduled: scheduled.into_std(),
                finished: Instant::now().into_std(),
                observation,
            };
            if rounds.send(round).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
