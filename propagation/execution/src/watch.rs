//! The changes that wake a Work.

use std::sync::Arc;

use apply::Wake;
use karmada_api::{ClusterView, cluster_of_execution_namespace, execution_namespace};
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};

use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
use crate::index::{Index, Works};
use crate::stored::StoredWork;

/// Watches every kind that decides about Works, of the cluster `own` alone if the program runs in that one.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    own: Option<&str>,
    works: &Arc<Works>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) {
    let of_works = work_rows(works, fleet, endpoints);
    let of_clusters = cluster_rows(works, fleet, endpoints);
    let (every, clusters) = (Config::default(), Api::all(client.clone()));
    if let Some(own) = own {
        let works = Api::namespaced(client.clone(), &execution_namespace(own));
        of_works.start_elsewhere(program, "works", works, every.clone());
        let own = every.fields(&format!("metadata.name={own}"));
        of_clusters.start_elsewhere(program, "clusters", clusters, own);
    } else {
        let works = Api::all(client.clone());
        of_works.start(program, "works", works, every.clone());
        of_clusters.start(program, "clusters", clusters, every);
    }
}

/// Itself, and the endpoints of the Services that it brings to its cluster.
fn work_rows(
    works: &Arc<Works>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) -> Watch<Index, StoredWork> {
    let (shared, members) = (Arc::clone(works), Arc::clone(fleet));
    let rows = Watch::new(&works.index, |index| &mut index.works).follows(move |index, change| {
        shared.arrivals.observe(change);
        if let Some(cluster) = cluster_of_execution_namespace(&change.key.namespace) {
            if index.count_kinds(cluster, change) {
                shared.retire(index, cluster);
                members.rewatch(cluster, index.kinds(cluster));
            }
            shared.wake_one(cluster, wake_of(change));
        }
    });
    match endpoints {
        Some(endpoints) => endpoints.add_rows(rows),
        None => rows,
    }
}

/// Every Work of a cluster that is reached in another way, serves other kinds, is ready or not any more, or about to leave;
/// and the endpoints in it.
fn cluster_rows(
    works: &Arc<Works>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) -> Watch<Index, ClusterView> {
    let (shared, members) = (Arc::clone(works), Arc::clone(fleet));
    let endpoints = endpoints.map(Arc::clone);
    Watch::new(&works.index, |index| &mut index.clusters).follows(move |index, change| {
        let cluster = &change.key.name;
        let is_new = change.old.is_none();
        if !is_new && change.differs(|old, new| !old.spec.has_same_access(&new.spec)) {
            members.disconnect(cluster);
        }
        if change.new.is_none() {
            shared.retire(index, cluster);
        }
        if change.differs(is_served_otherwise) {
            shared.queues.hurry(cluster);
            shared.wake_all(cluster, index.keys_in(cluster));
            if let Some(endpoints) = &endpoints {
                endpoints.observe_cluster(cluster, index.is_gone(cluster));
            }
        }
    })
}

/// Returns how a change of a Work wakes it: at once, unless only its status is another, which is ours. A sync may have
/// compared its report with a status older than our last one, and found no news.
fn wake_of(change: &Transition<StoredWork>) -> Wake {
    let is_edit = change.differs(|old, new| {
        let (old, new) = (old.meta(), new.meta());
        old.generation != new.generation
            || new.generation.is_none()
            || old.uid != new.uid
            || old.deletion_timestamp != new.deletion_timestamp
            || old.annotations != new.annotations
    });
    let wake = if is_edit { Wake::Now } else { Wake::Paced };
    wake(change.key.clone())
}

/// Returns `true` if the Works of a cluster may be carried out otherwise.
fn is_served_otherwise(old: &ClusterView, new: &ClusterView) -> bool {
    !old.spec.has_same_access(&new.spec)
        || old.spec.sync_mode != new.spec.sync_mode
        || old.status.api_enablements != new.status.api_enablements
        || ready(old) != ready(new)
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
}

/// Returns the status of the cluster's condition `Ready`.
fn ready(cluster: &ClusterView) -> Option<&str> {
    let mut conditions = cluster.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}
