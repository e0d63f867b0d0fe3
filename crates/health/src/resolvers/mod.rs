//! The effect of the answers to one lookup on pods, by the resolver of their libraries.
//!
//! glibc, musl and Go send the same queries and draw other conclusions: one goes on where another gives up.
//! Each has a file that follows it through the answers that a probe round got anyway. A server that was not
//! asked counts in the pods' favour; a name that was not asked for, after an address was found, as denied.

mod answers;
mod glibc;
mod go;
mod musl;
mod work;

pub use self::answers::{Answer, Answers, Lookup};
use super::observation::{Failure, Pods, Symptom};
use super::resolver::Resolver;

/// Returns the view that pods have of the answers to a lookup.
pub fn pods(lookup: &Lookup<'_>, answers: &Answers) -> Pods {
    Pods::from([
        glibc::impairment(lookup, answers),
        musl::impairment(lookup, answers),
        go::impairment(lookup, answers),
    ])
}

/// The resolvers whose failure fails a round in which an address was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judge {
    /// Each of these; none if only the failure of all resolvers does.
    pub each: Vec<Resolver>,
}

impl Judge {
    /// Returns `true` if the failure of single resolvers counts.
    pub fn names_resolvers(&self) -> bool {
        !self.each.is_empty()
    }

    /// Returns the failure of the round, if the trouble of pods is one.
    pub fn failure(&self, pods: &Pods) -> Option<Failure> {
        if !self.names_resolvers() {
            let all = Resolver::ALL.into_iter();
            let all: Option<Vec<_>> = all.map(|resolver| failure_of(pods, resolver)).collect();
            return all?.into_iter().reduce(Failure::or_worse);
        }
        let named = self.each.iter().filter_map(|&resolver| {
            Some(Failure {
                resolver: Some(resolver),
                ..failure_of(pods, resolver)?
            })
        });
        named.reduce(Failure::or_worse)
    }
}

/// Returns the failure of a resolver's lookup, if that fails.
fn failure_of(pods: &Pods, resolver: Resolver) -> Option<Failure> {
    let impairment = pods.get(resolver)?;
    (impairment.symptom == Symptom::Fails).then_some(impairment.failure)
}

#[cfg(test)]
mod tests;
