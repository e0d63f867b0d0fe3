//! The changes that wake a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::cluster_view::PULL;
use karmada_api::condition::TRUE;
use karmada_api::names::CLUSTER_NAMESPACE;
use karmada_api::{
    ClusterResourceBinding, ClusterView, ResourceBinding, cluster_of_execution_namespace,
    execution_namespace,
};
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::members::MemberQueues;
use karmada_runtime::partial::Partial;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::lease::Renewal;
use objects::{Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::cluster::{ClusterObservation, ExecutionNamespace, READY};
use serde_json::Value;
use tokio::time::Instant;

use crate::fleet::Fleet;
use crate::heard::Heard;
use crate::metrics::Reachable;
use crate::stored::{IsSystem, StoredCluster, Targets};

/// The clusters and what decides about them behind a lock, and the queues of what their changes wake.
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queue: Queue<Key>,
    probes: MemberQueues<Key>,
}

#[derive(Default)]
struct Index {
    clusters: Cache<StoredCluster>,
    namespaces: Cache<Partial<Namespace, IsSystem>>,
    bindings: Cache<Partial<ResourceBinding, Targets>>,
    cluster_bindings: Cache<Partial<ClusterResourceBinding, Targets>>,
    /// The newest from the members.
    observed: BTreeMap<String, ClusterObservation>,
    /// What was heard of those that report on themselves.
    heard: Heard,
    /// The clusters that are not ready, since when this process knows it.
    unready: BTreeMap<String, Instant>,
}

/// A cluster and what decides about it.
pub(crate) struct Known {
    /// As the server stores it.
    pub(crate) cluster: Value,
    /// The reference of Events about it.
    pub(crate) stored: Arc<StoredCluster>,
    pub(crate) namespace: Option<ExecutionNamespace>,
    /// The namespace's uid.
    pub(crate) namespace_uid: Option<String>,
    pub(crate) is_targeted: bool,
    pub(crate) observed: Option<ClusterObservation>,
    /// The time for which nothing was heard of it.
    pub(crate) silent_for: Duration,
    /// The time for which it has been known as not ready, if it is not.
    pub(crate) unready_for: Option<Duration>,
}

impl Known {
    /// Returns `true` if the cluster reports on itself, and is not about to leave.
    pub(crate) fn reports(&self) -> bool {
        self.cluster["spec"]["syncMode"] == PULL && !self.cluster.is_deleting()
    }
}

impl SharedIndex {
    pub(crate) fn new(queue: Queue<Key>, probes: MemberQueues<Key>) -> Self {
        Self {
            index: Mutex::default(),
            queue,
            probes,
        }
    }

    /// Watches every kind that decides about clusters.
    pub(crate) fn watch(
        self: &Arc<Self>,
        program: &mut Program,
        client: &Client,
        fleet: &Arc<Fleet>,
        reachable: &Reachable,
    ) {
        let (all, selected) = (Api::all(client.clone()), Config::default());
        let observe = self.observer(fleet, reachable);
        program.watch("clusters", all, selected, observe);
        let leases = Api::namespaced(client.clone(), CLUSTER_NAMESPACE);
        let shared = Arc::clone(self);
        program.watch("leases", leases, Config::default(), move |event| {
            shared.observe_lease(event);
        });
        let (all, selected) = (Api::all(client.clone()), Config::default());
        let shared = Arc::clone(self);
        program.watch("namespaces", all, selected, move |event| {
            shared.observe_namespace(event);
        });
        let (all, selected) = (Api::all(client.clone()), Config::default());
        let shared = Arc::clone(self);
        program.watch("resourcebindings", all, selected, move |event| {
            let changes = shared.index.lock().bindings.observe(event);
            shared.wake_left(&changes);
        });
        let (all, selected) = (Api::all(client.clone()), Config::default());
        let shared = Arc::clone(self);
        program.watch("clusterresourcebindings", all, selected, move |event| {
            let changes = shared.index.lock().cluster_bindings.observe(event);
            shared.wake_left(&changes);
        });
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.undecoded());
    }

    /// Watches one cluster alone, from inside it.
    pub(crate) fn watch_own(
        self: &Arc<Self>,
        program: &mut Program,
        (client, cluster): (&Client, &str),
        fleet: &Arc<Fleet>,
        reachable: &Reachable,
    ) {
        let own = Config::default().fields(&format!("metadata.name={cluster}"));
        let (all, observe) = (Api::all(client.clone()), self.observer(fleet, reachable));
        program.watch_elsewhere("clusters", all, own, observe);
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.undecoded());
    }

    /// Returns what takes in the events of clusters.
    fn observer(
        self: &Arc<Self>,
        fleet: &Arc<Fleet>,
        reachable: &Reachable,
    ) -> impl FnMut(Event<Decoded<StoredCluster>>) + Send + use<> {
        let (shared, fleet, reachable) = (Arc::clone(self), Arc::clone(fleet), reachable.clone());
        move |event| {
            for gone in shared.observe_cluster(event) {
                fleet.disconnect(&gone);
                reachable.forget(&gone);
            }
        }
    }

    /// Counts the silence of every cluster from now.
    pub(crate) fn begin_to_listen(&self) {
        self.index.lock().heard.begin();
    }

    /// Forgets what was observed of every cluster, so that nothing is written of one before it has answered again.
    pub(crate) fn forget_observed(&self) {
        self.index.lock().observed.clear();
    }

    /// Returns the names of all clusters.
    pub(crate) fn names(&self) -> Vec<String> {
        let index = self.index.lock();
        let keys = index.clusters.iter().map(|(key, _)| key);
        keys.map(|key| key.name.clone()).collect()
    }

    /// Returns the cluster `name`.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<StoredCluster>> {
        let key = Key::cluster_scoped(name);
        self.index.lock().clusters.get(&key).map(Arc::clone)
    }

    /// Returns the cluster `name` with what decides about it.
    pub(crate) fn known(&self, name: &str) -> Option<Known> {
        let stored = self.cluster(name)?;
        let index = self.index.lock();
        let key = Key::cluster_scoped(execution_namespace(name));
        let namespace = index.namespaces.get(&key);
        let unready = index.unready.get(name);
        Some(Known {
            cluster: stored.part.value(),
            // Only then it counts.
            is_targeted: stored.meta().deletion_timestamp.is_some() && index.is_targeted(name),
            stored,
            namespace: namespace.map(|namespace| ExecutionNamespace {
                is_labelled: namespace.part.0,
                is_deleting: namespace.meta().deletion_timestamp.is_some(),
            }),
            namespace_uid: namespace.and_then(|namespace| namespace.meta().uid.clone()),
            observed: index.observed.get(name).cloned(),
            silent_for: index.heard.silent_for(name),
            unready_for: unready.map(Instant::elapsed),
        })
    }

    /// Returns the newest from a member.
    pub(crate) fn observed(&self, name: &str) -> ClusterObservation {
        let index = self.index.lock();
        index.observed.get(name).cloned().unwrap_or_default()
    }

    /// Takes in the newest from a member, and wakes its cluster if it is news.
    pub(crate) fn observe(&self, name: &str, observed: ClusterObservation) {
        let mut index = self.index.lock();
        let key = Key::cluster_scoped(name);
        // It may have gone while its member was asked.
        if index.clusters.get(&key).is_none() || index.observed.get(name) == Some(&observed) {
            return;
        }
        index.observed.insert(name.to_owned(), observed);
        drop(index);
        self.queue.add(key);
    }

    /// Returns the names of the clusters that are gone.
    fn observe_cluster(&self, event: Event<Decoded<StoredCluster>>) -> Vec<String> {
        let mut index = self.index.lock();
        let changes = index.clusters.observe(event);
        let mut gone = Vec::new();
        for Transition { key, old, new } in changes {
            let Some(new) = new.map(|new| new.part.view()) else {
                index.observed.remove(&key.name);
                index.unready.remove(&key.name);
                index.heard.forget(&key.name);
                self.probes.remove(&key.name);
                gone.push(key.name);
                continue;
            };
            if is_ready(&new) {
                index.unready.remove(&key.name);
            } else {
                let since = index.unready.entry(key.name.clone());
                since.or_insert_with(Instant::now);
            }
            let old = old.map(|old| old.part.view());
            let is_sign = old.as_ref().is_some_and(|old| ready(old) != ready(&new));
            index.heard.cluster(&key.name, is_sign);
            let is_probed_alike = old.is_some_and(|old| {
                old.spec.has_same_access(&new.spec)
                    && old.spec.sync_mode == new.spec.sync_mode
                    && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            });
            if !is_probed_alike {
                self.probes.of(&key.name).add(key.clone());
            }
            self.queue.add(key);
        }
        gone
    }

    fn observe_lease(&self, event: Event<Decoded<Lease>>) {
        if let Event::Apply(Decoded::Valid(lease)) | Event::InitApply(Decoded::Valid(lease)) = event
            && let Some(spec) = &lease.spec
        {
            let renewal = Renewal::from(spec);
            self.index
                .lock()
                .heard
                .lease(lease.metadata.name(), renewal);
        }
    }

    fn observe_namespace(&self, event: Event<Decoded<Partial<Namespace, IsSystem>>>) {
        let changes = self.index.lock().namespaces.observe(event);
        for change in changes {
            if let Some(cluster) = cluster_of_execution_namespace(&change.key.name) {
                self.queue.add(Key::cluster_scoped(cluster));
            }
        }
    }

    /// Wakes the clusters that bindings have left.
    fn wake_left<K>(&self, changes: &[Transition<Partial<K, Targets>>]) {
        for Transition { old, new, .. } in changes {
            let now = new.as_ref().map(|new| &new.part.0);
            let before = old.iter().flat_map(|old| &old.part.0);
            let left = before.filter(|name| !now.is_some_and(|now| now.contains(*name)));
            self.queue.add_all(left.map(Key::cluster_scoped));
        }
    }

    fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        let index = self.index.lock();
        vec![
            ("Cluster", index.clusters.undecoded()),
            ("Namespace", index.namespaces.undecoded()),
            ("ResourceBinding", index.bindings.undecoded()),
            ("ClusterResourceBinding", index.cluster_bindings.undecoded()),
        ]
    }
}

impl Index {
    fn is_targeted(&self, cluster: &str) -> bool {
        let bindings = self.bindings.iter().map(|(_, binding)| &binding.part);
        let cluster_bindings = self.cluster_bindings.iter();
        let mut all = bindings.chain(cluster_bindings.map(|(_, binding)| &binding.part));
        all.any(|Targets(targets)| targets.contains(cluster))
    }
}

fn is_ready(cluster: &ClusterView) -> bool {
    ready(cluster).is_some_and(|status| status == TRUE)
}

/// Returns the status of the condition `Ready`.
fn ready(cluster: &ClusterView) -> Option<&str> {
    let mut conditions = cluster.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == READY)?;
    Some(&ready.status)
}
