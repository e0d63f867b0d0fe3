//! One name's way to an address: its candidates × the servers, one after the other as a pod goes,
//! and several at once as soon as answers are slow.
//!
//! A *leg* is one candidate asked of one server, for all families at once. Legs follow one another
//! as answers come. Whenever a quarter of the time has passed without an address, what is still
//! unanswered no longer holds up the rest: the legs not begun are shared out evenly among this
//! moment and the quarters to come. So every leg is begun with a quarter of the time left to
//! answer, however many there are.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_rules::health::diagnosis::Transport;
use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;
use tokio::time::{Instant, sleep_until};

use super::exchange::Unanswered;

/// Asks a server a question.
pub(super) trait Ask: Sync {
    /// The addresses in the answer, at least one; ends at the deadline.
    fn ask(
        &self,
        server: SocketAddr,
        transport: Transport,
        question: Query,
        deadline: Instant,
    ) -> impl Future<Output = Result<Vec<IpAddr>, Unanswered>> + Send;
}

/// How servers are asked, and what is a good answer.
#[derive(Debug)]
pub(super) struct Lookup<'a, A> {
    pub(super) ask: &'a A,
    /// Without any there is nothing to learn.
    pub(super) servers: &'a [SocketAddr],
    pub(super) transport: Transport,
    pub(super) families: &'a [RecordType],
    pub(super) wanted: Wanted<'a>,
    pub(super) start: Instant,
    pub(super) deadline: Instant,
}

/// What a good answer is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// Addresses, all of which are among these; without any, whatever they are.
    Addresses(&'a [IpAddr]),
    /// That there is none.
    Denial,
}

#[derive(Clone, Copy, Debug)]
struct Leg<'a> {
    candidate: &'a Name,
    server: SocketAddr,
}

/// The quarters of a round's time are 0 to 3.
const LAST_QUARTER: u8 = 3;

impl<A: Ask> Lookup<'_, A> {
    /// Succeeds as soon as a question about one of `candidates`, which differ, has a good answer of
    /// one server, and says which question. Fails with the worst that happened when none has any, at
    /// the latest at the deadline.
    pub(super) async fn resolve(&self, candidates: &[Name]) -> Result<Query, Unanswered> {
        let mut legs = self.legs(candidates);
        let mut under_way = FuturesUnordered::new();
        let mut worst = None;
        let mut quarter = 0;
        let mut begin = 1;
        loop {
            for leg in legs.drain(..begin.min(legs.len())) {
                under_way.push(async move { (leg, quarter, self.go(leg).await) });
            }
            tokio::select! {
                biased;
                Some((leg, begun_in, result)) = under_way.next() => {
                    let unanswered = match result {
                        Ok(question) => return Ok(question),
                        Err(unanswered) => unanswered,
                    };
                    if denies(&unanswered) {
                        postpone(&mut legs, leg.candidate);
                    }
                    worst = Some(or_worse(worst, unanswered));
                    // A leg of an earlier quarter has been overtaken: another goes on in its place.
                    begin = usize::from(begun_in == quarter || under_way.is_empty());
                }
                () = sleep_until(self.end_of(quarter)), if quarter < LAST_QUARTER && !legs.is_empty() => {
                    quarter += 1;
                    begin = legs.len().div_ceil(usize::from(LAST_QUARTER + 1 - quarter));
                }
                else => {
                    let nothing = || Unanswered::Internal(io::Error::other("resolv.conf names no server"));
                    return Err(worst.unwrap_or_else(nothing));
                }
            }
        }
    }

    /// Every leg, in the order of a pod: all servers for a candidate before the next candidate.
    fn legs<'c>(&self, candidates: &'c [Name]) -> VecDeque<Leg<'c>> {
        let legs = candidates.iter().flat_map(|candidate| {
            let leg = move |&server| Leg { candidate, server };
            self.servers.iter().map(leg)
        });
        legs.collect()
    }

    /// Succeeds as soon as one family has a good answer.
    async fn go(&self, leg: Leg<'_>) -> Result<Query, Unanswered> {
        let ask = |&family| self.question(leg.server, Query::query(leg.candidate.clone(), family));
        let mut asked: FuturesUnordered<_> = self.families.iter().map(ask).collect();
        let mut worst = None;
        while let Some(result) = asked.next().await {
            match result {
                Ok(question) => return Ok(question),
                Err(unanswered) => worst = Some(or_worse(worst, unanswered)),
            }
        }
        Err(worst.unwrap_or_else(|| Unanswered::Internal(io::Error::other("nothing to ask"))))
    }

    async fn question(&self, server: SocketAddr, question: Query) -> Result<Query, Unanswered> {
        let ask = self
            .ask
            .ask(server, self.transport, question.clone(), self.deadline);
        let mismatch = || Unanswered::Failed(Failure::new(FailureClass::Mismatch, server));
        match (ask.await, self.wanted) {
            (Ok(_), Wanted::Denial) => Err(mismatch()),
            (Ok(addresses), Wanted::Addresses(expected)) => {
                let right = |address| expected.is_empty() || expected.contains(address);
                if addresses.iter().all(right) {
                    Ok(question)
                } else {
                    Err(mismatch())
                }
            }
            (Err(unanswered), Wanted::Denial) if denies(&unanswered) => Ok(question),
            (Err(unanswered), _) => Err(unanswered),
        }
    }

    fn end_of(&self, quarter: u8) -> Instant {
        let quarters = u32::from(LAST_QUARTER + 1);
        self.start + self.deadline.duration_since(self.start) / quarters * u32::from(quarter + 1)
    }
}

fn or_worse(worst: Option<Unanswered>, unanswered: Unanswered) -> Unanswered {
    match worst {
        Some(worst) => worst.or_worse(unanswered),
        None => unanswered,
    }
}

/// Whether the server says that the candidate has no address. A pod then asks for the next one.
fn denies(unanswered: &Unanswered) -> bool {
    matches!(unanswered, Unanswered::Failed(failure)
        if matches!(failure.class, FailureClass::NxDomain | FailureClass::NoData))
}

/// Asks the remaining servers for `candidate` only after everything else.
fn postpone(legs: &mut VecDeque<Leg<'_>>, candidate: &Name) {
    legs.make_contiguous()
        .sort_by_key(|leg| leg.candidate == candidate);
}

#[cfg(test)]
mod tests;
