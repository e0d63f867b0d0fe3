//! The second signal: connections to the cluster IP of a Service reach its endpoints.

use karmada_api::condition::{
    REPORTER_READY, SERVICE_NETWORK_FAILED_REASON, SERVICE_NETWORK_READY,
    SERVICE_NETWORK_READY_REASON,
};

use super::failure::FailureClass;
use super::signal::{Signal, Voters};

/// The rules that kube-proxy, or its replacement, sets up on every node.
pub static SERVICE_NETWORK: Signal = Signal {
    name: "service-network",
    subject: "Services",
    metric_prefix: "service_network_",
    condition: SERVICE_NETWORK_READY,
    ready_reason: SERVICE_NETWORK_READY_REASON,
    failed_reason: SERVICE_NETWORK_FAILED_REASON,
    reporter: REPORTER_READY,
    works: "connections to the Service reach its endpoints",
    unobserved: "no connection could be tried",
    classes: &[
        ServiceNetworkClass::NoAddress.class(),
        ServiceNetworkClass::Refused.class(),
        ServiceNetworkClass::Reset.class(),
        ServiceNetworkClass::Timeout.class(),
    ],
    voters: Voters::Nodes,
};

/// The class of a failed connection, from the mildest to the worst: the less a client of a Service learns,
/// and the later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceNetworkClass {
    /// The Service has no cluster IP, or does not exist. No packet was sent, so the mildest: it says
    /// more about the Service than about the node.
    NoAddress,
    /// The connection is rejected, or there is no route. A client knows at once, and has sent nothing.
    Refused,
    /// The connection was made, and then reset or closed before an agent responded. A client does not know
    /// the fate of its request.
    Reset,
    /// No response came in time. A client hangs until it gives up, and knows nothing.
    Timeout,
}

impl ServiceNetworkClass {
    /// Returns the class as votes and messages have it.
    pub const fn class(self) -> FailureClass {
        let name = match self {
            Self::NoAddress => "no-address",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
        };
        FailureClass::new(self as u8, name)
    }
}

impl From<ServiceNetworkClass> for FailureClass {
    fn from(class: ServiceNetworkClass) -> Self {
        class.class()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Failure;

    #[test]
    fn classes_are_ordered_by_severity() {
        let worst_first = SERVICE_NETWORK.classes.iter().rev();
        let worst_first: Vec<_> = worst_first.map(|class| class.as_str()).collect();
        assert_eq!(worst_first, ["timeout", "reset", "refused", "no-address"]);
        assert!(SERVICE_NETWORK.classes.is_sorted());
        for class in SERVICE_NETWORK.classes {
            assert_eq!(SERVICE_NETWORK.class(class.as_str()), *class);
        }
    }

    #[test]
    fn message_names_the_cluster_ip() {
        let address = "10.96.0.20:80".parse().unwrap();
        let reset = Failure::new(ServiceNetworkClass::Reset, address);
        assert_eq!(reset.to_string(), "reset from 10.96.0.20:80");
        let nowhere = Failure::without_server(ServiceNetworkClass::NoAddress);
        assert_eq!(nowhere.to_string(), "no-address");
    }
}
