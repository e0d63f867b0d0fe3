//! The signal of a gateway: connections from there reach a member cluster.
//!
//! Its verdict is about the members, one for each, and not about the cluster of the agents: see [`Target`].
//!
//! [`Target`]: super::signal::Target

use std::collections::BTreeSet;
use std::net::SocketAddr;

use karmada_api::condition::{
    GATEWAY_REPORTER_READY, REACHABLE, REACHABLE_REASON, UNREACHABLE_REASON,
};

use super::failure::FailureClass;
use super::signal::{Signal, Voters};

/// The way that requests take from a gateway to the backends in a member.
pub static REACHABILITY: Signal = Signal {
    name: "reachability",
    subject: "reachability",
    metric_prefix: "reachability_",
    condition: REACHABLE,
    ready_reason: REACHABLE_REASON,
    failed_reason: UNREACHABLE_REASON,
    reporter: GATEWAY_REPORTER_READY,
    works: "connections reach the cluster",
    unobserved: "no connection could be tried",
    classes: &[
        ReachabilityClass::Refused.class(),
        ReachabilityClass::ServerError.class(),
        ReachabilityClass::Reset.class(),
        ReachabilityClass::Unreachable.class(),
        ReachabilityClass::Timeout.class(),
    ],
    voters: Voters::Nodes,
};

/// The most addresses of a cluster that a round tries.
const TRIED: usize = 5;

/// The class of a failed connection, from the mildest to the worst: the less is heard of the cluster, and the later, the
/// worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReachabilityClass {
    /// The connection is rejected. A failure only where a response is asked for: something there has rejected it.
    Refused,
    /// The status of the response is 500 or more.
    ServerError,
    /// The connection was made, and then reset or closed before a response.
    Reset,
    /// There is no route.
    Unreachable,
    /// No response came in time.
    Timeout,
}

impl ReachabilityClass {
    /// Returns the class as votes and messages have it.
    pub const fn class(self) -> FailureClass {
        let name = match self {
            Self::Refused => "refused",
            Self::ServerError => "server-error",
            Self::Reset => "reset",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
        };
        FailureClass::new(self as u8, name)
    }
}

impl From<ReachabilityClass> for FailureClass {
    fn from(class: ReachabilityClass) -> Self {
        class.class()
    }
}

/// Returns the addresses of a cluster that a round tries, at most five, evenly spaced in their order: those of one node are
/// neighbours. They stay the same as long as the addresses do, so that the message of a verdict does.
pub fn tried(addresses: &BTreeSet<SocketAddr>) -> Vec<SocketAddr> {
    let count = addresses.len().min(TRIED);
    let places: Vec<usize> = (0..count)
        .map(|nth| nth * addresses.len() / count)
        .collect();
    let all = addresses.iter().enumerate();
    all.filter(|(place, _)| places.contains(place))
        .map(|(_, address)| *address)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ordered_by_severity() {
        let names: Vec<_> = REACHABILITY.classes.iter().map(|it| it.as_str()).collect();
        assert_eq!(
            names,
            ["refused", "server-error", "reset", "unreachable", "timeout"]
        );
        assert!(REACHABILITY.classes.is_sorted());
    }

    fn address(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, n, 1], 80))
    }

    /// At most five are tried, and of many those that are far from each other.
    #[test]
    fn tried_addresses_are_spread() {
        for (count, expected) in [
            (0, &[][..]),
            (1, &[0]),
            (5, &[0, 1, 2, 3, 4]),
            (10, &[0, 2, 4, 6, 8]),
            (250, &[0, 50, 100, 150, 200]),
        ] {
            let numbered: BTreeSet<_> = (0..count).map(address).collect();
            let expected: Vec<_> = expected.iter().copied().map(address).collect();
            assert_eq!(tried(&numbered), expected);
        }
    }
}
