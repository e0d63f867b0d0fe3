//! The servers behind those that pods ask: the DNS Service's address and the DNS pods, as flags name
//! them or as the member cluster's API shows them. What it showed last stays when it is away.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use futures::stream::{pending, select};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_runtime::cache::Cache;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const DNS_PORT: u16 = 53;
/// The label of EndpointSlices that names their Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The servers behind those that pods ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The DNS Service.
    pub(crate) service: Option<SocketAddr>,
    /// The DNS pods.
    pub(crate) pods: Vec<SocketAddr>,
}

/// Whom to ask past the servers that pods ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// The DNS Service; at most one address.
    pub(crate) service: Origin,
    /// The DNS pods.
    pub(crate) pods: Origin,
    /// The Service that is found: namespace and name.
    pub(crate) dns_service: (String, String),
}

impl Past {
    /// Whether some of them are to be found in the API of the member cluster.
    pub(crate) fn asks_member(&self) -> bool {
        [&self.service, &self.pods].contains(&&Origin::Found)
    }
}

/// Where addresses come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing is asked.
    #[default]
    Nowhere,
    /// Flags give them.
    Given(Vec<SocketAddr>),
    /// The member cluster's API shows them.
    Found,
}

impl Origin {
    fn given(&self) -> &[SocketAddr] {
        match self {
            Self::Given(servers) => servers,
            Self::Nowhere | Self::Found => &[],
        }
    }
}

/// Gives `program` the task that finds what is to be found.
///
/// # Errors
/// When something is to be found and there is no API of the member cluster.
pub(crate) fn start(
    program: &mut Program,
    past: Past,
    member: Option<Client>,
) -> Result<watch::Receiver<Behind>, StartError> {
    let given = Behind {
        service: past.service.given().first().copied(),
        pods: past.pods.given().to_vec(),
    };
    let found = past.asks_member();
    let (changed, behind) = watch::channel(given);
    if found {
        let client = member.ok_or_else(|| {
            StartError::Config(
                "--probe-kube-dns and --probe-endpoints find addresses in the API of the member cluster: run in it, set --member-kubeconfig, or give the addresses"
                    .to_owned(),
            )
        })?;
        let task = find(client, past, changed, program.stopping.clone());
        program.tasks.spawn("dns-servers", task);
    }
    Ok(behind)
}

/// Keeps `behind` at what the API shows, until the program stops.
async fn find(
    client: Client,
    past: Past,
    behind: watch::Sender<Behind>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let (namespace, name) = &past.dns_service;
    let services = Config::default().fields(&format!("metadata.name={name}"));
    let services = watched(
        &past.service,
        Api::namespaced(client.clone(), namespace),
        services,
    );
    let slices = Config::default().labels(&format!("{SERVICE_NAME}={name}"));
    let slices = watched(&past.pods, Api::namespaced(client, namespace), slices);
    let mut service = Cache::<Service>::default();
    let mut pods = Cache::<EndpointSlice>::default();
    let changes = select(
        services.map(|event| Change::Service(Box::new(event))),
        slices.map(|event| Change::Slice(Box::new(event))),
    );
    let mut changes = std::pin::pin!(changes.take_until(stopping.cancelled_owned()));
    while let Some(change) = changes.next().await {
        let news = match change {
            Change::Service(event) => !service.observe(*event).is_empty(),
            Change::Slice(event) => !pods.observe(*event).is_empty(),
        };
        if !news {
            continue;
        }
        behind.send_if_modified(|behind| {
            let now = Behind {
                service: match past.service {
                    Origin::Found => service.iter().find_map(|(_, service)| address(service)),
                    _ => behind.service,
                },
                pods: match past.pods {
                    Origin::Found => endpoints(pods.iter().map(|(_, slice)| &**slice)),
                    _ => behind.pods.clone(),
                },
            };
            let modified = *behind != now;
            if modified {
                tracing::info!(service = ?now.service, pods = ?now.pods, "DNS servers asked directly");
            }
            *behind = now;
            modified
        });
    }
    Ok(())
}

/// An event of either watch.
enum Change {
    Service(Box<Event<Decoded<Service>>>),
    Slice(Box<Event<Decoded<EndpointSlice>>>),
}

/// The events of what is to be found; none, ever, of what is not.
fn watched<K>(
    origin: &Origin,
    api: Api<Decoded<K>>,
    config: Config,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    if *origin == Origin::Found {
        events(api, config).left_stream()
    } else {
        pending().right_stream()
    }
}

/// The Service's address and port, unless it is headless.
fn address(service: &Service) -> Option<SocketAddr> {
    let spec = service.spec.as_ref()?;
    let ip: IpAddr = spec.cluster_ip.as_ref()?.parse().ok()?;
    let mut ports = spec.ports.iter().flatten();
    let datagrams = ports.find(|port| port.protocol.as_deref() == Some("UDP"));
    let port = datagrams.and_then(|port| u16::try_from(port.port).ok());
    Some(SocketAddr::new(ip, port.unwrap_or(DNS_PORT)))
}

/// The pods that the Service sends questions to: the ready ones; all of them when none is.
fn endpoints<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> Vec<SocketAddr> {
    let mut pods = Vec::new();
    for slice in slices {
        let mut ports = slice.ports.iter().flatten();
        let datagrams = ports.find(|port| port.protocol.as_deref() == Some("UDP"));
        let port = datagrams.and_then(|port| u16::try_from(port.port?).ok());
        for endpoint in slice.endpoints.iter().flatten() {
            let ip = endpoint
                .addresses
                .first()
                .and_then(|address| address.parse().ok());
            if let Some(ip) = ip {
                pods.push((
                    ready(endpoint),
                    SocketAddr::new(ip, port.unwrap_or(DNS_PORT)),
                ));
            }
        }
    }
    if pods.iter().any(|(ready, _)| *ready) {
        pods.retain(|(ready, _)| *ready);
    }
    let mut pods: Vec<_> = pods.into_iter().map(|(_, pod)| pod).collect();
    pods.sort_unstable();
    pods.dedup();
    pods
}

/// An endpoint that does not say so is ready.
fn ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions
        .and_then(|conditions| conditions.ready)
        .unwrap_or(true)
}

#[cfg(test)]
mod tests;
