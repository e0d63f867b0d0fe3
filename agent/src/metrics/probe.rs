use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmada_rules::health::diagnosis::{Diagnosis, DirectCheck, DirectChecks, Location, Transport};
use karmada_rules::health::failure::{FailureClass, Server};
use karmada_rules::health::observation::Observation;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What becomes of the probe's rounds.
#[derive(Clone, Debug)]
pub(crate) struct ProbeMetrics {
    rounds: Family<RoundLabels, Counter>,
    duration: Histogram,
    answers: Family<AnswerLabels, Counter>,
    /// The servers that `answers` has series of.
    servers: Arc<Mutex<BTreeSet<SocketAddr>>>,
    direct: Family<DirectLabels, Counter>,
    fault: Family<FaultLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoundLabels {
    /// `resolved`, a failure class, or `internal`.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    server: String,
    /// `address`, a failure class, or `internal`.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectLabels {
    /// `service` or `pod`.
    path: &'static str,
    transport: &'static str,
    /// `resolved` or a failure class.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    place: &'static str,
}

const RESOLVED: &str = "resolved";
const ADDRESS: &str = "address";
const INTERNAL: &str = "internal";

fn classes() -> impl Iterator<Item = &'static str> {
    FailureClass::ALL.into_iter().map(FailureClass::as_str)
}

impl ProbeMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            rounds: Family::default(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            answers: Family::default(),
            servers: Arc::default(),
            direct: Family::default(),
            fault: Family::default(),
        };
        registry.register(
            "probe_rounds",
            "Rounds of DNS questions, by result: resolved, the worst class of failure, or internal (could not ask)",
            metrics.rounds.clone(),
        );
        registry.register_with_unit(
            "probe_round_duration",
            "Time a round of DNS questions took",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register(
            "probe_answers",
            "Single questions, by the server that pods ask and what it answered: address, the class of failure, or internal; a name of the search list that does not exist is an nxdomain of a healthy server",
            metrics.answers.clone(),
        );
        registry.register(
            "probe_direct_answers",
            "Lookups past the servers that pods ask, at the DNS Service's address or a DNS pod, by result",
            metrics.direct.clone(),
        );
        registry.register(
            "probe_fault",
            "1 for where the newest round found the fault; no 1 while it found none",
            metrics.fault.clone(),
        );
        for result in classes().chain([RESOLVED, INTERNAL]) {
            metrics
                .rounds
                .get_or_create(&RoundLabels { result })
                .inc_by(0);
        }
        metrics.located(None);
        metrics
    }

    /// A round has ended.
    pub(crate) fn observe(&self, observation: Observation, took: Duration) {
        let result = observation.as_str();
        self.rounds.get_or_create(&RoundLabels { result }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// These servers are asked from now on; the series of all others end.
    pub(crate) fn servers(&self, servers: &[SocketAddr]) {
        let mut known = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeSet<_> = servers.iter().copied().collect();
        for result in classes().chain([ADDRESS, INTERNAL]) {
            let labels = |server: &SocketAddr| AnswerLabels {
                server: Server(*server).to_string(),
                result,
            };
            for gone in known.difference(&now) {
                self.answers.remove(&labels(gone));
            }
            for new in now.difference(&known) {
                self.answers.get_or_create(&labels(new)).inc_by(0);
            }
        }
        *known = now;
    }

    /// What a question to one of the servers brought.
    pub(crate) fn answered(&self, server: SocketAddr, result: Answered) {
        let result = match result {
            Answered::Address => ADDRESS,
            Answered::Failure(class) => class.as_str(),
            Answered::Internal => INTERNAL,
        };
        let server = Server(server).to_string();
        self.answers
            .get_or_create(&AnswerLabels { server, result })
            .inc();
    }

    /// The servers behind those that pods ask have answered.
    pub(crate) fn direct(&self, paths: &DirectChecks) {
        let service = paths.service.iter().map(|direct| ("service", direct));
        let pods = paths.pods.iter().map(|direct| ("pod", direct));
        for (path, direct) in service.chain(pods) {
            for transport in Transport::ALL {
                self.direct
                    .get_or_create(&direct_labels(path, transport, direct))
                    .inc();
            }
        }
    }

    /// The newest round found the fault here.
    pub(crate) fn located(&self, fault: Option<Diagnosis>) {
        let current = fault.map(|fault| fault.location.kind());
        for place in Location::KINDS {
            let gauge = self.fault.get_or_create(&FaultLabels { place });
            gauge.set(i64::from(current == Some(place)));
        }
    }
}

/// What a single question brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Address,
    Failure(FailureClass),
    /// It could not be asked.
    Internal,
}

fn direct_labels(path: &'static str, transport: Transport, direct: &DirectCheck) -> DirectLabels {
    let result = direct.over(transport);
    DirectLabels {
        path,
        transport: transport.as_str(),
        result: result.map_or_else(FailureClass::as_str, |()| RESOLVED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn every_result_is_there_before_the_first_round() {
        let mut registry = Registry::default();
        ProbeMetrics::register(&mut registry);
        let shown = shown(&registry);
        for result in classes().chain([RESOLVED, INTERNAL]) {
            let line = format!("probe_rounds_total{{result=\"{result}\"}} 0");
            assert!(shown.contains(&line), "{line}");
        }
        for place in Location::KINDS {
            let line = format!("probe_fault{{place=\"{place}\"}} 0");
            assert!(shown.contains(&line), "{line}");
        }
    }

    #[test]
    fn only_servers_that_are_asked_have_series() {
        let mut registry = Registry::default();
        let metrics = ProbeMetrics::register(&mut registry);
        let [one, two]: [SocketAddr; 2] =
            [([10, 0, 0, 1], 53).into(), ([10, 0, 0, 2], 5353).into()];
        metrics.servers(&[one]);
        metrics.answered(one, Answered::Failure(FailureClass::ServFail));
        let line = "probe_answers_total{server=\"10.0.0.1\",result=\"servfail\"} 1";
        assert!(shown(&registry).contains(&line.to_owned()));
        metrics.servers(&[two]);
        let answers: Vec<_> = shown(&registry)
            .into_iter()
            .filter(|line| line.starts_with("probe_answers_total{"))
            .collect();
        assert_eq!(answers.len(), FailureClass::ALL.len() + 2);
        let other = "server=\"10.0.0.2:5353\"";
        assert!(
            answers
                .iter()
                .all(|line| line.contains(other) && line.ends_with(" 0"))
        );
    }
}
