//! Observations of single probe rounds.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::diagnosis::Diagnosis;
use super::dns::DnsClass;
use super::failure::{FailureClass, Server};
use super::resolver::Resolver;

/// A failure of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The class of the failure.
    pub class: FailureClass,
    /// The server that failed; `None` if there is none to ask.
    pub server: Option<SocketAddr>,
    /// The location of the fault, if direct checks found it.
    pub diagnosis: Option<Diagnosis>,
    /// The resolver whose pods fail, if others do not and its failure counts.
    pub resolver: Option<Resolver>,
}

impl Failure {
    /// Creates a failure without a diagnosis.
    pub fn new(class: impl Into<FailureClass>, server: SocketAddr) -> Self {
        Self {
            server: Some(server),
            ..Self::without_server(class)
        }
    }

    /// Creates the failure of a round that has no server to ask.
    pub fn without_server(class: impl Into<FailureClass>) -> Self {
        Self {
            class: class.into(),
            server: None,
            diagnosis: None,
            resolver: None,
        }
    }

    /// Returns the worse of two failures, or `self` if they are equally bad.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        if other.class > self.class {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for Failure {
    /// Writes `timeout from 169.254.20.10 (node cache)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.class)?;
        if let Some(server) = self.server {
            write!(f, " from {}", Server(server))?;
        }
        if let Some(resolver) = self.resolver {
            write!(f, " for pods with {resolver}")?;
        }
        match self.diagnosis {
            Some(diagnosis) => write!(f, " ({diagnosis})"),
            None => Ok(()),
        }
    }
}

/// An address family that queries are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::A, Self::Aaaa];

    /// Returns the record type of its addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Family {
    type Err = UnknownFamily;

    /// Parses the output of [`Self::as_str`].
    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        let mut all = Self::ALL.into_iter();
        all.find(|family| family.as_str() == text)
            .ok_or(UnknownFamily)
    }
}

/// The error for a text that names no address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFamily;

/// How a lookup goes with a resolver where another one may get right addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symptom {
    /// It gets them after seconds, for a response that does not come.
    Waits,
    /// Servers disagree, and it fails with the words of some of them.
    FailsAtTimes,
    /// It fails, or gets addresses that are not right.
    Fails,
}

impl Symptom {
    /// Every symptom, mildest first.
    pub const ALL: [Self; 3] = [Self::Waits, Self::FailsAtTimes, Self::Fails];

    /// Returns the name, as metrics and vote documents have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::FailsAtTimes => "fails_at_times",
            Self::Fails => "fails",
        }
    }
}

/// The trouble with a lookup by a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Impairment {
    /// How it goes.
    pub symptom: Symptom,
    /// The answer that it comes from.
    pub failure: Failure,
}

impl Impairment {
    /// Returns the worse of two, or `self` if they are equally bad.
    #[must_use]
    fn or_worse(self, other: Self) -> Self {
        let [own, others] = [self, other].map(|it| (it.symptom, it.failure.class));
        if others > own { other } else { self }
    }
}

impl fmt::Display for Impairment {
    /// Writes the trouble of pods, such as `fail (refused from 10.96.0.10)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.symptom {
            Symptom::Waits => "wait",
            Symptom::FailsAtTimes => "fail at times",
            Symptom::Fails => "fail",
        })?;
        if self.failure.class == DnsClass::Mismatch {
            f.write_str(" by a stranger's address")?;
        }
        write!(f, " ({})", self.failure)
    }
}

/// The trouble with a lookup, by resolver; nothing where it gets right addresses without a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pods([Option<Impairment>; Resolver::ALL.len()]);

impl From<[Option<Impairment>; Resolver::ALL.len()]> for Pods {
    /// Creates the trouble of each resolver, in the order of [`Resolver::ALL`].
    fn from(impairments: [Option<Impairment>; Resolver::ALL.len()]) -> Self {
        Self(impairments)
    }
}

impl Pods {
    /// Returns the impairment of a resolver.
    pub fn get(&self, resolver: Resolver) -> Option<Impairment> {
        self.0[resolver as usize]
    }

    /// Replaces the impairment of a resolver.
    pub fn set(&mut self, resolver: Resolver, impairment: Option<Impairment>) {
        self.0[resolver as usize] = impairment;
    }

    /// Returns the impairments.
    pub fn iter(&self) -> impl Iterator<Item = (Resolver, Impairment)> {
        let all = Resolver::ALL.into_iter().zip(self.0);
        all.filter_map(|(resolver, impairment)| Some((resolver, impairment?)))
    }

    /// Combines the trouble with two names that pods need both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut both = self;
        for (resolver, impairment) in other.iter() {
            let worse = both.get(resolver).map(|own| own.or_worse(impairment));
            both.set(resolver, worse.or(Some(impairment)));
        }
        both
    }

    fn also_in(mut self, other: &Self) -> Self {
        for (resolver, own) in self.0.iter_mut().enumerate() {
            let theirs = other.0[resolver].map(|other| other.symptom);
            *own = own.filter(|own| Some(own.symptom) == theirs);
        }
        self
    }
}

/// The trouble that shows though a round succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partial {
    /// The family whose DNS queries get no response at all.
    pub silent: Option<Family>,
    /// The result of lookups in pods.
    pub pods: Pods,
}

impl Partial {
    /// Returns `true` if nothing is wrong.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the trouble that is in `other`, too.
    #[must_use]
    pub fn also_in(self, other: &Self) -> Self {
        Self {
            silent: self.silent.filter(|silent| other.silent == Some(*silent)),
            pods: self.pods.also_in(&other.pods),
        }
    }

    /// Returns the troubles, each as a sentence without its place, such as `AAAA queries get no response`.
    pub fn sentences(&self) -> Vec<String> {
        let silent = self.silent.iter();
        let mut sentences: Vec<_> = silent
            .map(|family| format!("{family} queries get no response"))
            .collect();
        let mut told: Vec<(Impairment, Vec<String>)> = Vec::new();
        for (resolver, impairment) in self.pods.iter() {
            match told.iter_mut().find(|(other, _)| *other == impairment) {
                Some((_, resolvers)) => resolvers.push(resolver.to_string()),
                None => told.push((impairment, vec![resolver.to_string()])),
            }
        }
        sentences.extend(told.into_iter().map(|(impairment, resolvers)| {
            format!("pods with {} {impairment}", resolvers.join(" and "))
        }));
        sentences
    }
}

/// The observation of one probe round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The round succeeded: for DNS, every name has an address, by at least one server.
    Success,
    /// As [`Self::Success`], but not for all pods, or not without a wait.
    Partial(Partial),
    /// The round failed; this is its worst failure.
    Failed(Failure),
    /// Nothing could be asked, so nothing was observed.
    Internal,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Location;
    use crate::dns::DnsClass;

    fn failure(class: DnsClass, server: &str) -> Failure {
        Failure::new(class, server.parse().unwrap())
    }

    #[test]
    fn the_worse_failure_wins_and_the_first_of_equals() {
        let nodata = failure(DnsClass::NoData, "10.0.0.1:53");
        let timeout = failure(DnsClass::Timeout, "10.0.0.2:53");
        let later_timeout = failure(DnsClass::Timeout, "10.0.0.3:53");
        assert_eq!(nodata.or_worse(timeout), timeout);
        assert_eq!(timeout.or_worse(nodata), timeout);
        assert_eq!(timeout.or_worse(later_timeout), timeout);
    }

    #[test]
    fn a_failure_names_its_server_and_an_unusual_port() {
        let cases = [
            ("10.96.0.10:53", "servfail from 10.96.0.10"),
            ("10.96.0.10:5353", "servfail from 10.96.0.10:5353"),
            ("[fd00::a]:53", "servfail from fd00::a"),
            ("[fd00::a]:5353", "servfail from [fd00::a]:5353"),
            ("[fe80::1%7]:53", "servfail from [fe80::1%7]:53"),
        ];
        for (server, shown) in cases {
            assert_eq!(failure(DnsClass::ServFail, server).to_string(), shown);
            let shown = shown.strip_prefix("servfail from ").unwrap();
            assert_eq!(shown.parse(), Ok(Server(server.parse().unwrap())));
        }
    }

    #[test]
    fn a_failure_shows_its_diagnosis() {
        let diagnosis = Some(Diagnosis {
            location: Location::NodeCache,
            only: None,
        });
        let located = Failure {
            diagnosis,
            ..failure(DnsClass::Timeout, "169.254.20.10:53")
        };
        assert_eq!(
            located.to_string(),
            "timeout from 169.254.20.10 (node cache)"
        );
    }

    #[test]
    fn a_family_is_read_as_it_is_written() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        assert_eq!("MX".parse::<Family>(), Err(UnknownFamily));
    }
}
