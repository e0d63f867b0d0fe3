//! glibc's `getaddrinfo`, as of 2.36 and later (`resolv/res_query.c`, `resolv/res_send.c`).
//!
//! It sends both queries to one server and takes whichever response comes. The next server is asked only if neither has a
//! usable response. An error other than NXDOMAIN, NODATA and SERVFAIL ends the search list.

use super::answers::{Answer, Answers, Lookup};
use super::work::{Step, Work, follow, worse};
use crate::observation::{Failure, Impairment};

pub(super) fn impairment(lookup: &Lookup<'_>, answers: &Answers) -> Option<Impairment> {
    let work = Work { lookup, answers };
    // The response code that its buffer still holds when no server has a usable response.
    let mut stale = None;
    follow(&work, 0..lookup.candidates, |candidate| {
        let orders = work.orders();
        let steps = orders.map(|servers| {
            let (step, waits) = step(&work, candidate, servers, &mut stale);
            let step = match step {
                // After the name itself the search list is tried, whatever became of it.
                Step::Last(failure) | Step::Abort(failure)
                    if lookup.as_it_is_first && candidate == 0 =>
                {
                    Step::Next(failure)
                }
                step => step,
            };
            (step, waits)
        });
        steps.collect()
    })
}

fn step(
    work: &Work<'_>,
    candidate: usize,
    servers: impl Iterator<Item = usize>,
    stale: &mut Option<Answer>,
) -> (Step, Option<Failure>) {
    let mut over_tcp = work.lookup.over_tcp;
    let mut waits = None;
    let mut heard = false;
    let mut worst: Option<Failure> = None;
    for server in servers {
        let Some(both) = work.of(candidate, server) else {
            return (Step::Unknown, waits);
        };
        let asked = both.into_iter().flatten();
        for answer in asked.clone() {
            worst = Some(worse(worst, work.failure(answer, server)));
        }
        // It has no time limit for a response over TCP.
        let endless = asked.clone().find(|answer| {
            *answer == Answer::Truncated { silent: true } || over_tcp && answer.is_silent()
        });
        if let Some(endless) = endless {
            return (Step::End(work.failure(endless, server)), waits);
        }
        if asked
            .clone()
            .any(|answer| answer == (Answer::Truncated { silent: false }))
        {
            // TCP from now on, with one attempt for each server.
            (over_tcp, heard) = (true, true);
            continue;
        }
        let silence = asked.clone().find(|answer| answer.is_silent());
        let received: Vec<_> = asked
            .filter(|answer| !answer.is_silent() && *answer != Answer::Unreachable)
            .collect();
        heard |= silence.is_some() || !received.is_empty();
        *stale = received.first().copied().or(*stale);
        if let Some(silence) = silence {
            waits = waits.or_else(|| Some(work.failure(silence, server)));
        }
        // Where one query gets no response, both are repeated one after the other, A first.
        if both[0].is_some_and(Answer::is_silent) {
            continue;
        }
        let usable = received.into_iter().filter(|answer| {
            let next = [Answer::ServFail, Answer::Refused, Answer::Lame];
            over_tcp || !next.contains(answer)
        });
        let usable: Vec<_> = usable.collect();
        if !usable.is_empty() {
            return (conclude(work, server, &usable), waits);
        }
    }
    let Some(worst) = worst else {
        return (Step::Unknown, waits);
    };
    let step = if !heard && !over_tcp {
        Step::Abort(worst)
    } else if *stale == Some(Answer::ServFail) {
        Step::Next(worst)
    } else {
        Step::Last(worst)
    };
    (step, waits)
}

/// Returns the result of the usable responses of one server, in the order in which they came.
fn conclude(work: &Work<'_>, server: usize, usable: &[Answer]) -> Step {
    let of = |answer| work.failure(answer, server);
    if let Some(found) = work.found(usable.iter().map(|answer| (server, *answer))) {
        return found;
    }
    if usable.contains(&Answer::Alias) {
        // Records are a success, of whatever type they are.
        return Step::End(of(Answer::Alias));
    }
    let denials = [Answer::NoData, Answer::Lame];
    let mut codes = usable.iter().filter(|answer| !denials.contains(answer));
    match codes.next() {
        None => Step::Next(of(Answer::NoData)),
        Some(Answer::NxDomain) => Step::Next(of(Answer::NxDomain)),
        Some(Answer::ServFail) if usable.first() == Some(&Answer::ServFail) => {
            Step::Next(of(Answer::ServFail))
        }
        Some(other) => Step::Last(of(*other)),
    }
}
