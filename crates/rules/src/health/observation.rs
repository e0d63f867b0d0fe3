//! Observations of single probe rounds.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::diagnosis::Diagnosis;
use super::failure::{FailureClass, Server};

/// A failure of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The class of the failure.
    pub class: FailureClass,
    /// The server that failed; `None` if there is none to ask.
    pub server: Option<SocketAddr>,
    /// The location of the fault, if direct checks found it.
    pub diagnosis: Option<Diagnosis>,
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

/// The observation of one probe round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The round succeeded: for DNS, every name has an address, by at least one server.
    Success,
    /// As [`Self::Success`], but for some rounds the DNS queries for this family have had no response at
    /// all. A resolver that queries both families, such as glibc's, then waits until it times out.
    Partial(Family),
    /// The round failed; this is its worst failure.
    Failed(Failure),
    /// Nothing could be asked, so nothing was observed.
    Internal,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::diagnosis::Location;
    use crate::health::dns::DnsClass;

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
