//! musl's `getaddrinfo`, as of 1.2.4 and later (`src/network/lookup_name.c`, `src/network/res_msend.c`).
//!
//! It sends both queries to all servers at once, takes the first NOERROR or NXDOMAIN to each, and waits for
//! one where there is any other response. Nothing but NXDOMAIN leads to the next candidate, and a name with
//! enough dots is not searched at all.

use super::answers::{Answer, Answers, Lookup};
use super::work::{Step, Work, follow};
use crate::observation::{Failure, Family, Impairment};

pub(super) fn impairment(lookup: &Lookup<'_>, answers: &Answers) -> Option<Impairment> {
    let work = Work { lookup, answers };
    let candidates = if lookup.as_it_is_first {
        1
    } else {
        lookup.candidates
    };
    follow(&work, 0..candidates, |candidate| {
        let Some(a) = taken(&work, candidate, Family::A) else {
            return vec![(Step::Unknown, None)];
        };
        let mut steps = Vec::new();
        let mut waits = None;
        for a in a {
            match a.taken {
                Answer::NxDomain => {
                    // It waits for the other response all the same.
                    let aaaa = taken(&work, candidate, Family::Aaaa).filter(|_| !lookup.no_aaaa);
                    let aaaa = aaaa.into_iter().flatten();
                    let unanswered = aaaa.filter(|aaaa| !is_taken(aaaa.taken));
                    let unanswered = unanswered.map(|aaaa| work.failure(aaaa.taken, aaaa.server));
                    waits = waits.or_else(|| unanswered.last());
                    steps.push(Step::Next(work.failure(a.taken, a.server)));
                }
                answer if !is_taken(answer) => {
                    steps.push(Step::End(work.failure(answer, a.server)));
                }
                _ if lookup.no_aaaa => steps.push(conclude(&work, a, a)),
                _ => match taken(&work, candidate, Family::Aaaa) {
                    None => steps.push(Step::Unknown),
                    Some(aaaa) => steps.extend(aaaa.map(|aaaa| conclude(&work, a, aaaa))),
                },
            }
        }
        steps.into_iter().map(|step| (step, waits)).collect()
    })
}

/// A response, and the server that it came from.
#[derive(Clone, Copy)]
struct Taken {
    server: usize,
    taken: Answer,
}

/// Returns the responses that may come first, or the reason why none is taken; `None` if that is not known.
fn taken(work: &Work<'_>, candidate: usize, family: Family) -> Option<impl Iterator<Item = Taken>> {
    let servers = 0..work.lookup.servers.len();
    let known = servers.filter_map(|server| {
        let taken = work.answers.get(candidate, server, family)?;
        Some(Taken { server, taken })
    });
    let mut all: Vec<_> = known.collect();
    if all.iter().any(|answer| is_taken(answer.taken)) {
        all.retain(|answer| is_taken(answer.taken));
    } else if all.len() < work.lookup.servers.len() {
        return None;
    } else {
        // All of them are waited for, and the worst tells why.
        all.sort_by_key(|answer| std::cmp::Reverse(answer.taken.class()));
        all.truncate(1);
    }
    Some(all.into_iter())
}

fn is_taken(answer: Answer) -> bool {
    let noerror = [Answer::Alias, Answer::NoData, Answer::Lame];
    answer.has_address() || answer == Answer::NxDomain || noerror.contains(&answer)
}

/// Returns the result of the responses for both families, where that for A is NOERROR.
fn conclude(work: &Work<'_>, a: Taken, aaaa: Taken) -> Step {
    let failure: Failure = work.failure(aaaa.taken, aaaa.server);
    if aaaa.taken == Answer::NxDomain {
        return Step::Next(failure);
    }
    if !is_taken(aaaa.taken) {
        return Step::End(failure);
    }
    let both = [a, aaaa].map(|answer| (answer.server, answer.taken));
    let found = work.found(both.into_iter());
    found.unwrap_or_else(|| Step::End(work.failure(a.taken, a.server)))
}
