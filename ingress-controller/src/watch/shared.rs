//! The watched objects as the loops read them, and the queues that these wake.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::MultiClusterIngress;
use karmada_runtime::queue::Queue;
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use traffic::ClusterKind;
use traffic::ingress::{Decision, Desired, Settings, desired, excluded};

use crate::enforcement::Enforcement;
use crate::index::{Backends, Index};
use crate::routes::Routes;

/// The queues of the loops, which share no worker.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// Ingresses, for their status.
    pub(crate) status: Queue<Key>,
    /// Ingresses, for each load balancer.
    pub(crate) gateways: Vec<Queue<Key>>,
    /// Services, for their exports.
    pub(crate) exports: Queue<Key>,
    /// Classes of Gateways.
    pub(crate) classes: Queue<Key>,
    /// Gateways of the Karmada API, the parents of routes.
    pub(crate) parents: Queue<Key>,
}

impl Queues {
    /// Creates the queues of as many load balancers.
    pub(crate) fn new(gateways: usize) -> Self {
        Self {
            status: Queue::default(),
            gateways: std::iter::repeat_with(Queue::default)
                .take(gateways)
                .collect(),
            exports: Queue::default(),
            classes: Queue::default(),
            parents: Queue::default(),
        }
    }

    /// Returns those of ingresses.
    pub(super) fn ingresses(&self) -> Vec<Queue<Key>> {
        let mut all = self.gateways.clone();
        all.insert(0, self.status.clone());
        all
    }
}

/// The index behind a lock, and the queues of those that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    pub(super) index: Arc<Mutex<Index>>,
    pub(super) queues: Queues,
    /// How far the loops have followed the changes.
    pub(crate) enforcement: Arc<Enforcement>,
    /// Notified when another moment may be that of the next expiry.
    pub(super) expiries: Arc<Notify>,
    /// Notified of a host without known addresses.
    hosts: Arc<Notify>,
}

impl SharedIndex {
    /// Creates an empty index. Without `backends`, Services and `EndpointSlice`s are not watched.
    pub(crate) fn new(queues: Queues, backends: Option<Backends>) -> Self {
        let enforcement = Enforcement::new(queues.gateways.len());
        Self {
            index: Arc::new(Mutex::new(Index::new(backends))),
            enforcement: Arc::new(enforcement),
            queues,
            expiries: Arc::default(),
            hosts: Arc::default(),
        }
    }

    /// Reads clusters of this kind.
    pub(crate) fn on(self, kind: ClusterKind) -> Self {
        if kind == ClusterKind::MemberCluster {
            self.index.lock().read_hub();
        }
        self
    }

    /// Reads `HTTPRoute`s, too.
    pub(crate) fn reading(self, routes: Routes) -> Self {
        self.index.lock().routes = routes;
        self
    }

    /// Reads from the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
    }

    /// Returns the keys of all ingresses.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.read(|index| index.keys().cloned().collect())
    }

    /// Returns the ingress `key`, if it decodes, and the decision about it.
    pub(crate) fn decide(
        &self,
        key: &Key,
        settings: &Settings,
    ) -> (Option<Arc<MultiClusterIngress>>, Decision) {
        let mut index = self.index.lock();
        let (ingress, decision) = index.decide(key, &settings.controller);
        index.set_left(key, decision == Decision::Leave);
        (ingress, decision)
    }

    /// Returns the desired state of the load balancer, which holds endpoints of the clusters `held`, for
    /// the ingress `key`.
    pub(crate) fn desired(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        held: BTreeSet<String>,
        settings: &Settings,
    ) -> Desired {
        let mut index = self.index.lock();
        let status = ingress.status.as_ref();
        let blocked = status.and_then(|status| status.traffic_block_clusters.as_deref());
        let mut desired = desired(key, ingress, &held, &*index, settings);
        if index.set_hosts(key, desired.names()) {
            self.hosts.notify_one();
        }
        desired.excluded = excluded(held, blocked.unwrap_or_default(), &*index);
        desired
    }

    /// Returns the notification of a host without known addresses.
    pub(crate) fn new_hosts(&self) -> Arc<Notify> {
        Arc::clone(&self.hosts)
    }

    /// Takes in the addresses of a host, and wakes the ingresses behind which it is, if they changed.
    pub(crate) fn observe_host(&self, host: &str, found: Vec<IpAddr>) {
        let woken = self.index.lock().observe_host(host, found);
        wake(&self.queues.ingresses(), &woken);
    }

    /// Takes in a look at the clock, wakes the ingresses that it concerns, and returns the moment of the next expiry.
    pub(super) fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut index = self.index.lock();
        wake(&self.queues.ingresses(), &index.expire(now));
        index.decided.next_expiry()
    }
}

/// Adds `keys` to each of `queues`.
pub(super) fn wake<'a>(queues: &[Queue<Key>], keys: impl IntoIterator<Item = &'a Key>) {
    let keys: Vec<&Key> = keys.into_iter().collect();
    for queue in queues {
        queue.add_all(keys.iter().copied().cloned());
    }
}
