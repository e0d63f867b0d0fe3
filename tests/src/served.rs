//! The addresses in the EndpointSlices of a gateway over time.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
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
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

const LIMIT: Duration = Duration::from_mins(1);

/// The addresses served from each moment on.
type Record = Vec<(Instant, BTreeSet<String>)>;

/// A record of the addresses served in one namespace. Dropping it ends the watch.
#[derive(Debug)]
pub struct Served {
    record: Arc<Mutex<Record>>,
    grown: watch::Receiver<()>,
    watching: JoinHandle<()>,
}

impl Served {
    /// Starts to record the EndpointSlices of a namespace.
    pub fn watch(client: Client, namespace: &str) -> Self {
        let record = Arc::new(Mutex::new(Vec::new()));
        let (grow, grown) = watch::channel(());
        let slices: Api<EndpointSlice> = Api::namespaced(client, namespace);
        let watching = tokio::spawn(follow(slices, Arc::clone(&record), grow));
        Self {
            record,
            grown,
            watching,
        }
    }

    /// Waits until exactly these backends are served.
    pub async fn becomes(&self, backends: &[SocketAddr]) -> Result<()> {
        let wanted: BTreeSet<String> = backends
            .iter()
            .map(|backend| backend.ip().to_string())
            .collect();
        let mut grown = self.grown.clone();
        let waiting = async {
            while self.record.lock().last().map(|(_, now)| now) != Some(&wanted) {
                grown.changed().await?;
            }
            anyhow::Ok(())
        };
        timeout(LIMIT, waiting).await.with_context(|| {
            format!(
                "not served in time: {wanted:?}; now {:?}",
                self.record.lock().last()
            )
        })?
    }

    /// Checks that a backend was not served before `until`.
    pub fn never(&self, backend: SocketAddr, until: Instant) -> Result<()> {
        let address = backend.ip().to_string();
        let record = self.record.lock();
        let served = record
            .iter()
            .find(|(at, served)| *at < until && served.contains(&address));
        ensure!(served.is_none(), "{address} was served: {served:?}");
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

async fn follow(slices: Api<EndpointSlice>, record: Arc<Mutex<Record>>, grow: watch::Sender<()>) {
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
        let of_service = |slice: &&EndpointSlice| slice.labels().contains_key(SERVICE_NAME);
        let endpoints = known
            .values()
            .filter(of_service)
            .filter_map(|slice| slice.endpoints.as_ref())
            .flatten();
        let served = endpoints
            .flat_map(|endpoint| endpoint.addresses.clone())
            .collect();
        record.lock().push((Instant::now(), served));
        grow.send_replace(());
    }
}
