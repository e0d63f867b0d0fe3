//! The clusters, and the facts that decide about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::cluster_view::PULL;
use karmada_api::condition::TRUE;
use karmada_api::{
    ClusterResourceBinding, ClusterView, ResourceBinding, clusters_by_namespace,
    execution_namespace,
};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::partial::Partial;
use karmada_runtime::store::Store;
use kube::Resource;
use objects::lease::Renewal;
use objects::{Key, Metadata};
use propagation_rules::cluster::{ClusterObservation, ExecutionNamespace, READY};
use serde_json::Value;
use tokio::time::Instant;

use crate::heard::Heard;
use crate::stored::{IsSystem, StoredCluster, Targets};

/// The topic of the writes for a cluster.
pub(crate) const CLUSTER: &str = "cluster";

/// The watched objects, and the observations of members.
pub(crate) struct Index {
    pub(crate) clusters: Store<StoredCluster>,
    pub(crate) namespaces: Store<Partial<Namespace, IsSystem>>,
    pub(crate) bindings: Store<Partial<ResourceBinding, Targets>>,
    pub(crate) cluster_bindings: Store<Partial<ClusterResourceBinding, Targets>>,
    /// The slices in which nodes are published, by cluster. They are watched only if that is asked for.
    pub(crate) node_slices: Store<EndpointSlice, String>,
    /// The newest from the members. Nothing is written of one that has not answered.
    pub(crate) observed: BTreeMap<String, ClusterObservation>,
    /// The last signs of those that report on themselves.
    pub(crate) heard: Heard,
    /// The clusters that are not ready, since when this process knows it.
    unready: BTreeMap<String, Instant>,
}

/// A cluster and the facts that decide about it.
pub(crate) struct Known {
    /// As the server stores it.
    pub(crate) cluster: Value,
    /// The reference of Events about it.
    pub(crate) stored: Arc<StoredCluster>,
    pub(crate) namespace: Option<ExecutionNamespace>,
    pub(crate) is_targeted: bool,
    /// The slices with its nodes; `None` if none are watched.
    pub(crate) node_slices: Option<Vec<Arc<EndpointSlice>>>,
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

impl Index {
    /// Creates an index whose clusters and namespaces `expectations` wait for.
    pub(crate) fn new(expectations: &Expectations) -> Self {
        Self {
            clusters: Store::default().expecting(expectations, &()),
            namespaces: Store::default().expecting(expectations, &()),
            bindings: Store::default(),
            cluster_bindings: Store::default(),
            node_slices: Store::by(clusters_by_namespace::<EndpointSlice>)
                .expecting(expectations, &()),
            observed: BTreeMap::new(),
            heard: Heard::default(),
            unready: BTreeMap::new(),
        }
    }

    /// Returns the cluster `name`.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<StoredCluster>> {
        self.clusters.get(&Key::cluster_scoped(name)).cloned()
    }

    /// Returns the cluster `name` with the facts that decide about it.
    pub(crate) fn known(&self, name: &str) -> Option<Known> {
        let stored = self.cluster(name)?;
        let key = Key::cluster_scoped(execution_namespace(name));
        let namespace = self.namespaces.get(&key);
        let unready = self.unready.get(name);
        Some(Known {
            cluster: stored.part.value(),
            // Only then it counts.
            is_targeted: stored.meta().deletion_timestamp.is_some() && self.is_targeted(name),
            stored,
            namespace: namespace.map(|namespace| ExecutionNamespace {
                uid: namespace.meta().uid.clone(),
                is_labelled: namespace.part.0,
                is_deleting: namespace.meta().deletion_timestamp.is_some(),
            }),
            node_slices: (self.node_slices.is_listed())
                .then(|| self.node_slices.of(&name.to_owned()).cloned().collect()),
            observed: self.observed.get(name).cloned(),
            silent_for: self.heard.silent_for(name),
            unready_for: unready.map(Instant::elapsed),
        })
    }

    fn is_targeted(&self, cluster: &str) -> bool {
        let bindings = self.bindings.iter().map(|(_, binding)| &binding.part);
        let cluster_bindings = self.cluster_bindings.iter();
        let mut all = bindings.chain(cluster_bindings.map(|(_, binding)| &binding.part));
        all.any(|Targets(targets)| targets.contains(cluster))
    }

    /// Takes in the newest from a member, and returns the key of its cluster if it is news.
    pub(crate) fn observe(&mut self, name: &str, observed: ClusterObservation) -> Option<Key> {
        let key = Key::cluster_scoped(name);
        // It may have gone while its member was asked.
        if self.clusters.get(&key).is_none() || self.observed.get(name) == Some(&observed) {
            return None;
        }
        self.observed.insert(name.to_owned(), observed);
        Some(key)
    }

    /// Follows the cluster `name` from one version to the next.
    pub(crate) fn follow(
        &mut self,
        name: &str,
        old: Option<&ClusterView>,
        new: Option<&ClusterView>,
    ) {
        let Some(new) = new else {
            self.observed.remove(name);
            self.unready.remove(name);
            self.heard.forget(name);
            return;
        };
        let status = ready(new);
        if status == Some(TRUE) {
            self.unready.remove(name);
        } else {
            let since = self.unready.entry(name.to_owned());
            since.or_insert_with(Instant::now);
        }
        let is_sign = old.is_some_and(|old| ready(old) != status);
        self.heard.cluster(name, is_sign);
    }

    /// Takes in the Lease of a cluster.
    pub(crate) fn observe_lease(&mut self, lease: &Lease) {
        if let Some(spec) = &lease.spec {
            self.heard.lease(lease.metadata.name(), Renewal::from(spec));
        }
    }
}

/// Returns the status of the condition `Ready`.
fn ready(cluster: &ClusterView) -> Option<&str> {
    let mut conditions = cluster.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == READY)?;
    Some(&ready.status)
}
