//! One round: every probe name at the servers that pods ask, and what the options ask besides, all
//! at once and within one deadline.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};

use fastrand::Rng;
use futures::future::{join, join_all, join3, try_join_all};
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_rules::health::diagnosis::{Diagnosis, DirectCheck, DirectChecks, Transport};
use karmada_rules::health::observation::Observation;
use karmada_runtime::error::Chain;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Probe;
use super::behind::Behind;
use super::exchange::Unanswered;
use super::lookup::{Ask, Lookup, Wanted};
use super::resolv_conf::ResolvConf;
use crate::metrics::{Answered, ProbeMetrics};

/// More pods than this are not asked in one round, but each time others.
const MOST_PODS: usize = 32;

/// What rounds need, and what one round leaves for the next.
#[derive(Debug)]
pub(super) struct Rounds<A> {
    pub(super) probe: Probe,
    pub(super) ask: A,
    pub(super) behind: watch::Receiver<Behind>,
    pub(super) metrics: ProbeMetrics,
    pub(super) random: Rng,
    /// For each probe name, the question that had an address when it last resolved.
    known: Vec<Option<Query>>,
}

/// What a round saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) result: Result<(), Unanswered>,
    /// Where the fault is, also when the servers that pods ask hide it so far.
    pub(super) fault: Option<Diagnosis>,
}

impl<A: Ask> Rounds<A> {
    pub(super) fn new(
        probe: Probe,
        ask: A,
        behind: watch::Receiver<Behind>,
        metrics: ProbeMetrics,
        random: Rng,
    ) -> Self {
        let known = vec![None; probe.names.len()];
        Self {
            probe,
            ask,
            behind,
            metrics,
            random,
            known,
        }
    }

    /// Succeeds when every name has an address, and the name that must not exist is denied.
    pub(super) async fn round(&mut self) -> Seen {
        let start = Instant::now();
        let conf = match ResolvConf::read(&self.probe.resolv_conf) {
            Ok(conf) => conf,
            Err(error) => {
                return self.judge(Err(Unanswered::Internal(error)), None, Transport::Udp);
            }
        };
        let uncached = self.probe.uncached.then(|| self.uncached_name(&conf));
        let behind = self.behind_now();
        let servers = if self.probe.nameservers.is_empty() {
            &conf.servers
        } else {
            &self.probe.nameservers
        };
        self.metrics.servers(servers);
        let candidates: Vec<_> = self
            .probe
            .names
            .iter()
            .map(|name| conf.candidates(name))
            .collect();
        let ask = Counted {
            ask: &self.ask,
            metrics: &self.metrics,
        };
        let lookup = Lookup {
            ask: &ask,
            servers,
            transport: conf.transport,
            families: conf.families,
            wanted: Wanted::Addresses(&self.probe.expected),
            start,
            deadline: start + self.probe.timeout,
        };
        let names = join_all(
            candidates
                .iter()
                .map(|candidates| lookup.resolve(candidates)),
        );
        let denial = async {
            let Some(name) = uncached else { return Ok(()) };
            let lookup = Lookup {
                families: &[RecordType::A],
                wanted: Wanted::Denial,
                ..lookup
            };
            lookup.resolve(&[name]).await.map(drop)
        };
        let paths = self.paths(&behind, &candidates, conf.families, start);
        let (names, denial, paths) = join3(names, denial, paths).await;
        let result = self.result(names, denial);
        self.judge(result, paths, conf.transport)
    }

    /// The servers behind that are asked in this round.
    fn behind_now(&mut self) -> Behind {
        let behind = self.behind.borrow_and_update().clone();
        Behind {
            pods: self.random.choose_multiple(behind.pods, MOST_PODS),
            ..behind
        }
    }

    /// What all names and the denial come to; keeps the questions that had an address.
    fn result(
        &mut self,
        names: Vec<Result<Query, Unanswered>>,
        denial: Result<(), Unanswered>,
    ) -> Result<(), Unanswered> {
        let names = names.into_iter().zip(&mut self.known);
        let resolved = names.map(|(name, known)| name.map(|question| *known = Some(question)));
        resolved.fold(denial, both)
    }

    /// Asks the servers behind. None when one could not be asked.
    async fn paths(
        &self,
        behind: &Behind,
        candidates: &[Vec<Name>],
        families: &[RecordType],
        start: Instant,
    ) -> Option<DirectChecks> {
        let direct = |server| self.direct(server, candidates, families, start);
        let service = try_join_all(behind.service.map(direct));
        let pods = try_join_all(behind.pods.iter().copied().map(direct));
        let (service, pods) = join(service, pods).await;
        let paths = DirectChecks {
            service: service.ok()?.pop(),
            pods: pods.ok()?,
        };
        self.metrics.direct(&paths);
        Some(paths)
    }

    /// Asks one server for every name over both transports: the question known to have an answer,
    /// or all that a pod would ask.
    async fn direct(
        &self,
        server: SocketAddr,
        candidates: &[Vec<Name>],
        families: &[RecordType],
        start: Instant,
    ) -> Result<DirectCheck, Unanswered> {
        let over = async |transport| {
            let names = self.known.iter().zip(candidates);
            let resolved = join_all(names.map(async |(known, candidates)| {
                let known = known
                    .as_ref()
                    .filter(|known| candidates.contains(&known.name));
                let name = known.map(|known| [known.name.clone()]);
                let family = known.map(|known| [known.query_type]);
                let lookup = Lookup {
                    ask: &self.ask,
                    servers: &[server],
                    transport,
                    families: family.as_ref().map_or(families, |family| family),
                    wanted: Wanted::Addresses(&self.probe.expected),
                    start,
                    deadline: start + self.probe.timeout,
                };
                let candidates = name.as_ref().map_or(candidates.as_slice(), |name| name);
                lookup.resolve(candidates).await.map(drop)
            }));
            match resolved.await.into_iter().reduce(both).unwrap_or(Ok(())) {
                Ok(()) => Ok(Ok(())),
                Err(Unanswered::Failed(failure)) => Ok(Err(failure.class)),
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

    fn judge(
        &self,
        mut result: Result<(), Unanswered>,
        paths: Option<DirectChecks>,
        transport: Transport,
    ) -> Seen {
        let paths = paths.unwrap_or_default();
        let fault = match &mut result {
            Ok(()) => paths.diagnose(None, transport),
            Err(Unanswered::Failed(failure)) => {
                failure.diagnosis =
                    paths.diagnose(Some((failure.class, failure.server)), transport);
                failure.diagnosis
            }
            Err(Unanswered::Internal(_)) => None,
        };
        self.metrics.located(fault);
        Seen { result, fault }
    }

    /// A name that nobody has asked for and that does not exist: in the first domain of the search
    /// list, or beside the first probe name if that is absolute.
    fn uncached_name(&mut self, conf: &ResolvConf) -> Name {
        let first = self.probe.names.first().cloned().unwrap_or_default();
        let domain = match conf.search.first() {
            Some(domain) if !first.is_fqdn() => domain.clone(),
            _ => first.base_name(),
        };
        let label = format!("probe-{:016x}", self.random.u64(..));
        let mut name = domain.prepend_label(label.as_str()).unwrap_or(domain);
        name.set_fqdn(true);
        name
    }
}

/// Counts what is answered.
#[derive(Debug)]
struct Counted<'a, A> {
    ask: &'a A,
    metrics: &'a ProbeMetrics,
}

impl<A: Ask> Ask for Counted<'_, A> {
    fn ask(
        &self,
        server: SocketAddr,
        transport: Transport,
        question: Query,
        deadline: Instant,
    ) -> impl Future<Output = Result<Vec<IpAddr>, Unanswered>> + Send {
        let asked = self.ask.ask(server, transport, question, deadline);
        async move {
            let result = asked.await;
            let answered = match &result {
                Ok(_) => Answered::Address,
                Err(Unanswered::Failed(failure)) => Answered::Failure(failure.class),
                Err(Unanswered::Internal(_)) => Answered::Internal,
            };
            self.metrics.answered(server, answered);
            result
        }
    }
}

/// What two names come to. One that has no address fails the round, whatever became of the other.
pub(super) fn both(
    one: Result<(), Unanswered>,
    other: Result<(), Unanswered>,
) -> Result<(), Unanswered> {
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

impl Seen {
    pub(super) fn observation(&self) -> Observation {
        match &self.result {
            Ok(()) => Observation::Resolved,
            Err(Unanswered::Failed(failure)) => Observation::Failed(*failure),
            Err(Unanswered::Internal(_)) => Observation::Internal,
        }
    }

    /// Logs it.
    pub(super) fn tell(&self) {
        match (&self.result, self.fault) {
            (Ok(()), None) => tracing::info!("Names resolve"),
            (Ok(()), Some(fault)) => {
                tracing::warn!(%fault, "Names resolve, but DNS is broken behind what answers");
            }
            (Err(Unanswered::Failed(failure)), _) => {
                tracing::warn!(%failure, "Names do not resolve");
            }
            (Err(Unanswered::Internal(error)), _) => {
                tracing::warn!(error = %Chain(error), "Could not ask any DNS server");
            }
        }
    }
}
