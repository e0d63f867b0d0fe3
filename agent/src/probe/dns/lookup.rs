//! The lookup of one name: its candidates × the servers, one after the other as a pod's resolver
//! goes, and several at once as soon as responses are slow.
//!
//! A *leg* is one candidate queried at one server, for all address families at once. Each leg begins
//! when the one before it ends. Whenever a quarter of the round has passed without an address, the
//! legs under way stop holding up the rest: the legs not yet begun are spread evenly over this moment
//! and the quarters to come. So every leg begins with at least a quarter of the round left, however
//! many legs there are, and a healthy round still sends no more queries than a pod.
//!
//! While a name does not resolve, most lookups are *short*: one query to each server, and nothing else as
//! long as none responds to it. Any response before the deadline, however bad, is that of a living
//! server, and the lookup goes on with all other legs.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join;
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt};
use health::diagnosis::Transport;
use health::dns::DnsClass;
use health::observation::{Failure, Family};
use health::resolvers::{Answer, Answers};
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_runtime::resolv_conf::ResolvConf;
use tokio::time::{Instant, sleep_until, timeout};

use super::exchange::{ProbeError, Response};
use super::right::Right;

/// A client that sends single queries. Tests replace the network by it.
pub(super) trait DnsClient: Sync {
    /// Returns the response, or its lack at the latest at `deadline`.
    ///
    /// # Errors
    /// The query cannot be sent for a reason on this host.
    fn query(
        &self,
        server: SocketAddr,
        transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> impl Future<Output = io::Result<Response>> + Send;
}

/// Returns the transport of queries by `/etc/resolv.conf`.
pub(super) fn transport(conf: &ResolvConf) -> Transport {
    if conf.over_tcp {
        Transport::Tcp
    } else {
        Transport::Udp
    }
}

/// The parameters that the lookups of a round share.
#[derive(Debug)]
pub(super) struct Lookup<'a, C> {
    pub(super) client: &'a C,
    /// The servers, at least one unless the lookup is to fail.
    pub(super) servers: &'a [SocketAddr],
    pub(super) transport: Transport,
    pub(super) families: &'a [RecordType],
    /// The longest that a lookup that has succeeded waits for the other responses that a pod would wait
    /// for.
    pub(super) patience: Duration,
    pub(super) expected: Expected<'a>,
    pub(super) start: Instant,
    pub(super) deadline: Instant,
}

/// The response that counts as a success.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected<'a> {
    /// Addresses, all of them right.
    Addresses(&'a Right<'a>),
    /// NXDOMAIN or NODATA.
    Denial,
}

impl Expected<'_> {
    /// Returns `true` if a response of this class is the expected one.
    fn is_met_by(self, class: DnsClass) -> bool {
        let denials = [DnsClass::NxDomain, DnsClass::NoData];
        matches!(self, Self::Denial) && denials.contains(&class)
    }
}

/// A success.
#[derive(Debug)]
pub(super) struct Found {
    /// The first query with the expected response.
    pub(super) query: Query,
    /// The addresses of both families, or of one if the lookup did not wait for the other.
    pub(super) addresses: Vec<IpAddr>,
    /// The family that the server of this query did not respond for, if the lookup waited for it.
    pub(super) silent: Option<Family>,
    /// All answers so far.
    pub(super) answers: Answers,
}

/// A failure.
#[derive(Debug)]
pub(super) struct NotFound {
    /// The worst error of all legs that were begun.
    pub(super) error: ProbeError,
    /// True if every leg was begun in time for its response, false for a short lookup without a response
    /// in its first quarter.
    pub(super) complete: bool,
}

#[derive(Clone, Copy, Debug)]
struct Leg<'a> {
    /// The place among the candidates.
    candidate: usize,
    name: &'a Name,
    /// The place among the servers.
    server: usize,
    address: SocketAddr,
    families: &'a [RecordType],
}

/// The quarters of a round are numbered 0 to 3.
const LAST_QUARTER: u8 = 3;

impl<C: DnsClient> Lookup<'_, C> {
    /// Queries `candidates`, which differ, until one has the expected response.
    ///
    /// With `first`, a query for one of them, the lookup is short.
    ///
    /// # Errors
    /// Returns the worst error of all legs if none succeeds, at the latest at the deadline.
    pub(super) async fn resolve(
        &self,
        candidates: &[Name],
        first: Option<&Query>,
    ) -> Result<Found, NotFound> {
        let others: Vec<_> = match first {
            Some(first) => self.families_but(first.query_type).collect(),
            None => Vec::new(),
        };
        let (mut legs, mut held) = match first {
            Some(first) => self.short_legs(candidates, first, &others),
            None => (self.legs(candidates), VecDeque::new()),
        };
        let mut complete = held.is_empty();
        let answers = Mutex::default();
        let mut under_way = FuturesUnordered::new();
        let mut worst = None;
        let mut quarter = 0;
        let mut begin = 1;
        loop {
            // A query sent now could not be answered. The first leg runs all the same: it has the error.
            if worst.is_some() && !legs.is_empty() && Instant::now() >= self.deadline {
                legs.clear();
                complete = false;
            }
            for leg in legs.drain(..begin.min(legs.len())) {
                let run = self.run(leg, &answers);
                under_way.push(async move { (leg, quarter, run.await) });
            }
            tokio::select! {
                // Responses first: one that arrives with the end of a quarter saves new legs.
                biased;
                Some((leg, begun_in, result)) = under_way.next() => {
                    let error = match result {
                        Ok((mut found, others)) => {
                            let completed = self.complete(&mut found, others);
                            // The other questions tell which pods do not get this far.
                            let others = async { while under_way.next().await.is_some() {} };
                            // Either family alone is a success.
                            drop(timeout(self.patience, join(completed, others)).await);
                            let mut all = answers.lock().unwrap_or_else(PoisonError::into_inner);
                            found.answers = std::mem::take(&mut *all);
                            return Ok(found);
                        }
                        Err(error) => error,
                    };
                    let now = Instant::now();
                    // At the deadline a mismatch is a stray datagram, which no server need have sent.
                    if is_response(&error) && !held.is_empty() && now < self.deadline {
                        // A server as slow as this one does not respond in time to legs begun later. If
                        // these counted, no lookup would ever be a full one.
                        complete = now < self.end_of(0);
                        legs.append(&mut held);
                    }
                    if is_denial(&error) {
                        postpone(&mut legs, leg.candidate);
                    }
                    worst = Some(or_worse(worst, error));
                    // A leg of an earlier quarter has been overtaken: another one runs in its place.
                    begin = usize::from(begun_in == quarter || under_way.is_empty());
                }
                () = sleep_until(self.end_of(quarter)), if quarter < LAST_QUARTER && !legs.is_empty() => {
                    quarter += 1;
                    begin = legs.len().div_ceil(usize::from(LAST_QUARTER + 1 - quarter));
                }
                else => {
                    let error = worst.unwrap_or_else(|| {
                        ProbeError::Internal(io::Error::other("resolv.conf names no server"))
                    });
                    return Err(NotFound { error, complete });
                }
            }
        }
    }

    /// Returns the legs that a short lookup begins with, and those that wait for a response to them.
    fn short_legs<'c>(
        &'c self,
        candidates: &'c [Name],
        first: &'c Query,
        others: &'c [RecordType],
    ) -> (VecDeque<Leg<'c>>, VecDeque<Leg<'c>>) {
        let mut held = self.legs(candidates);
        let family = std::slice::from_ref(&first.query_type);
        let mut legs = VecDeque::new();
        for leg in held.iter_mut().filter(|leg| *leg.name == first.name) {
            legs.push_back(Leg {
                families: family,
                ..*leg
            });
            leg.families = others;
        }
        held.retain(|leg| !leg.families.is_empty());
        (legs, held)
    }

    fn families_but(&self, family: RecordType) -> impl Iterator<Item = RecordType> {
        let all = self.families.iter().copied();
        all.filter(move |other| *other != family)
    }

    /// Returns every leg in a pod's order: all servers for a candidate before the next candidate.
    fn legs<'c>(&'c self, candidates: &'c [Name]) -> VecDeque<Leg<'c>> {
        let candidates = candidates.iter().enumerate();
        let legs = candidates.flat_map(|(candidate, name)| {
            let servers = self.servers.iter().copied().enumerate();
            servers.map(move |(server, address)| Leg {
                candidate,
                name,
                server,
                address,
                families: self.families,
            })
        });
        legs.collect()
    }

    /// Queries all families at once. Returns the first query with the expected response, and the
    /// results still to come.
    async fn run<'l>(
        &'l self,
        leg: Leg<'l>,
        answers: &'l Mutex<Answers>,
    ) -> Result<(Found, impl Stream<Item = Result<Found, ProbeError>> + Unpin), ProbeError> {
        let queries = leg.families.iter();
        let mut queries: FuturesUnordered<_> = queries
            .map(move |family| self.query(leg, *family, answers))
            .collect();
        let mut worst = None;
        while let Some(result) = queries.next().await {
            match result {
                Ok(found) => return Ok((found, queries)),
                Err(error) => worst = Some(or_worse(worst, error)),
            }
        }
        Err(worst.unwrap_or_else(|| ProbeError::Internal(io::Error::other("nothing to query"))))
    }

    async fn query(
        &self,
        leg: Leg<'_>,
        family: RecordType,
        answers: &Mutex<Answers>,
    ) -> Result<Found, ProbeError> {
        let query = Query::query(leg.name.clone(), family);
        let response = self
            .client
            .query(leg.address, self.transport, query.clone(), self.deadline);
        let (answer, addresses) = match response.await.map_err(ProbeError::Internal)? {
            Response::Other(answer) => (answer, Vec::new()),
            Response::Addresses { owner, addresses } => match self.expected {
                Expected::Addresses(right) if right.covers(&owner, &addresses) => {
                    (Answer::Right, addresses)
                }
                _ => (Answer::Stranger, addresses),
            },
        };
        answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .record(leg.candidate, leg.server, family_of(family), answer);
        match answer.class() {
            Some(class) if !self.expected.is_met_by(class) => {
                Err(ProbeError::Failed(Failure::new(class, leg.address)))
            }
            _ => Ok(Found {
                query,
                addresses,
                silent: None,
                answers: Answers::default(),
            }),
        }
    }

    /// Waits for the response to the query for the other family, and adds it to `found`.
    async fn complete(
        &self,
        found: &mut Found,
        mut others: impl Stream<Item = Result<Found, ProbeError>> + Unpin,
    ) {
        let [one, other] = Family::ALL;
        let other = if family_of(found.query.query_type) == one {
            other
        } else {
            one
        };
        while let Some(result) = others.next().await {
            match result {
                Ok(rest) => found.addresses.extend(rest.addresses),
                // NODATA, and any other response, spares a pod's resolver the wait.
                Err(ProbeError::Failed(failure)) if failure.class == DnsClass::Timeout => {
                    found.silent = Some(other);
                }
                Err(_) => {}
            }
        }
    }

    fn end_of(&self, quarter: u8) -> Instant {
        let quarters = u32::from(LAST_QUARTER + 1);
        self.start + self.deadline.duration_since(self.start) / quarters * u32::from(quarter + 1)
    }
}

fn family_of(query_type: RecordType) -> Family {
    match query_type {
        RecordType::AAAA => Family::Aaaa,
        _ => Family::A,
    }
}

fn or_worse(worst: Option<ProbeError>, error: ProbeError) -> ProbeError {
    match worst {
        Some(worst) => worst.or_worse(error),
        None => error,
    }
}

/// Returns `true` if the error is a response, of whatever kind, to one of the queries.
fn is_response(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Failed(failure)
        if ![DnsClass::Timeout, DnsClass::Unreachable].iter().any(|class| failure.class == *class))
}

/// Returns `true` if the server denies the candidate. A pod's resolver then goes on to the next one.
fn is_denial(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Failed(failure)
        if [DnsClass::NxDomain, DnsClass::NoData].iter().any(|class| failure.class == *class))
}

/// Moves the legs of `candidate` behind all others, since the remaining servers most likely deny it
/// too.
fn postpone(legs: &mut VecDeque<Leg<'_>>, candidate: usize) {
    // The sort is stable: within each half the order of a pod remains.
    legs.make_contiguous()
        .sort_by_key(|leg| leg.candidate == candidate);
}

#[cfg(test)]
mod tests;
