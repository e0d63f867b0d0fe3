//! Failures of DNS queries, and the servers that they came from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_class_is_read_as_it_is_written() {
        for class in FailureClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        assert_eq!("formerr".parse::<FailureClass>(), Err(UnknownClass));
    }
}
