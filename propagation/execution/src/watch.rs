//! The changes that wake a Work.

use std::sync::Arc;
use std::time::Duration;

use apply::Wake;
use karmada_api::{ClusterView, cluster_of_execution_namespace, execution_namespace};
use karmada_runtime::alarm;
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
use crate::index::{Index, Works};
use crate::stored::StoredWork;

/// The time after which a Work is looked at again that has reported a failure: as long as the longest pause of a retry.
const FAILED: Duration = Duration::from_secs(30);

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
    if let Some(own) = own {
        let all = Config::default();
        let works = Api::namespaced(client.clone(), &execution_namespace(own));
        of_works.start_elsewhere(program, "works", works, all.clone());
        let (clusters, own) = (Api::all(client.clone()), format!("metadata.name={own}"));
        of_clusters.start_elsewhere(program, "clusters", clusters, all.fields(&own));
    } else {
        of_works.start(program, client, "works");
        of_clusters.start(program, client, "clusters");
    }
    if works.index.lock().imports.is_some() {
        watch_remedies(program, client, works);
    }
}

/// Watches the Remedies: people's decisions to block a cluster are never overruled, and may expire.
fn watch_remedies(program: &mut Program, client: &Client, works: &Arc<Works>) {
    let changed = Arc::new(Notify::new());
    let (shared, rescheduled) = (Arc::clone(works), Arc::clone(&changed));
    let mut next = None;
    let observe = move |event| {
        let expiry = shared.change_imports(|imports| imports.observe_remedies(event));
        if expiry != next {
            next = expiry;
            rescheduled.notify_one();
        }
    };
    let remedies = Api::all(client.clone());
    program.watch_if_served("remedies", (remedies, &()), Config::default(), observe);
    let shared = Arc::clone(works);
    alarm::spawn(program, "expiries", changed, move |now| {
        shared.change_imports(|imports| imports.expire(now))
    });
    let index = Arc::clone(&works.index);
    program.report_undecoded(move || {
        let index = index.lock();
        let imports = index.imports.iter();
        imports
            .map(|imports| ("Remedy", imports.undecoded()))
            .collect()
    });
}

/// Itself, those with slices of other clusters that depend on its own, and the endpoints of the Services that it brings to its
/// cluster.
fn work_rows(
    works: &Arc<Works>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) -> Watch<Index, StoredWork> {
    let (shared, members) = (Arc::clone(works), Arc::clone(fleet));
    let unread_gone = Arc::clone(works);
    let rows = Watch::new(&works.index, |index| &mut index.works)
        .follows(move |index, change| {
            shared.arrivals.observe(change);
            let Some(cluster) = cluster_of_execution_namespace(&change.key.namespace) else {
                return;
            };
            if index.count_kinds(cluster, change) {
                shared.retire(index, cluster);
                members.rewatch(cluster, index.kinds(cluster));
            }
            if let Some(imports) = &mut index.imports {
                shared.wake_all(imports.observe_work(cluster, change));
            }
            if is_report_of_failure(change) {
                let queue = shared.queues.of(cluster);
                queue.add_at(change.key.clone(), Instant::now() + FAILED);
            } else {
                shared.wake_one(cluster, wake_of(change));
            }
        })
        .follows_known(move |index, mended| {
            // They may have brought endpoints for which others waited.
            let mended = mended.iter().filter(|_| index.imports.is_some());
            let clusters = mended.filter_map(|key| cluster_of_execution_namespace(&key.namespace));
            unread_gone.wake_all(clusters.flat_map(|cluster| index.keys_in(cluster)));
        });
    match endpoints {
        Some(endpoints) => endpoints.add_rows(rows),
        None => rows,
    }
}

/// Every Work of a cluster that is reached in another way, serves other kinds, is ready or not any more, or about to leave;
/// those with slices of one that is blocked, or no longer; and the endpoints in it.
fn cluster_rows(
    works: &Arc<Works>,
    fleet: &Arc<Fleet>,
    endpoints: Option<&Arc<SharedEndpoints>>,
) -> Watch<Index, ClusterView> {
    let (shared, members) = (Arc::clone(works), Arc::clone(fleet));
    let endpoints = endpoints.map(Arc::clone);
    Watch::new(&works.index, |index| &mut index.clusters).follows(move |index, change| {
        let cluster = &change.key.name;
        if let Some(imports) = &mut index.imports {
            shared.wake_all(imports.observe_cluster(change));
        }
        let is_new = change.old.is_none();
        if !is_new && change.differs(|old, new| !old.spec.has_same_access(&new.spec)) {
            members.disconnect(cluster);
        }
        if change.new.is_none() {
            shared.retire(index, cluster);
        }
        if change.differs(is_served_otherwise) {
            shared.queues.hurry(cluster);
            shared.wake_all(index.keys_in(cluster));
            if let Some(endpoints) = &endpoints {
                endpoints.observe_cluster(cluster, index.is_gone(cluster));
            }
        }
    })
}

/// Returns how a change of a Work wakes it: at once, unless only its status is another, which is ours. A sync may have
/// compared its report with a status older than our last one, and found no news.
fn wake_of(change: &Transition<StoredWork>) -> Wake {
    let wake = if is_edit(change) {
        Wake::Now
    } else {
        Wake::Paced
    };
    wake(change.key.clone())
}

/// Returns `true` if no more than the status of a Work has changed, by which it could not be applied. It is tried again
/// anyway: with a member that words its refusal anew, each report would lead to the next one.
fn is_report_of_failure(change: &Transition<StoredWork>) -> bool {
    let new = change.new.as_deref();
    new.is_some_and(|new| new.summary.has_failed) && !is_edit(change)
}

/// Returns `true` if more than the status of a Work has changed.
fn is_edit(change: &Transition<StoredWork>) -> bool {
    change.differs(|old, new| {
        let (old, new) = (old.meta(), new.meta());
        old.generation != new.generation
            || new.generation.is_none()
            || old.uid != new.uid
            || old.deletion_timestamp != new.deletion_timestamp
            || old.annotations != new.annotations
    })
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

#[cfg(test)]
mod tests {
    use objects::Key;
    use serde_json::{from_value, json};

    use super::*;

    /// Case P130: the report of a failure hastens no retry, and an edit does.
    #[test]
    fn failure_hastens_no_retry() {
        let work = |generation: i64, applied: &str| -> Arc<StoredWork> {
            let metadata = json!({ "name": "web", "generation": generation });
            let conditions = json!([{ "type": "Applied", "status": applied }]);
            let status = json!({ "conditions": conditions });
            let work = json!({ "metadata": metadata, "spec": {}, "status": status });
            Arc::new(from_value(work).unwrap())
        };
        for (old, new, is_report) in [
            (Some(work(1, "True")), work(1, "False"), true),
            (Some(work(1, "False")), work(1, "True"), false),
            (Some(work(1, "False")), work(2, "False"), false),
            (None, work(1, "False"), false),
        ] {
            let change = Transition {
                key: Key::new("karmada-es-m1", "web"),
                old,
                new: Some(new),
            };
            assert_eq!(is_report_of_failure(&change), is_report, "{change:?}");
        }
    }
}
