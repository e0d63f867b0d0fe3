//! The known exports, members and collected slices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{ServiceExport, cluster_of_execution_namespace};
use karmada_runtime::queue::Queue;
use karmada_runtime::store::Store;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::write::Plan;
use parking_lot::Mutex;
use tokio::sync::Notify;
use traffic::endpoints::{
    CollectionFacts, Need, Selection, is_ours, plan, slice_cluster, slice_service, source_service,
};
use traffic::ingress::Cached;
use traffic::{ClusterKind, LeftToOthers};

use super::dispatched::Dispatched;
use super::origin::Origin;
use crate::index::Index as WorkIndex;
use crate::stored::StoredWork;

/// The least time between two writes of the endpoints of a Service from a cluster: a rollout there changes them with
/// each pod.
const PACE: Duration = Duration::from_secs(1);

/// The index behind a lock, and the queue of those that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedEndpoints {
    works: Arc<Mutex<WorkIndex>>,
    index: Arc<Mutex<Index>>,
    queue: Queue<Origin>,
}

/// The known exports, members and collected slices.
#[derive(Debug)]
pub(super) struct Index {
    exports: Store<ServiceExport>,
    /// By their origins, whoever collected them.
    collected: Store<EndpointSlice, Origin>,
    dispatched: Dispatched,
    members: BTreeMap<String, InMember>,
}

/// The slices of a member to which there was a connection.
#[derive(Debug)]
struct InMember {
    /// By their Services.
    slices: Store<EndpointSlice, Key>,
    /// The Services of which all slices have been listed.
    listed: BTreeSet<Key>,
    /// True while the member lets nobody of our name list them.
    is_forbidden: bool,
    /// Notified when other Services may be needed.
    changed: Arc<Notify>,
}

/// A decision about the endpoints of a Service from a cluster.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) plan: Plan<LeftToOthers>,
    /// The export that asks for them.
    pub(super) export: Option<Arc<ServiceExport>>,
    /// True if they are wanted, and the member does not let us list them.
    pub(super) is_forbidden: bool,
}

impl SharedEndpoints {
    /// Creates an index beside that of the Works and clusters.
    pub(crate) fn new(works: &Arc<Mutex<WorkIndex>>) -> Self {
        let index = Index {
            exports: Store::default(),
            collected: Store::by(|slice| collected_of(slice).into_iter().collect()),
            dispatched: Dispatched::default(),
            members: BTreeMap::new(),
        };
        Self {
            works: Arc::clone(works),
            index: Arc::new(Mutex::new(index)),
            queue: Queue::default(),
        }
    }

    /// Returns the queue of the origins that are to be reconciled.
    pub(super) fn queue(&self) -> Queue<Origin> {
        self.queue.clone()
    }

    /// Returns the row of the exports, which wake the endpoints of the Service in every cluster to which it is brought.
    pub(super) fn export_rows(&self) -> Watch<Index, ServiceExport> {
        Watch::new(&self.index, |index| &mut index.exports)
            .wakes(&self.queue, |index, change| {
                let service = &change.key;
                let clusters = index.dispatched.clusters(service);
                let origins = clusters.map(|cluster| {
                    index.notify(cluster);
                    Origin::new(cluster, service.clone())
                });
                origins.collect::<Vec<_>>()
            })
            .wakes_when_known(&self.queue, |index, _| index.origins())
    }

    /// Returns the row of the collected slices, whoever collected them, which wake the endpoints that they are of.
    pub(super) fn collected_rows(&self) -> Watch<Index, EndpointSlice, Origin> {
        let queue = self.queue.clone();
        Watch::new(&self.index, |index| &mut index.collected)
            .follows(move |index, change| {
                for origin in index.collected.concerned(change) {
                    queue.add_paced(origin, PACE);
                }
            })
            .wakes_when_known(&self.queue, |index, _| index.origins())
    }

    /// Adds to the `rows` of Works the origins that they wake here: those of the Services that are brought to a cluster now,
    /// or no longer; and all of a cluster of which a Work that could not be read is gone, for its Services were not known.
    pub(crate) fn add_rows(
        &self,
        rows: Watch<WorkIndex, StoredWork>,
    ) -> Watch<WorkIndex, StoredWork> {
        let (changed, mended) = (Arc::clone(&self.index), Arc::clone(&self.index));
        rows.wakes(&self.queue, move |_, change| {
            let Some(cluster) = cluster_of_execution_namespace(&change.key.namespace) else {
                return Vec::new();
            };
            let services = change.new.iter().flat_map(|work| &work.summary.services);
            let origins = services.map(|service| Origin::new(cluster, service.clone()));
            let mut index = changed.lock();
            let concerned = index.dispatched.replace(&change.key, origins.collect());
            if !concerned.is_empty() {
                index.notify(cluster);
            }
            concerned
        })
        .wakes_when_known(&self.queue, move |_, works| {
            let index = mended.lock();
            let namespaces = works.iter().map(|key| key.namespace.as_str());
            let clusters = namespaces.filter_map(cluster_of_execution_namespace);
            clusters
                .flat_map(|cluster| index.origins_in(cluster))
                .collect::<Vec<_>>()
        })
    }

    /// Wakes all of a cluster after a change of it. One that is gone is forgotten.
    pub(crate) fn observe_cluster(&self, cluster: &str, is_gone: bool) {
        let mut index = self.index.lock();
        if is_gone {
            index.members.remove(cluster);
        }
        self.queue.add_all(index.origins_in(cluster));
    }

    /// Notes a new connection to a member, whose slices have to be listed again, and returns the signal that other
    /// Services may be needed.
    pub(super) fn connect(&self, cluster: &str) -> Arc<Notify> {
        let mut index = self.index.lock();
        let member = index.members.entry(cluster.to_owned());
        let member = member.or_insert_with(InMember::new);
        member.listed.clear();
        Arc::clone(&member.changed)
    }

    /// Returns the exported Services that are brought to a cluster.
    pub(super) fn needed(&self, cluster: &str) -> BTreeSet<Key> {
        self.index.lock().needed(cluster)
    }

    /// Returns the slices that are to be watched in a member.
    pub(super) fn selection(&self, cluster: &str) -> Selection {
        let index = self.index.lock();
        let needed = index.needed(cluster);
        Selection::of(&needed, index.dispatched.services(cluster))
    }

    /// Takes in an event of the slices of a member, which are those that are `selected`.
    pub(super) fn observe_member(
        &self,
        cluster: &str,
        selected: &Selection,
        event: Event<Decoded<EndpointSlice>>,
    ) {
        let is_listed = matches!(event, Event::InitDone);
        let mut index = self.index.lock();
        let Some(member) = index.members.get_mut(cluster) else {
            return;
        };
        let changes = member.slices.observe(event);
        let is_mended = !changes.mended.is_empty();
        let concerned = changes.objects.iter();
        let concerned = concerned.flat_map(|change| member.slices.concerned(change));
        let concerned = concerned.map(|service| Origin::new(cluster, service));
        let concerned: BTreeSet<_> = concerned.collect();
        if !is_listed {
            for origin in concerned {
                self.queue.add_paced(origin, PACE);
            }
            if is_mended {
                self.queue.add_all(index.origins_in(cluster));
            }
            return;
        }
        let was_forbidden = std::mem::take(&mut member.is_forbidden);
        let before = std::mem::replace(&mut member.listed, selected.services().clone());
        let listed = index.dispatched.services(cluster);
        let news =
            listed.filter(|service| was_forbidden || is_mended || !before.contains(*service));
        let news = news.map(|service| Origin::new(cluster, service.clone()));
        self.queue.add_all(concerned.into_iter().chain(news));
    }

    /// Forgets the slices of a member, which nobody needs.
    pub(super) fn forget_slices(&self, cluster: &str) {
        let mut index = self.index.lock();
        if let Some(member) = index.members.get_mut(cluster) {
            member.slices = InMember::new().slices;
            member.listed.clear();
        }
    }

    /// Notes that a member does not let us list slices.
    pub(super) fn forbid(&self, cluster: &str) {
        let mut index = self.index.lock();
        let Some(member) = index.members.get_mut(cluster) else {
            return;
        };
        if std::mem::replace(&mut member.is_forbidden, true) {
            return;
        }
        self.queue.add_all(index.origins_in(cluster));
    }

    /// Returns everything of which there are, or may have to be, collected slices.
    pub(super) fn origins(&self) -> Vec<Origin> {
        self.index.lock().origins()
    }

    /// Decides about the endpoints of a Service from a cluster; `None` while the exports and the slices that
    /// were collected before are not known.
    pub(super) fn decide(&self, origin: &Origin) -> Option<Decision> {
        let Origin { cluster, service } = origin;
        let works = self.works.lock();
        let view = cached(&works.clusters, &Key::cluster_scoped(cluster));
        let has_unread_works = works.has_unread_works(cluster);
        drop(works);
        let index = self.index.lock();
        if !index.exports.is_listed() || !index.collected.is_listed() {
            return None;
        }
        let export = cached(&index.exports, service);
        let work = match index.dispatched.contains(origin) {
            true => Cached::Present(()),
            false if has_unread_works => Cached::Unread,
            false => Cached::Absent,
        };
        let need = Need::of(borrowed(&view), borrowed(&export), work);
        let member = index.members.get(cluster);
        let known = member.filter(|member| {
            let mut unread = member.slices.unread().iter();
            member.listed.contains(service) && !unread.any(|key| key.namespace == service.namespace)
        });
        let sources = known.map(|member| member.slices.of(service).cloned().collect::<Vec<_>>());
        let collected: Vec<_> = index.collected.of(origin).cloned().collect();
        let is_forbidden = need == Need::Wanted && member.is_some_and(|member| member.is_forbidden);
        drop(index);
        let facts = CollectionFacts {
            kind: ClusterKind::Cluster,
            cluster,
            service,
            need,
            sources: sources.as_deref(),
            collected: &collected,
        };
        Some(Decision {
            plan: plan(&facts),
            export: match export {
                Cached::Present(export) => Some(export),
                Cached::Absent | Cached::Unread => None,
            },
            is_forbidden,
        })
    }

    /// Returns the numbers of slices that we collected, by cluster.
    pub(crate) fn collected(&self) -> BTreeMap<String, usize> {
        let index = self.index.lock();
        let mut counts = BTreeMap::new();
        for (_, slice) in index.collected.iter() {
            if let Some(cluster) = slice_cluster(slice)
                && is_ours(ClusterKind::Cluster, &slice.metadata)
            {
                *counts.entry(cluster.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}

impl InMember {
    fn new() -> Self {
        Self {
            slices: Store::by(|slice| source_service(&slice.metadata).into_iter().collect()),
            listed: BTreeSet::new(),
            is_forbidden: false,
            changed: Arc::default(),
        }
    }
}

impl Index {
    /// Tells a member's watch that other Services may be needed.
    fn notify(&self, cluster: &str) {
        if let Some(member) = self.members.get(cluster) {
            member.changed.notify_one();
        }
    }

    fn origins(&self) -> Vec<Origin> {
        let exported = self.exports.keys().flat_map(|service| {
            let clusters = self.dispatched.clusters(service);
            clusters.map(|cluster| Origin::new(cluster, service.clone()))
        });
        let all: BTreeSet<Origin> = exported.chain(self.of_collected().cloned()).collect();
        all.into_iter().collect()
    }

    /// Returns the origins in a cluster of which there are, or may have to be, collected slices.
    fn origins_in(&self, cluster: &str) -> BTreeSet<Origin> {
        let services = self.dispatched.services(cluster);
        let brought = services.map(|service| Origin::new(cluster, service.clone()));
        let collected = self.of_collected();
        let collected = collected.filter(|origin| origin.cluster == cluster);
        brought.chain(collected.cloned()).collect()
    }

    /// Iterates over the origins of the collected slices, once for each slice.
    fn of_collected(&self) -> impl Iterator<Item = &Origin> {
        let keys = self.collected.keys();
        keys.flat_map(|key| self.collected.targets(key))
    }

    /// Returns the exported Services that are brought to a cluster.
    fn needed(&self, cluster: &str) -> BTreeSet<Key> {
        let services = self.dispatched.services(cluster);
        let exported = services.filter(|service| self.exports.get(service).is_some());
        exported.cloned().collect()
    }
}

/// Returns the origin of a collected slice.
fn collected_of(slice: &EndpointSlice) -> Option<Origin> {
    let service = slice_service(ClusterKind::Cluster, slice)?;
    Some(Origin::new(slice_cluster(slice)?, service))
}

fn cached<K>(store: &Store<K>, key: &Key) -> Cached<Arc<K>> {
    match store.get(key) {
        Some(object) => Cached::Present(Arc::clone(object)),
        None if store.exists(key) => Cached::Unread,
        None => Cached::Absent,
    }
}

fn borrowed<K>(cached: &Cached<Arc<K>>) -> Cached<&K> {
    match cached {
        Cached::Present(object) => Cached::Present(object),
        Cached::Absent => Cached::Absent,
        Cached::Unread => Cached::Unread,
    }
}

#[cfg(test)]
mod tests;
