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
use std::net::SocketAddr;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use rules::observation::FailureClass;
use tokio::time::{Instant, sleep_until};

use super::exchange::Unanswered;

/// Asks a server a question.
pub(super) trait Ask: Sync {
    /// Succeeds when the answer has an address; ends at the deadline.
    fn ask(
        &self,
        server: SocketAddr,
        question: Query,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), Unanswered>> + Send;
}

/// What all names of a round have in common.
#[derive(Debug)]
pub(super) struct Lookup<'a, A> {
    pub(super) ask: &'a A,
    /// Without any there is nothing to learn.
    pub(super) servers: &'a [SocketAddr],
    pub(super) families: &'a [RecordType],
    pub(super) start: Instant,
    pub(super) deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Leg<'a> {
    candidate: &'a Name,
    server: SocketAddr,
}

/// The quarters of a round's time are 0 to 3.
const LAST_QUARTER: u8 = 3;

impl<A: Ask> Lookup<'_, A> {
    /// Succeeds as soon as one of `candidates`, which differ, has an address at one server. Fails
    /// with the worst that happened when none has any, at the latest at the deadline.
    pub(super) async fn resolve(&self, candidates: &[Name]) -> Result<(), Unanswered> {
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
                    let Err(unanswered) = result else {
                        return Ok(());
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

    /// Succeeds as soon as one family has an address.
    async fn go(&self, leg: Leg<'_>) -> Result<(), Unanswered> {
        let ask = |&family| {
            let question = Query::query(leg.candidate.clone(), family);
            self.ask.ask(leg.server, question, self.deadline)
        };
        let mut asked: FuturesUnordered<_> = self.families.iter().map(ask).collect();
        let mut worst = None;
        while let Some(result) = asked.next().await {
            match result {
                Ok(()) => return Ok(()),
                Err(unanswered) => worst = Some(or_worse(worst, unanswered)),
            }
        }
        worst.map_or(Ok(()), Err)
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
