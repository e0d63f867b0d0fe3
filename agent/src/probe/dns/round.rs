//! One round: every probe name at the servers that pods query, and whatever else the flags enable, all
//! at once and within one deadline.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{join, join_all, join3, try_join_all};
use health::diagnosis::{Diagnosis, DirectCheck, DirectChecks, Transport};
use health::observation::{Observation, Partial};
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_runtime::error::Chain;
use karmada_runtime::resolv_conf::ResolvConf;
use tokio::sync::watch;
use tokio::time::Instant;

use super::direct_checks::DirectServers;
use super::exchange::{ProbeError, Response};
use super::lookup::{DnsClient, Expected, Found, Lookup, NotFound, transport};
use super::metrics::{DnsMetrics, QueryOutcome, RESOLVED};
use super::outage::{LookupPlan, NameState};
use super::right::{Right, beside, services_zones};
use super::{DnsProbe, Schedule};
use crate::probe::metrics::RoundLabels;

/// The most pods queried in one round, so that its size does not grow with the cluster. Each round
/// picks others.
const MOST_PODS: usize = 32;
/// The number of rounds before one that must show the same impairment before it is observed. A single one
/// may have lost both copies of a query.
const ROUNDS_BEFORE: usize = 2;

/// Runs rounds, and keeps the state from one round to the next.
#[derive(Debug)]
pub(super) struct Prober<C> {
    probe: DnsProbe,
    client: C,
    direct: watch::Receiver<DirectServers>,
    metrics: DnsMetrics,
    random: Rng,
    /// For each probe name, the results of the lookups so far.
    names: Vec<NameState>,
    /// True if every name had an address in the newest round.
    resolved: bool,
    /// The troubles of the newest rounds, though every name had an address.
    partial: [Partial; 1 + ROUNDS_BEFORE],
}

/// The result of a round.
#[derive(Debug)]
pub(super) struct RoundResult {
    pub(super) result: Result<(), ProbeError>,
    /// The location of the fault, also while the servers that pods query still mask it.
    pub(super) diagnosis: Option<Diagnosis>,
    /// The trouble that has lasted for some rounds, while names resolve.
    pub(super) partial: Partial,
}

impl<C: DnsClient> Prober<C> {
    pub(super) fn new(
        probe: DnsProbe,
        client: C,
        direct: watch::Receiver<DirectServers>,
        metrics: DnsMetrics,
        random: Rng,
    ) -> Self {
        let names = vec![NameState::default(); probe.names.len()];
        Self {
            probe,
            client,
            direct,
            metrics,
            random,
            names,
            resolved: false,
            partial: [Partial::default(); 1 + ROUNDS_BEFORE],
        }
    }

    /// Runs one round after another until nobody receives their observations.
    pub(super) async fn run(mut self, mut schedule: Schedule) {
        let mut before = None;
        loop {
            let scheduled = schedule.due().await;
            let started = Instant::now();
            let round = self.round().await;
            let observation = round.observation();
            let result = RoundLabels::of(observation, RESOLVED);
            self.metrics.rounds.record([result], started.elapsed());
            // Logged when it changes, and not once per period for as long as an outage lasts.
            let now = (result, round.diagnosis, round.partial);
            if before.replace(now) != Some(now) {
                round.log();
            }
            if !schedule.finish(scheduled, observation).await {
                return;
            }
        }
    }

    /// Succeeds if every name has an address and the name that must not exist is denied.
    pub(super) async fn round(&mut self) -> RoundResult {
        let start = Instant::now();
        let conf = match ResolvConf::read(&self.probe.resolv_conf) {
            Ok(conf) => conf,
            Err(error) => {
                return self.diagnose(Err(ProbeError::Internal(error)), None, Transport::Udp);
            }
        };
        let uncached = self.probe.uncached.then(|| self.uncached_name(&conf));
        let direct = self.direct_servers();
        let servers = if self.probe.nameservers.is_empty() {
            &conf.servers
        } else {
            &self.probe.nameservers
        };
        self.metrics.set_servers(servers);
        let names = self.probe.names.iter();
        let plans: Vec<_> = names
            .map(|name| LookupPlan::new(name, servers, &conf))
            .collect();
        let rights: Vec<_> = self
            .probe
            .names
            .iter()
            .map(|name| Right::new(name, &conf, &self.probe.expected, self.probe.api))
            .collect();
        let client = CountingClient {
            client: &self.client,
            metrics: &self.metrics,
        };
        let lookup = Lookup {
            client: &client,
            servers,
            transport: transport(&conf),
            families: conf.families,
            // The first success after a failure is not to be delayed: it may keep a vote from changing. Whether it is
            // one depends on the other responses where a resolver is named.
            patience: if self.resolved || self.probe.judge.names_resolvers() {
                self.probe.timeout
            } else {
                Duration::ZERO
            },
            expected: Expected::Denial,
            start,
            deadline: start + self.probe.timeout,
        };
        let names = self.names.iter().zip(&plans).zip(&rights);
        let names = join_all(names.map(async |((name, plan), right)| {
            let lookup = Lookup {
                expected: Expected::Addresses(right),
                ..lookup
            };
            let Some(first) = name.first(plan) else {
                return lookup.resolve(&plan.candidates, None).await;
            };
            let short = Lookup {
                patience: Duration::ZERO,
                ..lookup
            };
            let found = short.resolve(&plan.candidates, Some(&first)).await?;
            if !self.probe.judge.names_resolvers() {
                return Ok(found);
            }
            // A short lookup has too few responses to judge pods with a resolver.
            let full = lookup.resolve(&plan.candidates, None).await;
            Ok(full.unwrap_or(found))
        }));
        let denial = async {
            let Some(name) = uncached else { return Ok(()) };
            let lookup = Lookup {
                // NODATA counts as a denial, so one family is enough.
                families: &[RecordType::A],
                patience: Duration::ZERO,
                ..lookup
            };
            let result = lookup.resolve(&[name], None).await;
            result.map(drop).map_err(|not_found| not_found.error)
        };
        let checks = self.direct_checks(&direct, &plans, &rights, start);
        let (names, denial, checks) = join3(names, denial, checks).await;
        let (result, partial) = self.result(names.into_iter().zip(plans), denial, conf.rotate);
        let mut round = self.diagnose(result, checks, transport(&conf));
        // Judged last: where an address was found, nothing is to be located.
        if round.result.is_ok()
            && let Some(failure) = self.probe.judge.failure(&partial.pods)
        {
            round.result = Err(ProbeError::Failed(failure));
        }
        round
    }

    /// Returns the servers to query directly in this round.
    fn direct_servers(&mut self) -> DirectServers {
        let direct = self.direct.borrow_and_update().clone();
        let service = usize::from(direct.service.is_some());
        self.metrics.set_direct_servers(service, direct.pods.len());
        DirectServers {
            // The random choice covers all pods over time, across rounds and nodes.
            pods: self.random.choose_multiple(direct.pods, MOST_PODS),
            ..direct
        }
    }

    /// Combines the results of all names and of the denial, and remembers them. Returns the troubles of this
    /// round, if names resolve.
    fn result(
        &mut self,
        names: impl Iterator<Item = (Result<Found, NotFound>, LookupPlan)>,
        denial: Result<(), ProbeError>,
        rotate: bool,
    ) -> (Result<(), ProbeError>, Partial) {
        let mut result = denial;
        let mut partial = Partial::default();
        // Every name is visited: also after a failure the others' results are kept.
        for ((name, plan), state) in names.zip(&mut self.names) {
            if let Ok(found) = &name {
                partial.silent = partial.silent.or(found.silent);
                partial.pods = partial.pods.and(plan.pods(&found.answers, rotate));
            }
            result = both(result, state.record(name, plan));
        }
        self.resolved = result.is_ok();
        if !self.resolved {
            self.partial = [Partial::default(); 1 + ROUNDS_BEFORE];
            return (result, Partial::default());
        }
        self.metrics.record_partial(&partial);
        let [before, older, _] = self.partial;
        self.partial = [partial, before, older];
        (result, partial)
    }

    /// Queries the DNS Service and pods directly. Returns `None` if a query could not be sent.
    async fn direct_checks(
        &self,
        direct: &DirectServers,
        plans: &[LookupPlan],
        rights: &[Right<'_>],
        start: Instant,
    ) -> Option<DirectChecks> {
        let check = |server| self.direct_check(server, plans, rights, start);
        let service = try_join_all(direct.service.map(check));
        let pods = try_join_all(direct.pods.iter().copied().map(check));
        let (service, pods) = join(service, pods).await;
        let checks = DirectChecks {
            service: service.ok()?.pop(),
            pods: pods.ok()?,
        };
        self.metrics.record_direct_checks(&checks);
        Some(checks)
    }

    /// Queries one server for every name over both transports: the query known to return an address
    /// or, before there is one, all that a pod would send.
    async fn direct_check(
        &self,
        server: SocketAddr,
        plans: &[LookupPlan],
        rights: &[Right<'_>],
        start: Instant,
    ) -> Result<DirectCheck, ProbeError> {
        let over = async |transport| {
            let names = self.names.iter().zip(plans).zip(rights);
            let resolved = join_all(names.map(async |((name, plan), right)| {
                let known = name.known(plan);
                let name = known.map(|known| [known.name.clone()]);
                let family = known.map(|known| [known.query_type]);
                let lookup = Lookup {
                    // Not the counting client, whose series are those of the servers that pods query.
                    client: &self.client,
                    servers: &[server],
                    transport,
                    families: family.as_ref().map_or(plan.families, |family| family),
                    patience: Duration::ZERO,
                    expected: Expected::Addresses(right),
                    start,
                    deadline: start + self.probe.timeout,
                };
                let candidates = name.as_ref().map_or(&*plan.candidates, |name| name);
                let result = lookup.resolve(candidates, None).await;
                result.map(drop).map_err(|not_found| not_found.error)
            }));
            match resolved.await.into_iter().reduce(both).unwrap_or(Ok(())) {
                Ok(()) => Ok(Ok(())),
                Err(ProbeError::Failed(failure)) => Ok(Err(failure.class)),
                Err(internal) => Err(internal),
            }
        };
        let (udp, tcp) = join(over(Transport::Udp), over(Transport::Tcp)).await;
        Ok(DirectCheck {
            server,
            udp: udp?,
            tcp: tcp?,
        })
    }

    fn diagnose(
        &self,
        mut result: Result<(), ProbeError>,
        checks: Option<DirectChecks>,
        transport: Transport,
    ) -> RoundResult {
        let checks = checks.unwrap_or_default();
        let diagnosis = match &mut result {
            Ok(()) => checks.diagnose(None, transport),
            Err(ProbeError::Failed(failure)) => {
                let failed = failure.server.map(|server| (failure.class, server));
                failure.diagnosis = checks.diagnose(failed, transport);
                failure.diagnosis
            }
            Err(ProbeError::Internal(_)) => None,
        };
        self.metrics.set_fault(diagnosis);
        let [now, before @ ..] = &self.partial;
        RoundResult {
            result,
            diagnosis,
            partial: before.iter().fold(*now, Partial::also_in),
        }
    }

    /// Returns a name that does not exist and that no cache can know: beside the first probe name if that is
    /// absolute, otherwise beside the cluster's namespaces. Below the first domain of the search list, CoreDNS's
    /// autopath would go on to the other domains and leave the cluster; the name is there only in a list without
    /// those namespaces.
    fn uncached_name(&mut self, conf: &ResolvConf) -> Name {
        let first = self.probe.names.first().cloned().unwrap_or_default();
        let domain = if first.is_fqdn() {
            beside(&first)
        } else {
            let domain = services_zones(conf).next().or_else(|| conf.search.first());
            domain.cloned().unwrap_or_else(|| beside(&first))
        };
        let label = format!("probe-{:016x}", self.random.u64(..));
        let mut name = domain.prepend_label(label.as_str()).unwrap_or(domain);
        // Absolute, so that the search list does not multiply the query.
        name.set_fqdn(true);
        name
    }
}

/// Counts the outcomes of a client's queries.
#[derive(Debug)]
struct CountingClient<'a, C> {
    client: &'a C,
    metrics: &'a DnsMetrics,
}

impl<C: DnsClient> DnsClient for CountingClient<'_, C> {
    fn query(
        &self,
        server: SocketAddr,
        transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> impl Future<Output = io::Result<Response>> + Send {
        let response = self.client.query(server, transport, query, deadline);
        async move {
            let result = response.await;
            let outcome = match &result {
                Ok(Response::Addresses { .. }) => QueryOutcome::Address,
                Ok(Response::Other(answer)) => {
                    answer.class().map_or(QueryOutcome::Address, |class| {
                        QueryOutcome::Failure(class.into())
                    })
                }
                Err(_) => QueryOutcome::Internal,
            };
            self.metrics.record_query(server, outcome);
            result
        }
    }
}

/// Combines the results of two names that must both resolve. Unlike [`ProbeError::or_worse`], a
/// failure prevails over an internal error: it fails the round whatever became of the other name.
pub(super) fn both(
    one: Result<(), ProbeError>,
    other: Result<(), ProbeError>,
) -> Result<(), ProbeError> {
    match (one, other) {
        (Err(ProbeError::Failed(one)), Err(ProbeError::Failed(other))) => {
            Err(ProbeError::Failed(one.or_worse(other)))
        }
        (failed @ Err(ProbeError::Failed(_)), _) | (_, failed @ Err(ProbeError::Failed(_))) => {
            failed
        }
        (internal @ Err(_), _) | (_, internal @ Err(_)) => internal,
        (Ok(()), Ok(())) => Ok(()),
    }
}

impl RoundResult {
    pub(super) fn observation(&self) -> Observation {
        match &self.result {
            Ok(()) if self.partial.is_nothing() => Observation::Success,
            Ok(()) => Observation::Partial(self.partial),
            Err(ProbeError::Failed(failure)) => Observation::Failed(*failure),
            Err(ProbeError::Internal(_)) => Observation::Internal,
        }
    }

    pub(super) fn log(&self) {
        match (&self.result, self.diagnosis) {
            (Ok(()), None) if self.partial.is_nothing() => tracing::info!("Names resolve"),
            (Ok(()), None) => {
                let problem = self.partial.sentences().join("; ");
                tracing::warn!(
                    problem,
                    "Names resolve, but not for all pods without a wait"
                );
            }
            (Ok(()), Some(fault)) => {
                tracing::warn!(%fault, "Names resolve, but DNS is broken behind what answers");
            }
            (Err(ProbeError::Failed(failure)), _) => {
                tracing::warn!(%failure, "Names do not resolve");
            }
            (Err(ProbeError::Internal(error)), _) => {
                tracing::warn!(error = %Chain(error), "Could not ask any DNS server");
            }
        }
    }
}
