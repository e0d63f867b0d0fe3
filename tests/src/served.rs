//! The addresses in the EndpointSlices of a gateway.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Result, bail};
use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::names::SERVICE_NAME;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

const LIMIT: Duration = Duration::from_mins(1);

/// The addresses; none before the first list.
type Addresses = Option<BTreeSet<String>>;

/// The addresses that are served in one namespace. Dropping it ends the watch.
#[derive(Debug)]
pub struct Served {
    addresses: watch::Receiver<Addresses>,
    watching: JoinHandle<()>,
}

impl Served {
    /// Starts to watch the EndpointSlices of a namespace.
    pub fn watch(client: Client, namespace: &str) -> Self {
        let (sender, addresses) = watch::channel(None);
        let slices: Api<EndpointSlice> = Api::namespaced(client, namespace);
        let watching = tokio::spawn(follow(slices, sender));
        Self {
            addresses,
            watching,
        }
    }

    /// Waits until exactly these backends are served.
    pub async fn becomes(&self, backends: &[SocketAddr]) -> Result<()> {
        let wanted: BTreeSet<String> = backends
            .iter()
            .map(|backend| backend.ip().to_string())
            .collect();
        let mut addresses = self.addresses.clone();
        let waiting = async {
            let served = addresses.wait_for(|now| now.as_ref() == Some(&wanted));
            served.await.map(drop)
        };
        let Ok(served) = timeout(LIMIT, waiting).await else {
            let now = self.addresses.borrow().clone();
            bail!("not served in time: {wanted:?}; now {now:?}");
        };
        Ok(served?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

async fn follow(slices: Api<EndpointSlice>, addresses: watch::Sender<Addresses>) {
    let mut known: BTreeMap<String, EndpointSlice> = BTreeMap::new();
    let mut events = std::pin::pin!(watcher(slices, Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => known.clear(),
            Ok(Event::Apply(slice) | Event::InitApply(slice)) => {
                known.insert(slice.name_any(), slice);
            }
            Ok(Event::Delete(slice)) => {
                known.remove(&slice.name_any());
            }
            Ok(Event::InitDone) => {}
            Err(_) => continue,
        }
        // A slice of no Service gets no request.
        let endpoints = known
            .values()
            .filter(|slice: &&EndpointSlice| slice.labels().contains_key(SERVICE_NAME))
            .filter_map(|slice| slice.endpoints.as_ref())
            .flatten();
        let served = endpoints
            .flat_map(|endpoint| endpoint.addresses.clone())
            .collect();
        addresses.send_replace(Some(served));
    }
}
