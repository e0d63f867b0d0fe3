//! The address to connect to: given by a flag, or read from the agents' Service and then kept, so that the
//! probe goes on while the member's API is away.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::program::{Program, StartError};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::peers::Service;

/// The time over which agents that start together spread their first reads.
const FIRST_READ_WITHIN: Duration = Duration::from_secs(5);
/// The interval of reads, give or take a quarter: a Service that is created anew gets another address.
const READ_EVERY: Duration = Duration::from_mins(10);
/// The same while there is no address.
const READ_SOON: Duration = Duration::from_secs(30);
const READ_LIMIT: Duration = Duration::from_secs(10);

/// The source of the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressSource {
    /// A flag.
    Given(SocketAddr),
    /// A Service in the member cluster.
    Service(Service),
}

impl AddressSource {
    /// Returns `true` if the address is read from the API of the member cluster.
    pub(crate) fn needs_member(&self) -> bool {
        matches!(self, Self::Service(_))
    }
}

/// The address, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The API has not answered yet.
    Unknown,
    /// There is none, as the API says: the Service does not exist, or has no cluster IP.
    None,
    /// The cluster IP and port of the Service.
    Known(SocketAddr),
}

/// Spawns the reads as a task of `program`, unless the address is given.
///
/// # Errors
/// Returns an error if the address must be read and `member` is `None`.
pub(super) fn start(
    program: &mut Program,
    source: &AddressSource,
    member: Option<Client>,
) -> Result<watch::Receiver<Address>, StartError> {
    let service = match source {
        AddressSource::Given(address) => return Ok(watch::channel(Address::Known(*address)).1),
        AddressSource::Service(service) => service.clone(),
    };
    let client = member.ok_or_else(|| {
        let problem = "service-network reads an address from the API of the member cluster: run in it, set --member-kubeconfig, or give --service-network-address";
        StartError::Config(problem.to_owned())
    })?;
    let (read, address) = watch::channel(Address::Unknown);
    let stopping = program.stopping.clone();
    program.tasks.spawn(
        "service-network-address",
        keep(client, service, read, stopping),
    );
    Ok(address)
}

/// Keeps `address` at the answer of the API, until the program stops.
async fn keep(
    client: Client,
    service: Service,
    address: watch::Sender<Address>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let own_namespace = client.default_namespace().to_owned();
    let Service { namespace, name } = service;
    let namespace = namespace.unwrap_or(own_namespace);
    let services: Api<v1::Service> = Api::namespaced(client, &namespace);
    let reading = async {
        let mut warned = false;
        sleep(FIRST_READ_WITHIN.mul_f64(fastrand::f64())).await;
        loop {
            let read = timeout(READ_LIMIT, services.get_opt(&name)).await;
            let error = match read {
                Ok(Ok(service)) => {
                    let now = service.as_ref().and_then(cluster_address);
                    let now = now.map_or(Address::None, Address::Known);
                    if address.send_replace(now) != now {
                        tracing::info!(namespace, name, address = ?now, "The address of the agents' Service");
                    }
                    None
                }
                // The last address stays in use.
                Ok(Err(error)) => Some(Chain(&error).to_string()),
                Err(late) => Some(late.to_string()),
            };
            match error {
                Some(error) if !std::mem::replace(&mut warned, true) => {
                    tracing::warn!(
                        namespace,
                        name,
                        error,
                        "Could not read the agents' Service, trying again"
                    );
                }
                Some(_) => {}
                None => warned = false,
            }
            let known = *address.borrow();
            let rest = match known {
                Address::Known(_) => READ_EVERY,
                Address::Unknown | Address::None => READ_SOON,
            };
            // Spread, so that agents started together do not read together for ever.
            sleep(rest.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        }
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Ok(()),
        () = reading => Ok(()),
    }
}

/// Returns the Service's cluster IP and its first TCP port. The `clusterIP` of a headless Service is
/// `None`, which does not parse.
pub(super) fn cluster_address(service: &v1::Service) -> Option<SocketAddr> {
    let spec = service.spec.as_ref()?;
    let ip: IpAddr = spec.cluster_ip.as_ref()?.parse().ok()?;
    let mut ports = spec.ports.iter().flatten();
    // An absent protocol means TCP.
    let tcp = ports.find(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP")?;
    Some(SocketAddr::new(ip, u16::try_from(tcp.port).ok()?))
}
