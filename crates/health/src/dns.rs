//! The first signal: DNS resolves the names of Services.

use std::fmt;

use karmada_api::condition::{DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON, REPORTER_READY};

use super::failure::FailureClass;
use super::signal::{Signal, Voters};

/// DNS, as the pods of a node query it.
pub static DNS: Signal = Signal {
    // As Karmada's own detector calls it.
    name: "coredns-detector",
    subject: "DNS",
    metric_prefix: "",
    condition: DNS_READY,
    ready_reason: DNS_READY_REASON,
    failed_reason: DNS_FAILED_REASON,
    reporter: REPORTER_READY,
    works: "names resolve",
    unobserved: "no DNS query could be sent",
    classes: &CLASSES,
    voters: Voters::Nodes,
};

const CLASSES: [FailureClass; DnsClass::ALL.len()] = {
    let mut classes = [FailureClass::OTHER; DnsClass::ALL.len()];
    let mut index = 0;
    // An array's `map` is not `const`.
    while index < classes.len() {
        classes[index] = DnsClass::ALL[index].class();
        index += 1;
    }
    classes
};

/// The class of a failed DNS query. Classes are ordered from the mildest to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DnsClass {
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

impl DnsClass {
    /// Every class, mildest first.
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

    /// Returns the class as votes and messages have it.
    pub const fn class(self) -> FailureClass {
        let name = match self {
            Self::NoData => "nodata",
            Self::NxDomain => "nxdomain",
            Self::Mismatch => "mismatch",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::ServFail => "servfail",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
        };
        FailureClass::new(self as u8, name)
    }
}

impl fmt::Display for DnsClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.class().fmt(f)
    }
}

impl From<DnsClass> for FailureClass {
    fn from(class: DnsClass) -> Self {
        class.class()
    }
}

impl PartialEq<DnsClass> for FailureClass {
    fn eq(&self, class: &DnsClass) -> bool {
        *self == class.class()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ordered_by_severity() {
        let worst_first: Vec<_> = DNS
            .classes
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
        assert!(DNS.classes.is_sorted());
    }

    #[test]
    fn class_is_read_as_written() {
        for class in DNS.classes {
            assert_eq!(DNS.class(class.as_str()), *class);
        }
        assert_eq!(DNS.class("formerr"), FailureClass::OTHER);
        assert_eq!(DNS.class("other"), FailureClass::OTHER);
        assert!(FailureClass::OTHER < DNS.classes[0]);
    }
}
