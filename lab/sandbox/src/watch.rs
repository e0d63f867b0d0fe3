//! Watches both APIs and tells what is there.

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

use crate::facts::{Fact, Facts};

/// Watches the Karmada API for ever, in tasks.
pub(crate) fn all(karmada: &Client, facts: &Facts) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(watch::<Cluster>(
        karmada.clone(),
        facts.clone(),
        Fact::Clusters,
    ));
    tasks.spawn(watch::<Remedy>(
        karmada.clone(),
        facts.clone(),
        Fact::Remedies,
    ));
    tasks.spawn(watch::<Lease>(karmada.clone(), facts.clone(), Fact::Leases));
    tasks.spawn(watch::<MultiClusterIngress>(
        karmada.clone(),
        facts.clone(),
        Fact::Ingresses,
    ));
    tasks
}

/// Tells all objects of one kind whenever one of them changed.
async fn watch<K>(client: Client, facts: Facts, fact: fn(Vec<Arc<K>>) -> Fact)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, changes) = follow(Api::<K>::all(client));
    changes
        .for_each(async |()| facts.tell(fact(store.state())))
        .await;
}

/// The objects, and an item whenever one of them changed.
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
        Ok(Event::Init | Event::InitApply(_)) => None,
        Err(error) => {
            tracing::warn!(%error, "The sandbox's own watch failed, will retry");
            None
        }
    });
    (store, changes)
}
