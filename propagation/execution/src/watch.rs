//! The changes that wake a Work.

use std::sync::Arc;

use apply::Wake;
use karmada_api::{ClusterView, execution_namespace};
use karmada_runtime::alarm;
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use tokio::sync::Notify;

use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
use crate::index::SharedIndex;
use crate::stored::StoredWork;

/// Watches every kind that decides about Works, of the cluster `own` alone if the program runs in that one.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    own: Option<&str>,
    index: &Arc<SharedIndex>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) {
    let (works, members) = (Arc::clone(index), Arc::clone(fleet));
    let services = endpoints.map(Arc::clone);
    let observe_works = move |event| {
        observe_works(&works, &members, services.as_deref(), event);
    };
    let (clusters, members) = (Arc::clone(index), Arc::clone(fleet));
    let collected = endpoints.map(Arc::clone);
    let observe_clusters = move |event| {
        observe_clusters(&clusters, &members, collected.as_deref(), event);
    };
    let (every, clusters) = (Config::default(), Api::all(client.clone()));
    if let Some(own) = own {
        let works = Api::namespaced(client.clone(), &execution_namespace(own));
        program.watch_elsewhere("works", works, every.clone(), observe_works);
        let own = every.fields(&format!("metadata.name={own}"));
        program.watch_elsewhere("clusters", clusters, own, observe_clusters);
    } else {
        let works = Api::all(client.clone());
        program.watch("works", works, every.clone(), observe_works);
        program.watch("clusters", clusters, every, observe_clusters);
    }
    if index.withholds() {
        watch_remedies(program, client, index);
    }
    let (index, endpoints) = (Arc::clone(index), endpoints.map(Arc::clone));
    program.report_undecoded(move || {
        let of_endpoints = endpoints.iter().flat_map(|endpoints| endpoints.undecoded());
        index.undecoded().into_iter().chain(of_endpoints).collect()
    });
}

/// Watches the Remedies: people's decisions to block a cluster are never overruled, and may expire.
fn watch_remedies(program: &mut Program, client: &Client, index: &Arc<SharedIndex>) {
    let changed = Arc::new(Notify::new());
    let (shared, rescheduled) = (Arc::clone(index), Arc::clone(&changed));
    let mut next = None;
    let observe = move |event| {
        let expiry = shared.observe_remedies(event);
        if expiry != next {
            next = expiry;
            rescheduled.notify_one();
        }
    };
    let remedies = Api::all(client.clone());
    program.watch_if_served("remedies", remedies, Config::default(), observe);
    let shared = Arc::clone(index);
    alarm::spawn(program, "expiries", changed, move |now| shared.expire(now));
}

fn observe_works(
    index: &SharedIndex,
    fleet: &Fleet,
    endpoints: Option<&SharedEndpoints>,
    event: Event<Decoded<StoredWork>>,
) {
    let changes = index.observe_works(event);
    for cluster in changes.other_kinds {
        index.retire(&cluster);
        fleet.rewatch(&cluster, index.kinds(&cluster));
    }
    for (cluster, change) in changes.works {
        if let Some(endpoints) = endpoints {
            endpoints.observe_work(&cluster, &change);
        }
        let wake = if concerns_us(&change) {
            Wake::Now(change.key)
        } else {
            // A sync may have compared its report with a status older than our last one, and found no
            // news.
            Wake::Paced(change.key)
        };
        index.wake_one(&cluster, wake);
    }
    for cluster in changes.unread_gone {
        if index.withholds() {
            // It may have brought endpoints for which others waited.
            index.wake(&cluster);
        }
        if let Some(endpoints) = endpoints {
            endpoints.observe_unread_gone(&cluster);
        }
    }
}

fn observe_clusters(
    index: &SharedIndex,
    fleet: &Fleet,
    endpoints: Option<&SharedEndpoints>,
    event: Event<Decoded<ClusterView>>,
) {
    for Transition { key, old, new } in index.observe_clusters(event) {
        let same_access = match (&old, &new) {
            (Some(old), Some(new)) => old.spec.has_same_access(&new.spec),
            (None, _) => true,
            (Some(_), None) => false,
        };
        if !same_access {
            fleet.disconnect(&key.name);
        }
        let same_for_us = same_access
            && matches!((&old, &new), (Some(old), Some(new)) if
                old.spec.sync_mode == new.spec.sync_mode
                && old.status.api_enablements == new.status.api_enablements
                && ready(old) == ready(new)
                && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp);
        if new.is_none() {
            index.retire(&key.name);
        }
        if !same_for_us {
            index.hurry(&key.name);
            index.wake(&key.name);
            if let Some(endpoints) = endpoints {
                endpoints.observe_cluster(&key.name);
            }
        }
    }
}

/// Returns `true` if something besides the status has changed, which is ours.
fn concerns_us(change: &Transition<StoredWork>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return true;
    };
    let (old, new) = (old.meta(), new.meta());
    old.generation != new.generation
        || new.generation.is_none()
        || old.uid != new.uid
        || old.deletion_timestamp != new.deletion_timestamp
        || old.annotations != new.annotations
}

/// Returns the status of the cluster's condition `Ready`.
fn ready(cluster: &ClusterView) -> Option<&str> {
    let mut conditions = cluster.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}
