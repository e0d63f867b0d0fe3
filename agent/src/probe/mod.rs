//! Asks the cluster's DNS, as a pod would, once a period.

#[cfg(test)]
mod dns_server;
mod exchange;
mod lookup;
mod resolv_conf;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use hickory_proto::op::Query;
use hickory_proto::rr::Name;
use rules::observation::Observation;
use rules::threshold::Round;
use runtime::error::{BoxError, Chain};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use self::exchange::{Transport, Unanswered};
use self::lookup::{Ask, Lookup};
use self::resolv_conf::ResolvConf;
pub(crate) use self::resolv_conf::nameserver;
use crate::metrics::ProbeMetrics;

/// What is asked, of whom, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Names that must have an address, as a pod would write them.
    pub(crate) names: Vec<Name>,
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
struct Wire(Transport);

impl Ask for Wire {
    fn ask(
        &self,
        server: SocketAddr,
        question: Query,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), Unanswered>> + Send {
        exchange::ask(server, self.0, question, deadline)
    }
}

impl Probe {
    /// Sends a [`Round`] each period until the program stops; calls `asked` after each.
    pub(crate) async fn run(
        self,
        rounds: mpsc::Sender<Round>,
        metrics: ProbeMetrics,
        asked: impl Fn() + Send,
        stopping: CancellationToken,
    ) -> Result<(), BoxError> {
        let mut ticks = interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut before = None;
        let all = async {
            loop {
                let scheduled = ticks.tick().await;
                let started = Instant::now();
                let result = self.round().await;
                let observation = observation(&result);
                metrics.observe(observation, started.elapsed());
                if before.replace(observation.as_str()) != Some(observation.as_str()) {
                    tell(&result);
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
        };
        tokio::select! {
            () = all => Ok(()),
            () = stopping.cancelled() => Ok(()),
        }
    }

    /// Succeeds when every name has an address.
    async fn round(&self) -> Result<(), Unanswered> {
        let start = Instant::now();
        let conf = ResolvConf::read(&self.resolv_conf).map_err(Unanswered::Internal)?;
        let servers = if self.nameservers.is_empty() {
            &conf.servers
        } else {
            &self.nameservers
        };
        let lookup = &Lookup {
            ask: &Wire(conf.transport),
            servers,
            families: conf.families,
            start,
            deadline: start + self.timeout,
        };
        let names = self.names.iter().map(|name| {
            let candidates = conf.candidates(name);
            async move { lookup.resolve(&candidates).await }
        });
        join_all(names)
            .await
            .into_iter()
            .reduce(both)
            .unwrap_or(Ok(()))
    }
}

/// What two names come to. One that has no address fails the round, whatever became of the other.
fn both(one: Result<(), Unanswered>, other: Result<(), Unanswered>) -> Result<(), Unanswered> {
    match (one, other) {
        (Err(Unanswered::Failed(one)), Err(Unanswered::Failed(other))) => {
            Err(Unanswered::Failed(one.or_worse(other)))
        }
        (failed @ Err(Unanswered::Failed(_)), _) | (_, failed @ Err(Unanswered::Failed(_))) => {
            failed
        }
        (internal @ Err(_), _) | (_, internal @ Err(_)) => internal,
        (Ok(()), Ok(())) => Ok(()),
    }
}

fn observation(result: &Result<(), Unanswered>) -> Observation {
    match result {
        Ok(()) => Observation::Resolved,
        Err(Unanswered::Failed(failure)) => Observation::Failed(*failure),
        Err(Unanswered::Internal(_)) => Observation::Internal,
    }
}

fn tell(result: &Result<(), Unanswered>) {
    match result {
        Ok(()) => tracing::info!("Names resolve"),
        Err(Unanswered::Failed(failure)) => tracing::warn!(%failure, "Names do not resolve"),
        Err(Unanswered::Internal(error)) => {
            tracing::warn!(error = %Chain(error), "Could not ask any DNS server");
        }
    }
}

#[cfg(test)]
mod tests;
