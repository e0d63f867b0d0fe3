//! One round: of each cluster some connections, one beside the other until one is answered, within one deadline.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use health::observation::{Failure, Observation};
use health::reachability::{REACHABILITY, ReachabilityClass, tried};
use karmada_runtime::metrics::Registry;
use karmada_runtime::panics::caught;
use tokio::time::{Instant, sleep, timeout_at};

use super::addresses::Known;
use super::exchange::{HttpRequest, Unreached, exchange};
use crate::metrics::OfMember;
use crate::probe::metrics::{RoundLabels, RoundMetrics};
use crate::probe::schedule::Schedule;
use crate::vote::ByCluster;

/// The part of a round after which the next connection begins: the last of five still has half of it.
const NEXT_AFTER: u32 = 8;
/// The result of a round for a cluster that is reached.
const REACHED: &str = "reached";

/// Runs rounds.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) addresses: Known,
    pub(super) request: Option<HttpRequest>,
    pub(super) timeout: Duration,
    pub(super) metrics: RoundMetrics<OfMember<RoundLabels>>,
}

/// Registers the metrics of the rounds.
pub(super) fn metrics(registry: &mut Registry) -> RoundMetrics<OfMember<RoundLabels>> {
    let help = [
        "Rounds of connections to each member cluster, by result: reached, the worst class of failure, or internal (no connection could be tried)",
        "Duration of a round of connections to all member clusters",
    ];
    RoundMetrics::register(registry, REACHABILITY.metric_prefix, help)
}

impl Prober {
    /// Runs one round after another until nobody receives their observations.
    pub(super) async fn run(self, mut schedule: Schedule<ByCluster>) {
        let mut before: BTreeMap<Arc<str>, RoundLabels> = BTreeMap::new();
        loop {
            let scheduled = schedule.due().await;
            let started = Instant::now();
            let observed = self.round().await;
            let results = observed.iter().map(|(cluster, observation)| OfMember {
                member: Arc::clone(cluster),
                labels: RoundLabels::of(*observation, REACHED),
            });
            self.metrics.record(results, started.elapsed());
            // Logged when it changes, and not once per period for as long as an outage lasts.
            for (cluster, observation) in &observed {
                let now = RoundLabels::of(*observation, REACHED);
                if before.insert(Arc::clone(cluster), now) != Some(now) {
                    log(cluster, *observation);
                }
            }
            before.retain(|cluster, _| observed.contains_key(cluster));
            if !schedule.finish(scheduled, observed).await {
                return;
            }
        }
    }

    /// Observes every cluster of which an address is known.
    pub(super) async fn round(&self) -> ByCluster {
        let known = self.addresses.by_cluster();
        let observations = known.into_iter().map(|(cluster, addresses)| async move {
            let observed = caught(self.observe(&addresses)).await;
            (cluster, observed.unwrap_or(Observation::Internal))
        });
        join_all(observations).await.into_iter().collect()
    }

    /// Succeeds as soon as the cluster is reached at one of the addresses. Fails as the worst of them.
    async fn observe(&self, addresses: &BTreeSet<SocketAddr>) -> Observation {
        let deadline = Instant::now() + self.timeout;
        let mut connections: FuturesUnordered<_> = (0..)
            .zip(tried(addresses))
            .map(|(nth, address)| async move {
                sleep(self.timeout / NEXT_AFTER * nth).await;
                let exchange = exchange(address, self.request.as_ref());
                let late = Err(Unreached::Failed(ReachabilityClass::Timeout));
                let exchanged = timeout_at(deadline, exchange).await.unwrap_or(late);
                (address, exchanged)
            })
            .collect();
        let mut failures = Vec::new();
        while let Some((address, exchanged)) = connections.next().await {
            match exchanged {
                Ok(()) => return Observation::Success,
                Err(Unreached::Failed(class)) => failures.push(Failure::new(class, address)),
                Err(Unreached::Internal) => {}
            }
        }
        // The first address of equals, whichever failed first: the message of the verdict must not flicker.
        let worst = failures
            .into_iter()
            .max_by_key(|failure| (failure.class, Reverse(failure.server)));
        worst.map_or(Observation::Internal, Observation::Failed)
    }
}

fn log(cluster: &str, observation: Observation) {
    match observation {
        Observation::Success | Observation::Partial(_) => {
            tracing::info!(cluster, "The cluster is reached from this node");
        }
        Observation::Failed(failure) => {
            tracing::warn!(cluster, %failure, "The cluster is not reached from this node");
        }
        Observation::Internal => {
            tracing::warn!(cluster, "Could not try a connection to the cluster");
        }
    }
}
