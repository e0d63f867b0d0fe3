//! Direct checks: the DNS Service and the DNS pods behind the servers that pods query, as flags give
//! them or as the member cluster's API lists them. The last known ones remain while the API is away.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use futures::stream::{pending, select};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_runtime::error::BoxError;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::store::Store;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const DNS_PORT: u16 = 53;
/// The label of an EndpointSlice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The servers to query directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectServers {
    /// The cluster IP of the DNS Service.
    pub(super) service: Option<SocketAddr>,
    /// The DNS pods.
    pub(super) pods: Vec<SocketAddr>,
}

/// The servers to query directly, as the flags ask for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectTargets {
    /// The DNS Service; at most one address.
    pub(super) service: AddressSource,
    /// The DNS pods.
    pub(super) pods: AddressSource,
    /// The namespace and name of the DNS Service, for discovery.
    pub(super) dns_service: (String, String),
}

impl DirectTargets {
    /// Returns `true` if addresses are discovered in the API of the member cluster.
    pub(crate) fn needs_member(&self) -> bool {
        [&self.service, &self.pods].contains(&&AddressSource::Discovered)
    }
}

/// The source of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum AddressSource {
    /// There are no addresses: the check is off.
    #[default]
    None,
    /// Flags.
    Given(Vec<SocketAddr>),
    /// The API of the member cluster.
    Discovered,
}

impl AddressSource {
    fn given(&self) -> &[SocketAddr] {
        match self {
            Self::Given(servers) => servers,
            Self::None | Self::Discovered => &[],
        }
    }
}

/// Spawns the discovery as a task of `program`, if any address is to be discovered.
///
/// # Errors
/// Returns an error if addresses must be discovered and `member` is `None`.
pub(super) fn start(
    program: &mut Program,
    targets: DirectTargets,
    member: Option<Client>,
) -> Result<watch::Receiver<DirectServers>, StartError> {
    let given = DirectServers {
        service: targets.service.given().first().copied(),
        pods: targets.pods.given().to_vec(),
    };
    let (changed, direct) = watch::channel(given);
    if targets.needs_member() {
        let client = member.ok_or_else(|| {
            StartError::Config(
                "--probe-kube-dns and --probe-endpoints find addresses in the API of the member cluster: run in it, set --member-kubeconfig, or give the addresses"
                    .to_owned(),
            )
        })?;
        let task = discover(client, targets, changed, program.stopping.clone());
        program.tasks.spawn("dns-servers", task);
    }
    Ok(direct)
}

/// Keeps `direct` at the servers that the API lists, until the program stops.
async fn discover(
    client: Client,
    targets: DirectTargets,
    direct: watch::Sender<DirectServers>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let (namespace, name) = &targets.dns_service;
    let services = Config::default().fields(&format!("metadata.name={name}"));
    let services = watched(
        &targets.service,
        Api::namespaced(client.clone(), namespace),
        services,
    );
    let slices = Config::default().labels(&format!("{SERVICE_NAME}={name}"));
    let slices = watched(&targets.pods, Api::namespaced(client, namespace), slices);
    let mut service: Store<Service> = Store::default();
    let mut pods: Store<EndpointSlice> = Store::default();
    let changes = select(
        services.map(|event| WatchEvent::Service(Box::new(event))),
        slices.map(|event| WatchEvent::Slice(Box::new(event))),
    );
    let mut changes = std::pin::pin!(changes.take_until(stopping.cancelled_owned()));
    let mut listed = Listed::default();
    let mut missing = None;
    while let Some(change) = changes.next().await {
        listed.note(&change);
        let relevant = match change {
            WatchEvent::Service(event) => !service.observe(*event).objects.is_empty(),
            WatchEvent::Slice(event) => !pods.observe(*event).objects.is_empty(),
        };
        let now_missing = listed.missing(
            service.iter().next().map(|(_, service)| &**service),
            pods.iter().map(|(_, slice)| &**slice),
        );
        if std::mem::replace(&mut missing, now_missing) != now_missing
            && let Some(missing) = now_missing
        {
            tracing::warn!(
                namespace,
                name,
                missing,
                "Not all of the DNS Service can be queried directly: if it has another name, set --dns-service"
            );
        }
        if !relevant {
            continue;
        }
        direct.send_if_modified(|direct| {
            let now = DirectServers {
                service: match targets.service {
                    AddressSource::Discovered => {
                        service.iter().find_map(|(_, service)| address(service))
                    }
                    _ => direct.service,
                },
                pods: match targets.pods {
                    AddressSource::Discovered => endpoints(pods.iter().map(|(_, slice)| &**slice)),
                    _ => direct.pods.clone(),
                },
            };
            let modified = *direct != now;
            if modified {
                tracing::info!(service = ?now.service, pods = ?now.pods, "DNS servers queried directly");
            }
            *direct = now;
            modified
        });
    }
    Ok(())
}

/// An event of either watch.
enum WatchEvent {
    Service(Box<Event<Decoded<Service>>>),
    Slice(Box<Event<Decoded<EndpointSlice>>>),
}

/// The lists that are complete: a server that is missing in one is not there.
#[derive(Debug, Default)]
struct Listed {
    service: bool,
    slices: bool,
}

impl Listed {
    fn note(&mut self, change: &WatchEvent) {
        match change {
            WatchEvent::Service(event) => self.service |= matches!(**event, Event::InitDone),
            WatchEvent::Slice(event) => self.slices |= matches!(**event, Event::InitDone),
        }
    }

    /// Returns the part that the DNS Service lacks to be queried directly.
    fn missing<'a>(
        &self,
        service: Option<&Service>,
        slices: impl Iterator<Item = &'a EndpointSlice>,
    ) -> Option<&'static str> {
        let mut slices = slices.peekable();
        match service {
            None if self.service => Some("there is no such Service"),
            Some(service) if address(service).is_none() => Some("it has no cluster IP"),
            _ if !self.slices => None,
            _ if slices.peek().is_none() => Some("it has no EndpointSlice"),
            _ => endpoints(slices).is_empty().then_some("it has no endpoint"),
        }
    }
}

/// Watches objects that are to be discovered. The stream of any others is empty and never ends.
fn watched<K>(
    source: &AddressSource,
    api: Api<Decoded<K>>,
    config: Config,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    if *source == AddressSource::Discovered {
        events(api, config).left_stream()
    } else {
        pending().right_stream()
    }
}

/// Returns the Service's cluster IP and UDP port. A headless Service has none: its `clusterIP` is
/// `None`, which does not parse.
fn address(service: &Service) -> Option<SocketAddr> {
    let spec = service.spec.as_ref()?;
    let ip: IpAddr = spec.cluster_ip.as_ref()?.parse().ok()?;
    let mut ports = spec.ports.iter().flatten();
    let udp = ports.find(|port| port.protocol.as_deref() == Some("UDP"));
    let port = udp.and_then(|port| u16::try_from(port.port).ok());
    Some(SocketAddr::new(ip, port.unwrap_or(DNS_PORT)))
}

/// Returns the pods that the Service routes to: the ready ones, or all of them while none is ready.
fn endpoints<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> Vec<SocketAddr> {
    let mut pods = Vec::new();
    for slice in slices {
        let mut ports = slice.ports.iter().flatten();
        let udp = ports.find(|port| port.protocol.as_deref() == Some("UDP"));
        let port = udp.and_then(|port| u16::try_from(port.port?).ok());
        for endpoint in slice.endpoints.iter().flatten() {
            // All addresses of an endpoint are interchangeable, so the first one is enough.
            let ip = endpoint
                .addresses
                .first()
                .and_then(|address| address.parse().ok());
            if let Some(ip) = ip {
                pods.push((
                    is_ready(endpoint),
                    SocketAddr::new(ip, port.unwrap_or(DNS_PORT)),
                ));
            }
        }
    }
    if pods.iter().any(|(ready, _)| *ready) {
        pods.retain(|(ready, _)| *ready);
    }
    let mut pods: Vec<_> = pods.into_iter().map(|(_, pod)| pod).collect();
    // During an update of slices an endpoint may be in two of them.
    pods.sort_unstable();
    pods.dedup();
    pods
}

/// The EndpointSlice API has consumers read an absent `ready` as true.
fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions
        .and_then(|conditions| conditions.ready)
        .unwrap_or(true)
}

#[cfg(test)]
mod tests;
