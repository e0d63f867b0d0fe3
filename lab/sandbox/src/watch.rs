//! Watches of both APIs.

use std::fmt::Debug;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, MultiClusterIngress, Remedy};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::update::{Update, UpdateSender};

/// Watches the Karmada API in tasks that never end.
pub(crate) fn all(karmada: &Client, updates: &UpdateSender) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(watch::<Cluster>(
        karmada.clone(),
        updates.clone(),
        Update::Clusters,
    ));
    tasks.spawn(watch::<Remedy>(
        karmada.clone(),
        updates.clone(),
        Update::Remedies,
    ));
    tasks.spawn(watch::<Lease>(
        karmada.clone(),
        updates.clone(),
        Update::Leases,
    ));
    tasks.spawn(watch::<MultiClusterIngress>(
        karmada.clone(),
        updates.clone(),
        Update::Ingresses,
    ));
    tasks
}

/// Sends all objects of one kind whenever one of them changed.
async fn watch<K>(client: Client, updates: UpdateSender, update: fn(Vec<Arc<K>>) -> Update)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, changes) = follow(Api::<K>::all(client));
    changes
        .for_each(async |()| updates.send(update(store.state())))
        .await;
}

/// Returns a store of the objects and a stream with an item whenever one of them changed.
pub(crate) fn follow<K>(
    api: Api<K>,
) -> (reflector::Store<K>, impl Stream<Item = ()> + Send + use<K>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(api, Config::default())
        .default_backoff()
        .reflect(writer);
    let changes = events.filter_map(async |event| match event {
        Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => Some(()),
        // Until InitDone the store still holds the previous list.
        Ok(Event::Init | Event::InitApply(_)) => None,
        Err(error) => {
            tracing::warn!(%error, "The sandbox's own watch failed, will retry");
            None
        }
    });
    (store, changes)
}
