//! Go's own resolver (`net/dnsclient_unix.go`), as of 1.26.
//!
//! It asks for each family by itself, server by server, until one has an address or denies the name, and
//! tries every candidate until one has an address of either family.

use super::answers::{Answer, Answers, Lookup};
use super::work::{Step, Work, follow};
use crate::dns::DnsClass;
use crate::observation::{Failure, Family, Impairment};

pub(super) fn impairment(lookup: &Lookup<'_>, answers: &Answers) -> Option<Impairment> {
    let work = Work { lookup, answers };
    follow(&work, 0..lookup.candidates, |candidate| {
        let orders: Vec<Vec<_>> = work.orders().map(Iterator::collect).collect();
        let mut steps = Vec::new();
        for a in &orders {
            // With `rotate`, each family begins at another server.
            for aaaa in &orders {
                let mut waits = None;
                let a = family(&work, candidate, Family::A, a, &mut waits);
                let aaaa = if lookup.no_aaaa {
                    Some((a.map_or(0, |(server, _)| server), Answer::NoData))
                } else {
                    family(&work, candidate, Family::Aaaa, aaaa, &mut waits)
                };
                let found = work.found([a, aaaa].into_iter().flatten());
                let step = found.unwrap_or_else(|| match (a, aaaa) {
                    (Some(a), Some(aaaa)) => {
                        let [a, aaaa] =
                            [a, aaaa].map(|(server, answer)| work.failure(answer, server));
                        Step::Next(a.or_worse(aaaa))
                    }
                    _ => Step::Unknown,
                });
                steps.push((step, waits));
            }
        }
        steps
    })
}

/// Returns the last answer for a family and its server, or `None` if that is not known.
fn family(
    work: &Work<'_>,
    candidate: usize,
    family: Family,
    servers: &[usize],
    waits: &mut Option<Failure>,
) -> Option<(usize, Answer)> {
    let mut last = None;
    for server in servers.iter().copied() {
        let answer = work.answers.get(candidate, server, family)?;
        last = Some((server, answer));
        if [Some(DnsClass::NxDomain), None].contains(&answer.class())
            || answer.has_address()
            || matches!(answer, Answer::NoData | Answer::Alias)
        {
            break;
        }
        if answer.is_silent() || answer == (Answer::Truncated { silent: true }) {
            *waits = waits.or(Some(work.failure(answer, server)));
        }
    }
    last
}
