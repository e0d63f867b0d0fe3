//! One round: some connections, one after the other until an agent answers, within one deadline.

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use health::observation::{Failure, Observation};
use health::service_network::{SERVICE_NETWORK, ServiceNetworkClass};
use karmada_runtime::metrics::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::address::Address;
use super::exchange::{Unanswered, exchange};
use crate::probe::metrics::{RoundLabels, RoundMetrics};
use crate::probe::schedule::Schedule;

/// The most connections of a round. Each goes to an endpoint at random, so with several the death of one
/// other node, which stays an endpoint for a while, does not look like a fault of this one.
const CONNECTIONS: u32 = 3;
/// The result of a round that succeeds.
const ANSWERED: &str = "answered";

/// Runs rounds.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) address: watch::Receiver<Address>,
    /// The cluster whose agents answer.
    pub(super) cluster: String,
    pub(super) timeout: Duration,
    pub(super) metrics: RoundMetrics,
}

/// Registers the metrics of the rounds.
pub(super) fn metrics(registry: &mut Registry) -> RoundMetrics {
    let help = [
        "Rounds of connections to the Service's cluster IP, by result: answered, the worst class of failure, or internal (no connection could be tried)",
        "Duration of a round of connections to the Service's cluster IP",
    ];
    let metrics = RoundMetrics::register(registry, SERVICE_NETWORK.metric_prefix, help);
    metrics.begin(RoundLabels::all(&SERVICE_NETWORK, ANSWERED));
    metrics
}

impl Prober {
    /// Runs one round after another until nobody receives their observations.
    pub(super) async fn run(self, mut schedule: Schedule) {
        let mut before = None;
        loop {
            let scheduled = schedule.due().await;
            let started = Instant::now();
            let observation = self.round().await;
            let now = RoundLabels::of(observation, ANSWERED);
            self.metrics.record([now], started.elapsed());
            // Logged when it changes, and not once per period for as long as an outage lasts.
            if before.replace(now) != Some(now) {
                log(observation);
            }
            if !schedule.finish(scheduled, observation).await {
                return;
            }
        }
    }

    /// Succeeds as soon as an agent answers.
    pub(super) async fn round(&self) -> Observation {
        let address = *self.address.borrow();
        let server = match address {
            Address::Unknown => return Observation::Internal,
            Address::None => {
                let failure = Failure::without_server(ServiceNetworkClass::NoAddress);
                return Observation::Failed(failure);
            }
            Address::Known(server) => server,
        };
        match timeout(self.timeout, self.connect(server)).await {
            Ok(Ok(())) => Observation::Success,
            Ok(Err(Unanswered::Internal)) => Observation::Internal,
            Ok(Err(Unanswered::Failed(class))) => Observation::Failed(Failure::new(class, server)),
            Err(_) => Observation::Failed(Failure::new(ServiceNetworkClass::Timeout, server)),
        }
    }

    /// Begins a connection every quarter of the round, until one has an answer. Fails as the worst of them.
    async fn connect(&self, server: SocketAddr) -> Result<(), Unanswered> {
        let mut connections: FuturesUnordered<_> = (0..CONNECTIONS)
            .map(|number| async move {
                sleep(self.timeout / 4 * number).await;
                exchange(server, &self.cluster).await
            })
            .collect();
        let mut worst = Unanswered::Internal;
        while let Some(result) = connections.next().await {
            match result {
                Ok(()) => return Ok(()),
                Err(unanswered) => worst = worst.max(unanswered),
            }
        }
        Err(worst)
    }
}

fn log(observation: Observation) {
    match observation {
        Observation::Success | Observation::Partial(_) => {
            tracing::info!("Connections to the Service reach an agent");
        }
        Observation::Failed(failure) => {
            tracing::warn!(%failure, "Connections to the Service reach no agent");
        }
        Observation::Internal => {
            tracing::warn!("Could not try a connection to the Service");
        }
    }
}
