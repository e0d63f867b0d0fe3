//! What one probe round saw of the cluster's DNS.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::fault::Fault;

/// The port of DNS (RFC 1035, section 4.2); left out where a server is shown.
const DNS_PORT: u16 = 53;

/// How a DNS question failed, ordered from the mildest to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// The name exists, but has no address.
    NoData,
    /// The name does not exist.
    NxDomain,
    /// What came back belongs to another question, or is no DNS message.
    Mismatch,
    /// The answer does not fit a datagram, and none came over TCP.
    Truncated,
    /// The server will not answer: REFUSED, NOTIMP, FORMERR and their like.
    Refused,
    /// The server cannot answer: SERVFAIL.
    ServFail,
    /// Nothing listens there, or there is no way to it.
    Unreachable,
    /// No answer in time.
    Timeout,
}

impl FailureClass {
    /// Every class, the mildest first.
    pub const ALL: [Self; 8] = [
        Self::NoData,
        Self::NxDomain,
        Self::Mismatch,
        Self::Truncated,
        Self::Refused,
        Self::ServFail,
        Self::Unreachable,
        Self::Timeout,
    ];

    /// The class in one lower-case word, as messages and metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoData => "nodata",
            Self::NxDomain => "nxdomain",
            Self::Mismatch => "mismatch",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::ServFail => "servfail",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FailureClass {
    type Err = UnknownClass;

    /// Reads what [`Self::as_str`] gives.
    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        let mut all = Self::ALL.into_iter();
        all.find(|class| class.as_str() == text).ok_or(UnknownClass)
    }
}

/// The text names no class that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownClass;

/// A server as it is shown: with its port unless that is the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server(pub SocketAddr);

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address with a scope (`fe80::1%2`) is shown whole: the scope would be lost.
        match self.0 {
            SocketAddr::V6(server) if server.scope_id() != 0 => server.fmt(f),
            server if server.port() == DNS_PORT => server.ip().fmt(f),
            server => server.fmt(f),
        }
    }
}

impl FromStr for Server {
    type Err = std::net::AddrParseError;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<IpAddr>() {
            Ok(ip) => Ok(Self(SocketAddr::new(ip, DNS_PORT))),
            Err(_) => text.parse().map(Self),
        }
    }
}

/// A failure, with the server that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// How the question failed.
    pub class: FailureClass,
    /// The server that was asked.
    pub server: SocketAddr,
    /// Where the fault is, if anything tells.
    pub fault: Option<Fault>,
}

impl Failure {
    /// A failure of which nothing tells where the fault is.
    pub fn new(class: FailureClass, server: SocketAddr) -> Self {
        Self {
            class,
            server,
            fault: None,
        }
    }

    /// The worse of two failures; `self` when they are equally bad.
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
    /// `timeout from 169.254.20.10 (node cache)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.class, Server(self.server))?;
        match self.fault {
            Some(fault) => write!(f, " ({fault})"),
            None => Ok(()),
        }
    }
}

/// What one probe round saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Every name got an address from at least one server.
    Resolved,
    /// Some name got none; this is the worst failure on the way.
    Failed(Failure),
    /// The round could not even ask: no observation at all.
    Internal,
}

impl Observation {
    /// The observation in one lower-case word, as metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Failed(failure) => failure.class.as_str(),
            Self::Internal => "internal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Place;

    fn failure(class: FailureClass, server: &str) -> Failure {
        Failure::new(class, server.parse().unwrap())
    }

    #[test]
    fn classes_are_ordered_by_severity_as_the_design_lists_them() {
        let worst_first: Vec<_> = FailureClass::ALL
            .iter()
            .rev()
            .map(|class| class.as_str())
            .collect();
        assert_eq!(
            worst_first,
            [
                "timeout",
                "unreachable",
                "servfail",
                "refused",
                "truncated",
                "mismatch",
                "nxdomain",
                "nodata"
            ]
        );
        assert!(FailureClass::ALL.is_sorted());
    }

    #[test]
    fn the_worse_failure_wins_and_the_first_of_equals() {
        let nodata = failure(FailureClass::NoData, "10.0.0.1:53");
        let timeout = failure(FailureClass::Timeout, "10.0.0.2:53");
        let later_timeout = failure(FailureClass::Timeout, "10.0.0.3:53");
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
            assert_eq!(failure(FailureClass::ServFail, server).to_string(), shown);
            let shown = shown.strip_prefix("servfail from ").unwrap();
            assert_eq!(shown.parse(), Ok(Server(server.parse().unwrap())));
        }
    }

    #[test]
    fn a_failure_says_where_the_fault_is_when_something_tells() {
        let fault = Some(Fault {
            place: Place::NodeCache,
            only: None,
        });
        let located = Failure {
            fault,
            ..failure(FailureClass::Timeout, "169.254.20.10:53")
        };
        assert_eq!(
            located.to_string(),
            "timeout from 169.254.20.10 (node cache)"
        );
    }

    #[test]
    fn a_class_is_read_as_it_is_written() {
        for class in FailureClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        assert_eq!("formerr".parse::<FailureClass>(), Err(UnknownClass));
    }

    #[test]
    fn an_observation_is_one_word() {
        let refused = Observation::Failed(failure(FailureClass::Refused, "10.0.0.1:53"));
        assert_eq!(Observation::Resolved.as_str(), "resolved");
        assert_eq!(refused.as_str(), "refused");
        assert_eq!(Observation::Internal.as_str(), "internal");
    }
}
