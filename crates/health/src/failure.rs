//! Classes of failures, and the servers that failed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of DNS (RFC 1035, section 4.2), omitted from displayed servers.
const DNS_PORT: u16 = 53;

/// The class of a failure: a word from the closed set of its signal. The classes of one signal are ordered
/// from the mildest to the worst; those of two signals have no order that means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureClass {
    // First: the derived order compares it first, and `Failure::or_worse` depends on that.
    severity: u8,
    name: &'static str,
}

impl FailureClass {
    /// A class that only a newer agent knows. No probe of this version observes it.
    pub const OTHER: Self = Self {
        severity: 0,
        name: "other",
    };

    /// Creates a class that is worse than those with a lower `severity`.
    pub const fn new(severity: u8, name: &'static str) -> Self {
        Self {
            // Above `OTHER`.
            severity: severity.saturating_add(1),
            name,
        }
    }

    /// Returns the name in lower case, as messages and metrics use it.
    pub const fn as_str(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

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
