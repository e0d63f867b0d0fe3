//! Watches of the APIs of Karmada, of the hub and of the members.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, ClusterView, MultiClusterIngress, Remedy, Work};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::hub::STORE;
use crate::objects::NAMESPACE;
use crate::site::Site;
use crate::update::{HubUpdate, Update, UpdateSender};

/// Watches the Karmada API, the hub's and those of the members in tasks that never end.
pub(crate) fn all(
    karmada: &Client,
    hub: &Client,
    members: &BTreeMap<String, Client>,
    updates: &UpdateSender,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let all = || karmada.clone();
    let send = || updates.clone();
    tasks.spawn(watch::<Cluster>(Api::all(all()), send(), Update::Clusters));
    let profiles = Api::<ClusterView>::all(all());
    tasks.spawn(watch(profiles, send(), Update::Profiles));
    tasks.spawn(watch::<Remedy>(Api::all(all()), send(), Update::Remedies));
    tasks.spawn(watch::<Lease>(Api::all(all()), send(), Update::Leases));
    let ingresses = Api::<MultiClusterIngress>::all(all());
    tasks.spawn(watch(ingresses, send(), Update::Ingresses));
    tasks.spawn(watch::<Work>(Api::all(all()), send(), Update::Works));
    let templates = Api::<Deployment>::namespaced(all(), NAMESPACE);
    tasks.spawn(watch(templates, send(), Update::Templates));
    for (cluster, member) in members {
        for site in Site::BOTH {
            let copies = Api::<Deployment>::namespaced(member.clone(), site.namespace());
            let cluster = cluster.clone();
            tasks.spawn(watch(copies, send(), move |copies| Update::Copies {
                site,
                cluster: cluster.clone(),
                copies,
            }));
        }
    }
    watch_hub(hub, updates, &mut tasks);
    tasks
}

/// Watches the hub in tasks that never end.
fn watch_hub(hub: &Client, updates: &UpdateSender, tasks: &mut JoinSet<()>) {
    let deployments = Api::<Deployment>::namespaced(hub.clone(), STORE);
    tasks.spawn(watch(deployments, updates.clone(), |all| {
        Update::Hub(HubUpdate::Deployments(all))
    }));
    tasks.spawn(watch(Api::all(hub.clone()), updates.clone(), |all| {
        Update::Hub(HubUpdate::Clusters(all))
    }));
    tasks.spawn(watch(Api::all(hub.clone()), updates.clone(), |all| {
        Update::Hub(HubUpdate::Placements(all))
    }));
    tasks.spawn(watch(Api::all(hub.clone()), updates.clone(), |all| {
        Update::Hub(HubUpdate::Policies(all))
    }));
    tasks.spawn(watch(Api::all(hub.clone()), updates.clone(), |all| {
        Update::Hub(HubUpdate::Snapshots(all))
    }));
    tasks.spawn(watch(Api::all(hub.clone()), updates.clone(), |all| {
        Update::Hub(HubUpdate::Bindings(all))
    }));
}

/// Sends all objects of one kind whenever one of them changed.
async fn watch<K>(api: Api<K>, updates: UpdateSender, update: impl Fn(Vec<Arc<K>>) -> Update)
where
    K: Resource<DynamicType: Default + Eq + Hash + Clone>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let (store, changes) = follow(api);
    changes
        .for_each(async |()| updates.send(update(store.state())))
        .await;
}

/// Returns a store of the objects and a stream with an item whenever one of them changed.
pub(crate) fn follow<K>(
    api: Api<K>,
) -> (reflector::Store<K>, impl Stream<Item = ()> + Send + use<K>)
where
    K: Resource<DynamicType: Default + Eq + Hash + Clone>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
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
