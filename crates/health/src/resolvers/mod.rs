//! What pods see of the answers to one lookup, by the resolver of their libraries.
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

    /// Returns the failure of the round, if what pods see is one.
    pub fn failure(&self, pods: &Pods) -> Option<Failure> {
        let fails = |resolver: &Resolver| {
            let impairment = pods.get(*resolver)?;
            (impairment.symptom == Symptom::Fails).then_some((*resolver, impairment.failure))
        };
        let worst = |failures: Vec<Failure>| failures.into_iter().reduce(Failure::or_worse);
        if !self.names_resolvers() {
            let all: Option<Vec<_>> = Resolver::ALL.iter().map(fails).collect();
            return worst(all?.into_iter().map(|(_, failure)| failure).collect());
        }
        let failures = self.each.iter().filter_map(fails);
        let named = failures.map(|(resolver, failure)| Failure {
            resolver: Some(resolver),
            ..failure
        });
        worst(named.collect())
    }
}

#[cfg(test)]
mod tests;
