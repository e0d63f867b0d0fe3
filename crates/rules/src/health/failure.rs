//! Failure classes of DNS queries, and the servers that failed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of DNS (RFC 1035, section 4.2), omitted from displayed servers.
const DNS_PORT: u16 = 53;

/// The class of a failed DNS query. Classes are ordered from the mildest to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    // The derived order is that of the variants; `Failure::or_worse` depends on it.
    /// A class that only a newer agent knows. No probe of this version observes it.
    Other,
    /// The name exists but has no address.
    NoData,
    /// The name does not exist.
    NxDomain,
    /// The response belongs to another query, holds the wrong address, or is no DNS message.
    Mismatch,
    /// The response does not fit into a datagram, and none came over TCP.
    Truncated,
    /// The server rejects the query: REFUSED, NOTIMP, FORMERR or any other code not listed here.
    Refused,
    /// The server failed to resolve the name: SERVFAIL.
    ServFail,
    /// Nothing listens at the address, or there is no route to it.
    Unreachable,
    /// No response came in time.
    Timeout,
}

impl FailureClass {
    /// Every class that a probe observes, mildest first.
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

    /// Returns the name in lower case, as messages and metrics use it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
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

    /// Parses the output of [`Self::as_str`].
    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        let mut all = Self::ALL.into_iter().chain([Self::Other]);
        all.find(|class| class.as_str() == text).ok_or(UnknownClass)
    }
}

/// The error for a text that names no class known to this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownClass;

/// A displayed server: its address, with the port unless it is 53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server(pub SocketAddr);

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The IP address alone would lose the scope of a link-local server (`fe80::1%2`).
        match self.0 {
            SocketAddr::V6(server) if server.scope_id() != 0 => server.fmt(f),
            server if server.port() == DNS_PORT => server.ip().fmt(f),
            server => server.fmt(f),
        }
    }
}

impl FromStr for Server {
    type Err = std::net::AddrParseError;

    /// Parses the output of [`fmt::Display`].
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
        for class in FailureClass::ALL.into_iter().chain([FailureClass::Other]) {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        assert_eq!("formerr".parse::<FailureClass>(), Err(UnknownClass));
    }
}
