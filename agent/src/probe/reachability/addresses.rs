//! The addresses of each member cluster: given by a flag, or those in the EndpointSlices that the ingress-controller keeps in the
//! gateway cluster. They stay known while the gateway's API is away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::Key;
use traffic::ingress::kubernetes::{CLUSTER_LABEL, probed};

/// The addresses of each cluster.
pub(crate) type Addresses = BTreeMap<Arc<str>, BTreeSet<SocketAddr>>;

/// The source of the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressSource {
    /// A flag.
    Given(Addresses),
    /// The slices in the gateway cluster.
    Slices,
}

impl AddressSource {
    /// Returns `true` if the addresses are read from the API of the cluster that the agent runs in.
    pub(crate) fn needs_member(&self) -> bool {
        matches!(self, Self::Slices)
    }
}

/// The addresses, as far as they are known.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Given(Addresses),
    Watched(Arc<Mutex<Slices>>),
}

impl Known {
    /// Returns the addresses of each cluster that has any.
    pub(super) fn by_cluster(&self) -> Addresses {
        match self {
            Self::Given(addresses) => addresses.clone(),
            Self::Watched(slices) => {
                let slices = slices.lock().unwrap_or_else(PoisonError::into_inner);
                slices.by_cluster()
            }
        }
    }
}

/// Spawns the watch of the slices as a task of `program`, unless the addresses are given.
///
/// # Errors
/// Returns an error if the slices must be read and there is no API of the `gateway`.
pub(super) fn start(
    program: &mut Program,
    source: &AddressSource,
    gateway: Option<Client>,
) -> Result<Known, StartError> {
    if let AddressSource::Given(addresses) = source {
        return Ok(Known::Given(addresses.clone()));
    }
    let client = gateway.ok_or_else(|| {
        let problem = "reachability reads addresses from the API of the gateway cluster: run in it, set --member-kubeconfig, or give --reachability-address";
        StartError::Config(problem.to_owned())
    })?;
    let slices = Arc::new(Mutex::new(Slices::default()));
    let (known, stopping) = (Arc::clone(&slices), program.stopping.clone());
    let ours = Config::default().labels(CLUSTER_LABEL);
    program.tasks.spawn("reachability-addresses", async move {
        let watched = events(Api::<Decoded<EndpointSlice>>::all(client), ours);
        let mut events = pin!(watched.take_until(stopping.cancelled_owned()));
        while let Some(event) = events.next().await {
            let mut slices = known.lock().unwrap_or_else(PoisonError::into_inner);
            slices.observe(event);
        }
        Ok(())
    });
    Ok(Known::Watched(slices))
}

/// The addresses in the slices of the gateway.
#[derive(Debug, Default)]
pub(super) struct Slices {
    known: BTreeMap<Key, Backends>,
    /// Those that the list under way has returned.
    listing: BTreeMap<Key, Backends>,
}

/// The cluster of one slice, and addresses there.
type Backends = (Arc<str>, Vec<SocketAddr>);

impl Slices {
    /// Applies an event. An unreadable slice keeps its last good version.
    pub(super) fn observe(&mut self, event: Event<Decoded<EndpointSlice>>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(slice) => {
                let (key, backends) = self.read(slice);
                if let Some(backends) = backends {
                    self.listing.insert(key, backends);
                }
            }
            // Only a complete list replaces the known slices: one that is cut off removes nobody.
            Event::InitDone => self.known = std::mem::take(&mut self.listing),
            Event::Apply(slice) => {
                let (key, backends) = self.read(slice);
                match backends {
                    Some(backends) => self.known.insert(key, backends),
                    None => self.known.remove(&key),
                };
            }
            Event::Delete(slice) => {
                self.known.remove(&Key::of(&slice));
            }
        }
    }

    fn read(&self, slice: Decoded<EndpointSlice>) -> (Key, Option<Backends>) {
        let key = Key::of(&slice);
        let backends = match slice {
            Decoded::Valid(slice) => {
                probed(&slice).map(|(cluster, addresses)| (Arc::from(cluster), addresses))
            }
            Decoded::Invalid { error, .. } => {
                tracing::warn!(slice = %key, error, "Unreadable EndpointSlice, keeping its last good version");
                self.known.get(&key).cloned()
            }
        };
        (key, backends)
    }

    pub(super) fn by_cluster(&self) -> Addresses {
        let mut all = Addresses::new();
        let known = self.known.values();
        for (cluster, addresses) in known.filter(|(_, addresses)| !addresses.is_empty()) {
            let of_cluster = all.entry(Arc::clone(cluster)).or_default();
            of_cluster.extend(addresses);
        }
        all
    }
}
