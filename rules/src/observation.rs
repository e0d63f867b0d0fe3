//! What one probe round saw of the cluster's DNS.

use std::fmt;
use std::net::SocketAddr;

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

/// A failure, with the server that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// How the question failed.
    pub class: FailureClass,
    /// The server that was asked.
    pub server: SocketAddr,
}

impl Failure {
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
    /// `timeout from 10.96.0.10`; the port is shown unless it is the usual one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, server } = self;
        if server.port() == DNS_PORT {
            write!(f, "{class} from {}", server.ip())
        } else {
            write!(f, "{class} from {server}")
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

    fn failure(class: FailureClass, server: &str) -> Failure {
        Failure {
            class,
            server: server.parse().unwrap(),
        }
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
        ];
        for (server, shown) in cases {
            assert_eq!(failure(FailureClass::ServFail, server).to_string(), shown);
        }
    }

    #[test]
    fn an_observation_is_one_word() {
        let refused = Observation::Failed(failure(FailureClass::Refused, "10.0.0.1:53"));
        assert_eq!(Observation::Resolved.as_str(), "resolved");
        assert_eq!(refused.as_str(), "refused");
        assert_eq!(Observation::Internal.as_str(), "internal");
    }
}
