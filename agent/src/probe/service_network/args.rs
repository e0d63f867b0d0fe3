//! The flags of the probe of the Service network.

use std::net::SocketAddr;
use std::time::Duration;

use super::{AddressSource, ServiceNetworkProbe};
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
