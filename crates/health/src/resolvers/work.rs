//! How any resolver goes through the candidates of a name.

use super::answers::{Answer, Answers, Lookup};
use crate::dns::DnsClass;
use crate::observation::{Failure, Family, Impairment, Symptom};

/// The end of a resolver's work on one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Right addresses.
    Found,
    /// Right addresses of one family, and others of the other.
    Mixed(Failure),
    /// Addresses that are not right.
    Wrong(Failure),
    /// No address: the next candidate is tried.
    Next(Failure),
    /// No address: none but the name as it is is tried any more.
    Last(Failure),
    /// No server: the lookup ends.
    Abort(Failure),
    /// Records, but no address: the lookup ends.
    End(Failure),
    /// It depends on an answer that is not known.
    Unknown,
}

/// A resolver's work on one candidate that it has just begun, by the rules of `Lookup`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    pub(super) lookup: &'a Lookup<'a>,
    pub(super) answers: &'a Answers,
}

impl Work<'_> {
    /// Returns the answers of one server for both families; none for a family that is not asked.
    pub(super) fn of(&self, candidate: usize, server: usize) -> Option<[Option<Answer>; 2]> {
        let a = self.answers.get(candidate, server, Family::A)?;
        if self.lookup.no_aaaa {
            return Some([Some(a), None]);
        }
        let aaaa = self.answers.get(candidate, server, Family::Aaaa)?;
        Some([Some(a), Some(aaaa)])
    }

    pub(super) fn failure(&self, answer: Answer, server: usize) -> Failure {
        // Right addresses fail only beside those of a stranger.
        let class = answer.class().unwrap_or(DnsClass::Mismatch);
        match self.lookup.servers.get(server) {
            Some(server) => Failure::new(class, *server),
            None => Failure::without_server(class),
        }
    }

    /// Returns the orders in which servers may be asked.
    pub(super) fn orders(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let count = self.lookup.servers.len();
        let starts = if self.lookup.rotate {
            count
        } else {
            count.min(1)
        };
        (0..starts).map(move |start| (0..count).map(move |place| (start + place) % count))
    }

    /// Returns the result of the addresses in `answers`, if there are any.
    pub(super) fn found(&self, answers: impl Iterator<Item = (usize, Answer)>) -> Option<Step> {
        let addresses: Vec<_> = answers.filter(|(_, answer)| answer.has_address()).collect();
        let wrong = addresses
            .iter()
            .find(|(_, answer)| *answer != Answer::Right);
        let right = addresses.iter().any(|(_, answer)| *answer == Answer::Right);
        match wrong.map(|(server, answer)| self.failure(*answer, *server)) {
            Some(wrong) if right => Some(Step::Mixed(wrong)),
            Some(wrong) => Some(Step::Wrong(wrong)),
            None => right.then_some(Step::Found),
        }
    }
}

/// Returns the worse of two failures.
pub(super) fn worse(one: Option<Failure>, other: Failure) -> Failure {
    one.map_or(other, |one| one.or_worse(other))
}

/// Follows a resolver through the candidates in `order`. `step` returns the possible ends of one, in each order
/// of servers or of responses, and whether the resolver waits for a response that does not come.
pub(super) fn follow(
    work: &Work<'_>,
    order: impl Iterator<Item = usize>,
    mut step: impl FnMut(usize) -> Vec<(Step, Option<Failure>)>,
) -> Option<Impairment> {
    let Work { lookup, answers } = work;
    let mut good = false;
    let mut bad: Option<Failure> = None;
    let mut waits: Option<Failure> = None;
    // The failures of all candidates so far, while nothing else has been found.
    let mut denied: Option<Failure> = None;
    let mut skipping = false;
    let mut open = true;
    for candidate in order {
        // A name that was not asked for most likely does not exist.
        if skipping && candidate != lookup.as_it_is() || !answers.has(candidate) {
            continue;
        }
        let (mut next, mut last) = (false, false);
        for (step, waiting) in step(candidate) {
            waits = waits.or(waiting);
            match step {
                Step::Found | Step::Unknown => good = true,
                Step::Mixed(failure) => {
                    good = true;
                    bad = Some(worse(bad, failure));
                }
                Step::Wrong(failure) | Step::Abort(failure) | Step::End(failure) => {
                    bad = Some(worse(bad, failure));
                }
                Step::Next(failure) => {
                    denied = Some(worse(denied, failure));
                    next = true;
                }
                Step::Last(failure) => {
                    denied = Some(worse(denied, failure));
                    last = true;
                }
            }
        }
        open = next || last;
        skipping = skipping || !next;
        if !open {
            break;
        }
    }
    if open {
        // No candidate is left.
        bad = denied.map(|failure| worse(bad, failure)).or(bad);
    }
    match (bad, good) {
        (Some(failure), false) => Some(Impairment {
            symptom: Symptom::Fails,
            failure,
        }),
        (Some(failure), true) => Some(Impairment {
            symptom: Symptom::FailsAtTimes,
            failure,
        }),
        (None, _) => waits.map(|failure| Impairment {
            symptom: Symptom::Waits,
            failure,
        }),
    }
}
