//! What is known of exports, members and collected slices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::ServiceExport;
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use traffic::endpoints::{
    CollectionFacts, CollectionPlan, Need, Selection, is_ours, plan, slice_cluster, slice_service,
    source_service,
};
use traffic::ingress::Cached;

use super::dispatched::Dispatched;
use super::origin::Origin;
use super::slices::Slices;
use crate::index::SharedIndex;
use crate::stored::StoredWork;

/// The least time between two writes of the endpoints of a Service from a cluster: a rollout there changes them with
/// each pod.
const PACE: Duration = Duration::from_secs(1);

/// What is known behind a lock, and the queue of those that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedEndpoints {
    works: Arc<SharedIndex>,
    index: Mutex<Index>,
    queue: Queue<Origin>,
}

#[derive(Debug, Default)]
struct Index {
    exports: Cache<ServiceExport>,
    /// True once every export has been listed.
    has_exports: bool,
    collected: Slices<Origin>,
    /// True once every collected slice has been listed.
    has_collected: bool,
    dispatched: Dispatched,
    members: BTreeMap<String, InMember>,
}

/// The slices of a member to which there was a connection.
#[derive(Debug, Default)]
struct InMember {
    slices: Slices<Key>,
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
    pub(super) plan: CollectionPlan,
    /// The export that asks for them.
    pub(super) export: Option<Arc<ServiceExport>>,
    /// True if they are wanted, and the member does not let us list them.
    pub(super) is_forbidden: bool,
}

impl SharedEndpoints {
    /// Creates an index beside that of the Works and clusters.
    pub(crate) fn new(works: Arc<SharedIndex>) -> Self {
        Self {
            works,
            index: Mutex::default(),
            queue: Queue::default(),
        }
    }

    /// Returns the queue of what is to be reconciled.
    pub(super) fn queue(&self) -> Queue<Origin> {
        self.queue.clone()
    }

    /// Takes in an event of the exports.
    pub(super) fn observe_exports(&self, event: Event<Decoded<ServiceExport>>) {
        let is_listed = matches!(event, Event::InitDone);
        let mut index = self.index.lock();
        let mut concerned = Vec::new();
        let unread = index.exports.unread().len();
        for Transition { key, .. } in index.exports.observe(event) {
            for cluster in index.dispatched.clusters(&key) {
                index.notify(cluster);
                concerned.push(Origin::new(cluster, key.clone()));
            }
        }
        let is_first = is_listed && !std::mem::replace(&mut index.has_exports, true);
        if is_first || index.exports.unread().len() < unread {
            concerned = index.origins();
        }
        drop(index);
        self.queue.add_all(concerned);
    }

    /// Takes in an event of the collected slices, whoever collected them.
    pub(super) fn observe_collected(&self, event: Event<Decoded<EndpointSlice>>) {
        let is_listed = matches!(event, Event::InitDone);
        let mut index = self.index.lock();
        let unread = index.collected.cache.unread().len();
        let concerned = index.collected.observe(event, collected_of);
        let is_first = is_listed && !std::mem::replace(&mut index.has_collected, true);
        if is_first || index.collected.cache.unread().len() < unread {
            let all = index.origins();
            drop(index);
            self.queue.add_all(all);
            return;
        }
        drop(index);
        self.wake_paced(concerned);
    }

    /// Takes in the change of a Work of a cluster.
    pub(crate) fn observe_work(&self, cluster: &str, change: &Transition<StoredWork>) {
        let services = change.new.iter().flat_map(|work| &work.summary.services);
        let origins = services.map(|service| Origin::new(cluster, service.clone()));
        let mut index = self.index.lock();
        let concerned = index.dispatched.replace(&change.key, origins.collect());
        if !concerned.is_empty() {
            index.notify(cluster);
        }
        drop(index);
        self.queue.add_all(concerned);
    }

    /// Wakes all of a cluster after a change of it. What is known of one that is gone is forgotten.
    pub(crate) fn observe_cluster(&self, cluster: &str) {
        let is_gone = self.works.is_gone(cluster);
        let mut index = self.index.lock();
        if is_gone {
            index.members.remove(cluster);
        }
        let concerned = index.origins_in(cluster);
        drop(index);
        self.queue.add_all(concerned);
    }

    /// Notes a new connection to a member, whose slices have to be listed again, and returns what is notified when other
    /// Services may be needed.
    pub(super) fn connect(&self, cluster: &str) -> Arc<Notify> {
        let mut index = self.index.lock();
        let member = index.members.entry(cluster.to_owned()).or_default();
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
        let unread = member.slices.cache.unread().len();
        let concerned = member
            .slices
            .observe(event, |slice| source_service(&slice.metadata));
        let is_mended = member.slices.cache.unread().len() < unread;
        let of_cluster = |service| Origin::new(cluster, service);
        let concerned: Vec<_> = concerned.into_iter().map(of_cluster).collect();
        if !is_listed {
            let mended = is_mended.then(|| index.origins_in(cluster));
            drop(index);
            self.wake_paced(concerned);
            self.queue.add_all(mended.into_iter().flatten());
            return;
        }
        let was_forbidden = std::mem::take(&mut member.is_forbidden);
        let before = std::mem::replace(&mut member.listed, selected.services().clone());
        let is_news = |service: &&Key| was_forbidden || is_mended || !before.contains(service);
        let listed = index.dispatched.services(cluster).filter(is_news);
        let listed = listed.cloned().map(of_cluster).collect::<Vec<_>>();
        drop(index);
        self.queue.add_all(concerned);
        self.queue.add_all(listed);
    }

    /// Forgets the slices of a member, which nobody needs.
    pub(super) fn forget_slices(&self, cluster: &str) {
        let mut index = self.index.lock();
        if let Some(member) = index.members.get_mut(cluster) {
            member.slices = Slices::default();
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
        let concerned = index.origins_in(cluster);
        drop(index);
        self.queue.add_all(concerned);
    }

    /// Wakes all of a cluster of which a Work that could not be read is gone: what it brought was not known.
    pub(crate) fn observe_unread_gone(&self, cluster: &str) {
        let concerned = self.index.lock().origins_in(cluster);
        self.queue.add_all(concerned);
    }

    /// Returns everything of which there are, or may have to be, collected slices.
    pub(super) fn origins(&self) -> Vec<Origin> {
        self.index.lock().origins()
    }

    /// Decides about the endpoints of a Service from a cluster; `None` while it is not known what was exported and
    /// collected before.
    pub(super) fn decide(&self, origin: &Origin) -> Option<Decision> {
        let Origin { cluster, service } = origin;
        let view = self.works.cached_cluster(cluster);
        let has_unread_works = self.works.has_unread_works(cluster);
        let index = self.index.lock();
        if !index.has_exports || !index.has_collected {
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
            member.listed.contains(service) && !member.slices.has_unread_in(&service.namespace)
        });
        let sources = known.map(|member| member.slices.of(service));
        let collected = index.collected.of(origin);
        let is_forbidden = need == Need::Wanted && member.is_some_and(|member| member.is_forbidden);
        drop(index);
        let facts = CollectionFacts {
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
        for (_, slice) in index.collected.cache.iter() {
            if let Some(cluster) = slice_cluster(slice).filter(|_| is_ours(&slice.metadata)) {
                *counts.entry(cluster.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// Returns the numbers of objects that cannot be read, by kind.
    pub(crate) fn undecoded(&self) -> [(&'static str, Undecoded); 2] {
        let index = self.index.lock();
        [
            (ServiceExport::KIND, index.exports.undecoded()),
            ("EndpointSlice", index.collected.cache.undecoded()),
        ]
    }

    fn wake_paced(&self, origins: impl IntoIterator<Item = Origin>) {
        for origin in origins {
            self.queue.add_paced(origin, PACE);
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
        let exports = self.exports.iter().map(|(service, _)| service);
        let exported = exports.flat_map(|service| {
            let clusters = self.dispatched.clusters(service);
            clusters.map(|cluster| Origin::new(cluster, service.clone()))
        });
        let collected = self.collected.groups().cloned();
        let all: BTreeSet<Origin> = exported.chain(collected).collect();
        all.into_iter().collect()
    }

    /// Returns what of a cluster there are, or may have to be, collected slices.
    fn origins_in(&self, cluster: &str) -> BTreeSet<Origin> {
        let services = self.dispatched.services(cluster);
        let brought = services.map(|service| Origin::new(cluster, service.clone()));
        let collected = self.collected.groups();
        let collected = collected.filter(|origin| origin.cluster == cluster);
        brought.chain(collected.cloned()).collect()
    }

    /// Returns the exported Services that are brought to a cluster.
    fn needed(&self, cluster: &str) -> BTreeSet<Key> {
        let services = self.dispatched.services(cluster);
        let exported = services.filter(|service| self.exports.get(service).is_some());
        exported.cloned().collect()
    }
}

/// Returns what a collected slice has endpoints of.
fn collected_of(slice: &EndpointSlice) -> Option<Origin> {
    let namespace = slice.metadata.namespace.as_ref()?;
    let service = Key::new(namespace, slice_service(slice)?);
    Some(Origin::new(slice_cluster(slice)?, service))
}

fn cached<K>(cache: &Cache<K>, key: &Key) -> Cached<Arc<K>> {
    match cache.get(key) {
        Some(object) => Cached::Present(Arc::clone(object)),
        None if cache.unread().contains(key) => Cached::Unread,
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
