//! The DNS probe's metrics. Their labels are closed sets: only servers queried now have series.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use health::diagnosis::{Diagnosis, DirectCheck, DirectChecks, Location, Transport};
use health::dns::DNS;
use health::failure::{FailureClass, Server};
use health::observation::{Family as AddressFamily, Partial, Symptom};
use health::resolver::Resolver;
use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::probe::metrics::{INTERNAL, RoundLabels, RoundMetrics};

/// Counts rounds, queries and direct checks.
#[derive(Clone, Debug)]
pub(super) struct DnsMetrics {
    pub(super) rounds: RoundMetrics,
    queries: Family<QueryLabels, Counter>,
    /// The servers that `queries` has series of.
    servers: Arc<Mutex<BTreeSet<SocketAddr>>>,
    silent: Family<SilentLabels, Counter>,
    pods: Family<PodsLabels, Counter>,
    direct: Family<DirectLabels, Counter>,
    direct_servers: Family<DirectServersLabels, Gauge>,
    fault: Family<FaultLabels, Gauge>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueryLabels {
    server: String,
    /// `address`, a failure class, or `internal`.
    result: &'static str,
}

impl QueryLabels {
    fn of(server: SocketAddr, result: &'static str) -> Self {
        Self {
            server: Server(server).to_string(),
            result,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SilentLabels {
    family: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PodsLabels {
    resolver: &'static str,
    /// `resolved` or a symptom.
    result: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectServersLabels {
    /// `service` or `pod`.
    path: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectLabels {
    /// `service` or `pod`.
    path: &'static str,
    transport: &'static str,
    /// `resolved` or a failure class.
    result: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    place: &'static str,
}

/// The result of a round, or of a part of one, that succeeds.
pub(super) const RESOLVED: &str = "resolved";
const ADDRESS: &str = "address";
const SERVICE: &str = "service";
const POD: &str = "pod";

fn classes() -> impl Iterator<Item = &'static str> {
    DNS.classes.iter().map(|class| class.as_str())
}

impl DnsMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = [
            "Rounds of DNS queries, by result: resolved, the worst class of failure, or internal (no query could be sent)",
            "Duration of a round of DNS queries",
        ];
        let metrics = Self {
            rounds: RoundMetrics::register(registry, DNS.metric_prefix, help),
            queries: registry.register(
                "probe_answers",
                "Single queries, by the server that pods query and its response: address, the class of failure, or internal; a healthy server returns nxdomain for a name of the search list that does not exist",
                Family::default(),
            ),
            servers: Arc::default(),
            silent: registry.register(
                "probe_silent_family",
                "Rounds in which names resolved, but queries for this family (A or AAAA) got no response",
                Family::default(),
            ),
            pods: registry.register(
                "probe_pods",
                "Rounds in which names resolved, by the resolver of a pod (glibc, musl or go) and what a lookup comes to there: resolved, waits, fails_at_times or fails",
                Family::default(),
            ),
            direct: registry.register(
                "probe_direct_answers",
                "Direct checks of the DNS Service and the DNS pods, past the servers that pods query, by result",
                Family::default(),
            ),
            direct_servers: registry.register(
                "probe_direct_servers",
                "Servers that direct checks query, by path: service or pod; 0 while none is found, or where the check is off",
                Family::default(),
            ),
            fault: registry.register(
                "probe_fault",
                "1 for the location of the fault that the newest round found; 0 for all others",
                Family::default(),
            ),
        };
        // Series that start at 0 let `rate()` see their first increase.
        metrics.rounds.begin(RoundLabels::all(&DNS, RESOLVED));
        for family in AddressFamily::ALL.map(AddressFamily::as_str) {
            let labels = SilentLabels { family };
            metrics.silent.get_or_create(&labels).inc_by(0);
        }
        for resolver in Resolver::ALL {
            for result in Symptom::ALL
                .map(Symptom::as_str)
                .into_iter()
                .chain([RESOLVED])
            {
                metrics
                    .pods
                    .get_or_create(&pods_labels(resolver, result))
                    .inc_by(0);
            }
        }
        metrics.set_direct_servers(0, 0);
        metrics.set_fault(None);
        metrics
    }

    /// Replaces the servers that have series.
    pub(super) fn set_servers(&self, servers: &[SocketAddr]) {
        let mut known = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeSet<_> = servers.iter().copied().collect();
        // A server that left `resolv.conf` must not keep series for ever.
        for result in classes().chain([ADDRESS, INTERNAL]) {
            for gone in known.difference(&now) {
                self.queries.remove(&QueryLabels::of(*gone, result));
            }
            for new in now.difference(&known) {
                let labels = QueryLabels::of(*new, result);
                self.queries.get_or_create(&labels).inc_by(0);
            }
        }
        *known = now;
    }

    pub(super) fn record_query(&self, server: SocketAddr, outcome: QueryOutcome) {
        let result = match outcome {
            QueryOutcome::Address => ADDRESS,
            QueryOutcome::Failure(class) => class.as_str(),
            QueryOutcome::Internal => INTERNAL,
        };
        let labels = QueryLabels::of(server, result);
        self.queries.get_or_create(&labels).inc();
    }

    /// Counts a round in which names resolved.
    pub(super) fn record_partial(&self, partial: &Partial) {
        if let Some(family) = partial.silent.map(AddressFamily::as_str) {
            self.silent.get_or_create(&SilentLabels { family }).inc();
        }
        for resolver in Resolver::ALL {
            let impairment = partial.pods.get(resolver);
            let result = impairment.map_or(RESOLVED, |impairment| impairment.symptom.as_str());
            self.pods
                .get_or_create(&pods_labels(resolver, result))
                .inc();
        }
    }

    /// Shows how many servers direct checks query.
    pub(super) fn set_direct_servers(&self, service: usize, pods: usize) {
        for (path, count) in [(SERVICE, service), (POD, pods)] {
            let gauge = self
                .direct_servers
                .get_or_create(&DirectServersLabels { path });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn record_direct_checks(&self, checks: &DirectChecks) {
        let service = checks.service.iter().map(|check| (SERVICE, check));
        let pods = checks.pods.iter().map(|check| (POD, check));
        for (path, check) in service.chain(pods) {
            for transport in Transport::ALL {
                self.direct
                    .get_or_create(&direct_labels(path, transport, check))
                    .inc();
            }
        }
    }

    /// Shows where the newest round found the fault.
    pub(super) fn set_fault(&self, fault: Option<Diagnosis>) {
        let current = fault.map(|fault| fault.location.kind());
        for place in Location::KINDS {
            let gauge = self.fault.get_or_create(&FaultLabels { place });
            gauge.set(i64::from(current == Some(place)));
        }
    }
}

/// The outcome of a single query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryOutcome {
    Address,
    Failure(FailureClass),
    /// It could not be sent.
    Internal,
}

fn pods_labels(resolver: Resolver, result: &'static str) -> PodsLabels {
    PodsLabels {
        resolver: resolver.as_str(),
        result,
    }
}

fn direct_labels(path: &'static str, transport: Transport, check: &DirectCheck) -> DirectLabels {
    let result = check.over(transport);
    DirectLabels {
        path,
        transport: transport.as_str(),
        result: result.map_or_else(FailureClass::as_str, |()| RESOLVED),
    }
}

#[cfg(test)]
mod tests {
    use health::dns::DnsClass;

    use super::*;

    fn shown(registry: &Registry) -> Vec<String> {
        let text = registry.encode().unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn every_result_is_there_before_the_first_round() {
        let mut registry = Registry::default();
        DnsMetrics::register(&mut registry);
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

    /// Nothing is probed directly while the DNS Service is not found, and each resolver has its series at once.
    #[test]
    fn what_is_not_there_is_zero() {
        let mut registry = Registry::default();
        let metrics = DnsMetrics::register(&mut registry);
        for line in [
            "probe_direct_servers{path=\"service\"} 0",
            "probe_direct_servers{path=\"pod\"} 0",
            "probe_pods_total{resolver=\"musl\",result=\"fails\"} 0",
            "probe_pods_total{resolver=\"go\",result=\"resolved\"} 0",
        ] {
            assert!(shown(&registry).contains(&line.to_owned()), "{line}");
        }
        metrics.set_direct_servers(1, 3);
        let line = "probe_direct_servers{path=\"pod\"} 3";
        assert!(shown(&registry).contains(&line.to_owned()));
    }

    #[test]
    fn only_servers_that_are_queried_have_series() {
        let mut registry = Registry::default();
        let metrics = DnsMetrics::register(&mut registry);
        let [one, two]: [SocketAddr; 2] =
            [([10, 0, 0, 1], 53).into(), ([10, 0, 0, 2], 5353).into()];
        metrics.set_servers(&[one]);
        metrics.record_query(one, QueryOutcome::Failure(DnsClass::ServFail.class()));
        let line = "probe_answers_total{server=\"10.0.0.1\",result=\"servfail\"} 1";
        assert!(shown(&registry).contains(&line.to_owned()));
        metrics.set_servers(&[two]);
        let answers: Vec<_> = shown(&registry)
            .into_iter()
            .filter(|line| line.starts_with("probe_answers_total{"))
            .collect();
        assert_eq!(answers.len(), DNS.classes.len() + 2);
        let other = "server=\"10.0.0.2:5353\"";
        assert!(
            answers
                .iter()
                .all(|line| line.contains(other) && line.ends_with(" 0"))
        );
    }
}
