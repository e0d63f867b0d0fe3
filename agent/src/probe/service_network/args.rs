//! The flags of the probe of the Service network, and the settings made of them.

use std::net::SocketAddr;
use std::time::Duration;

use super::address::AddressSource;
use crate::flag_values::service;
use crate::peers::Service;

/// The flags of the probe of the Service network.
#[derive(clap::Args, Debug)]
pub(crate) struct ServiceNetworkArgs {
    /// Cluster IP and port of the Service to connect to, if --detectors has service-network [default: those of --service-network-service].
    #[arg(long, env = "KARMADA_SERVICE_NETWORK_ADDRESS", value_name = "IP:PORT")]
    service_network_address: Option<SocketAddr>,
    /// Service of the agents to connect to, if --detectors has service-network. Its address is read from the member cluster's API.
    #[arg(
        long,
        env = "KARMADA_SERVICE_NETWORK_SERVICE",
        default_value = "cluster-health-agent-service-network",
        value_name = "[NAMESPACE/]NAME",
        value_parser = service
    )]
    service_network_service: Service,
}

/// The settings of the probe.
#[derive(Clone, Debug)]
pub(crate) struct ServiceNetworkProbe {
    /// The source of the address to connect to.
    pub(crate) address: AddressSource,
    /// The deadline of a round, from its start.
    pub(crate) timeout: Duration,
}

impl ServiceNetworkArgs {
    pub(in crate::probe) fn probe(self, timeout: Duration) -> ServiceNetworkProbe {
        ServiceNetworkProbe {
            address: match self.service_network_address {
                Some(address) => AddressSource::Given(address),
                None => AddressSource::Service(self.service_network_service),
            },
            timeout,
        }
    }
}
