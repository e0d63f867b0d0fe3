//! The rounds of a declared signal's probe.

use std::time::Duration;

use health::observation::Observation;
use health::signal::Signal;
use karmada_runtime::lease::Leadership;
use karmada_runtime::panics::caught;
use tokio::time::{Instant, timeout};

use super::kind::Attempt;
use super::network::Node;
use super::probe::Probe;
use super::unmet::Unmet;
use crate::metrics::OfSignal;
use crate::probe::metrics::{RoundLabels, RoundMetrics};
use crate::probe::schedule::Schedule;

/// The time by which a round may miss its deadline: a wait for a server ends at the deadline, and tells for which one.
const GRACE: Duration = Duration::from_millis(100);
/// The result of a round that succeeds.
const SUCCEEDED: &str = "succeeded";

/// The metrics of the rounds of all declared signals.
pub(super) type SignalRoundMetrics = RoundMetrics<OfSignal<RoundLabels>>;

/// Runs rounds.
pub(super) struct Prober {
    pub(super) signal: &'static Signal,
    pub(super) probe: Probe,
    pub(super) node: Node,
    pub(super) period: Duration,
    pub(super) timeout: Duration,
    /// Set for a signal that the leader alone probes.
    pub(super) leadership: Option<Leadership>,
    pub(super) metrics: SignalRoundMetrics,
}

impl Prober {
    /// Runs one round after another until nobody receives their observations.
    pub(super) async fn run(self, mut schedule: Schedule) {
        let mut before = None;
        loop {
            self.wait_to_lead().await;
            let scheduled = schedule.due().await;
            let started = Instant::now();
            let outcome =
                caught(run_once(&self.probe, &self.node, self.period, self.timeout)).await;
            let outcome = outcome.unwrap_or_else(|fault| Err(Unmet::unobserved(fault.to_string())));
            let observation = outcome
                .as_ref()
                .map_or_else(Unmet::observation, |()| Observation::Success);
            let now = RoundLabels::of(observation, SUCCEEDED);
            let signal = self.signal.name;
            let result = OfSignal {
                signal,
                labels: now,
            };
            self.metrics.record([result], started.elapsed());
            // Logged when it changes, and not once per period for as long as an outage lasts.
            if before.replace(now) != Some(now) {
                log(self.signal, &outcome);
            }
            if !schedule.finish(scheduled, observation).await {
                return;
            }
        }
    }

    async fn wait_to_lead(&self) {
        let Some(leadership) = &self.leadership else {
            return;
        };
        if leadership.held_until().is_none() {
            self.probe.kind().rest();
            leadership.acquired().await;
        }
    }
}

/// Returns the labels of every result of a signal's rounds.
pub(super) fn every_result(signal: &'static Signal) -> impl Iterator<Item = OfSignal<RoundLabels>> {
    let results = RoundLabels::all(signal, SUCCEEDED);
    results.map(|labels| OfSignal {
        signal: signal.name,
        labels,
    })
}

/// Runs one round of `probe`.
pub(super) async fn run_once(
    probe: &Probe,
    node: &Node,
    period: Duration,
    limit: Duration,
) -> Result<(), Unmet> {
    let attempt = Attempt {
        node,
        deadline: Instant::now() + limit,
        period,
    };
    let observed = timeout(limit + GRACE, probe.kind().observe(&attempt)).await;
    observed.unwrap_or_else(|_| Err(Unmet::unobserved("the round does not end")))
}

fn log(signal: &Signal, outcome: &Result<(), Unmet>) {
    let signal = signal.name;
    match outcome {
        Ok(()) => tracing::info!(signal, "The probe of the signal succeeds on this node"),
        Err(Unmet::Failed { failure, details }) => {
            tracing::warn!(signal, %failure, details, "The probe of the signal fails on this node");
        }
        Err(Unmet::Unobserved(reason)) => {
            tracing::warn!(
                signal,
                reason,
                "The probe of the signal observes nothing on this node"
            );
        }
    }
}
