//! The changes in the Karmada API that wake an ingress.

mod backends;
mod expiries;
mod exports;
pub(crate) mod routes;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, MultiClusterIngress, Remedy};
use karmada_runtime::alarm;
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use traffic::endpoints::COLLECTED;
use traffic::ingress::{
    Admission, ControllerName, Decision, Desired, ExportChange, Exporter, Held, Settings,
    cut_of_left, desired, excluded, services,
};

use self::exports::routing;
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
        }
    }
}

/// The index behind a lock, and the queues of those that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queues: Queues,
    /// How far the loops have followed what the changes ask of them.
    pub(crate) enforcement: Enforcement,
    /// Notified when another moment is that of the next expiry.
    expiries: Arc<Notify>,
    /// Notified when there is a host whose addresses are not known.
    hosts: Arc<Notify>,
}

impl SharedIndex {
    /// Creates an empty index. Without `backends`, Services and `EndpointSlice`s are not watched.
    pub(crate) fn new(queues: Queues, backends: Option<Backends>) -> Self {
        Self {
            index: Mutex::new(Index::new(backends)),
            enforcement: Enforcement::new(queues.gateways.len()),
            queues,
            expiries: Arc::default(),
            hosts: Arc::default(),
        }
    }

    /// Reads `HTTPRoute`s, too.
    pub(crate) fn reading(mut self, routes: Routes) -> Self {
        self.index.get_mut().routes = Some(routes);
        self
    }

    /// Watches every kind that decides about ingresses.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, client: &Client) {
        let all = Config::default;
        let mut to = Watching {
            program,
            client,
            index: self,
        };
        to.start("ingresses", all(), Index::observe_ingress);
        to.start("classes", all(), Index::observe_class);
        to.start("clusters", all(), Index::observe_cluster);
        to.start("bindings", all(), Index::observe_binding);
        let (backends, secrets) = {
            let index = self.index.lock();
            let backends = index.backends.as_ref();
            (
                backends.is_some(),
                backends.is_some_and(|b| b.secrets.is_some()),
            )
        };
        if secrets {
            // No other type: those of clients and of registries are nobody's business.
            let tls = all().fields("type=kubernetes.io/tls");
            to.start("secrets", tls, Index::observe_secret);
        }
        if backends {
            to.start("services", all(), Index::observe_template);
            to.start("slices", all().labels(COLLECTED), Index::observe_slice);
            to.start("remedies", all(), Index::observe_remedy);
            let (shared, changed) = (Arc::clone(self), Arc::clone(&self.expiries));
            alarm::spawn(program, "expiries", changed, move |now| {
                shared.observe(|index| index.expire(now));
                shared.index.lock().next_expiry()
            });
        }
        let shared = Arc::clone(self);
        program.report_undecoded(move || shared.index.lock().undecoded());
    }

    /// Returns the keys of all ingresses.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.index.lock().keys().cloned().collect()
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

    /// Returns those of the `held` clusters whose endpoints must go although the ingress `key` is left.
    pub(crate) fn cut(&self, key: &Key, held: Held, settings: &Settings) -> Held {
        let index = self.index.lock();
        let ingress = index.get(key).map(AsRef::as_ref);
        cut_of_left(ingress, held, &*index, settings)
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
        let mut desired = desired(key, ingress, &*index, settings);
        if index.set_hosts(key, desired.names()) {
            self.hosts.notify_one();
        }
        desired.excluded = excluded(held, blocked.unwrap_or_default(), &*index);
        desired
    }

    /// Returns what is notified when there is a host whose addresses are not known.
    pub(crate) fn new_hosts(&self) -> Arc<Notify> {
        Arc::clone(&self.hosts)
    }

    /// Returns the hosts that members report.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let index = self.index.lock();
        let backends = index.backends.as_ref();
        let hosts = backends.map(|backends| backends.hosts.keys().cloned().collect());
        hosts.unwrap_or_default()
    }

    /// Returns those of `clusters` that must get no request.
    pub(crate) fn excluded(&self, clusters: BTreeSet<String>) -> BTreeSet<String> {
        excluded(clusters, &[], &*self.index.lock())
    }

    /// Applies an event with `observe` and wakes the ingresses it returns, and the exports of the Services
    /// it concerns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        let (woken, concerned, classes) = {
            let mut index = self.index.lock();
            let expiry = index.next_expiry();
            let woken = index.apply(observe);
            if index.next_expiry() != expiry {
                self.expiries.notify_one();
            }
            self.enforcement.arrive(&std::mem::take(&mut index.flipped));
            (woken, index.take_concerned(), index.take_changed_classes())
        };
        self.queues.status.add_all(woken.iter().cloned());
        for gateway in &self.queues.gateways {
            gateway.add_all(woken.iter().cloned());
        }
        self.queues.exports.add_all(concerned);
        self.queues.classes.add_all(classes);
    }

    /// Returns the ingresses of ours that route to `service`.
    pub(crate) fn routing_to(
        &self,
        service: &Key,
        controller: &ControllerName,
    ) -> Vec<Arc<MultiClusterIngress>> {
        self.index.lock().routing_to(service, controller)
    }

    /// Returns the Services that may need an export, and those that have one.
    pub(crate) fn exportable(&self) -> Vec<Key> {
        self.index.lock().exportable().into_iter().collect()
    }

    /// Plans the export of `service`. Returns `None` while not every export is known.
    pub(crate) fn plan_export(
        &self,
        service: &Key,
        settings: &Settings,
        exporter: &Exporter,
    ) -> Option<ExportChange> {
        self.index.lock().plan_export(service, settings, exporter)
    }
}

struct Watching<'a> {
    program: &'a mut Program,
    client: &'a Client,
    index: &'a Arc<SharedIndex>,
}

impl Watching<'_> {
    fn start<K>(
        &mut self,
        name: &'static str,
        config: Config,
        observe: fn(&mut Index, Event<Decoded<K>>) -> Vec<Key>,
    ) where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.index);
        let api = Api::all(self.client.clone());
        self.program.watch(name, api, config, move |event| {
            shared.observe(|index| observe(index, event));
        });
    }
}

impl Index {
    /// Applies an event with `observe` and returns the ingresses it concerns.
    fn apply(&mut self, observe: impl FnOnce(&mut Self) -> Vec<Key>) -> Vec<Key> {
        let (unread, unread_exports) = (self.unread(), self.unread_exports());
        let mut woken = observe(self);
        // Any ingress may depend on an object that does not decode: its content is unknown.
        let is_other = self.unread() != unread;
        if is_other {
            let all: Vec<Key> = self.keys().cloned().collect();
            for ingress in &all {
                self.index_ingress(ingress);
            }
            woken.extend(all);
        }
        // No transition shows one of them that is gone, and an export that waits for it has no backoff.
        if is_other || self.unread_exports() != unread_exports {
            let all = self.exportable();
            self.concern(all);
        }
        woken
    }

    /// Applies an event of an ingress and wakes it. The echo of our own write is such a change too, so
    /// that a decision on an older version is made again.
    pub(crate) fn observe_ingress(
        &mut self,
        event: Event<Decoded<MultiClusterIngress>>,
    ) -> Vec<Key> {
        let unread = self.ingresses.unread().clone();
        let mut woken = Vec::new();
        for Transition { key, old, new } in self.ingresses.observe(event) {
            let versions = [old.as_deref(), new.as_deref()];
            let [before, now] = versions.map(|ingress| ingress.map(references));
            if before != now {
                self.index_ingress(&key);
            }
            let [before, now] = versions.map(|ingress| ingress.map(routing));
            if before != now {
                let named = versions.into_iter().flatten();
                let named = named.flat_map(|ingress| services(&ingress.spec.ingress));
                self.concern(named.map(|service| Key::new(&key.namespace, service)));
            }
            woken.push(key);
        }
        // No transition shows an unread ingress that is gone, but it may be in the load balancer.
        woken.extend(unread.difference(self.ingresses.unread()).cloned());
        woken
    }

    /// Applies an event of a class and wakes the ingresses it may decide about.
    pub(crate) fn observe_class(&mut self, event: Event<Decoded<IngressClass>>) -> Vec<Key> {
        let mut woken = Vec::new();
        for Transition { key, .. } in self.classes.observe(event) {
            woken.extend(self.of_class(&key.name));
        }
        if !woken.is_empty() {
            let all = self.exportable();
            self.concern(all);
        }
        woken
    }

    /// Applies an event of a cluster. If its admission changed, the ingresses located there are woken,
    /// and no others.
    pub(crate) fn observe_cluster(&mut self, event: Event<Decoded<Cluster>>) -> Vec<Key> {
        // Nothing else of a cluster decides here: actions that cannot be read neither block nor unblock.
        let event = match event {
            Event::Apply(Decoded::Valid(cluster)) if cluster.has_unclear_actions() => {
                Event::Apply(unclear(cluster))
            }
            Event::InitApply(Decoded::Valid(cluster)) if cluster.has_unclear_actions() => {
                Event::InitApply(unclear(cluster))
            }
            event => event,
        };
        // A blocked cluster may be readmitted, but not one that begins to leave.
        let admission = |cluster: Option<Arc<Cluster>>| {
            cluster.map(|cluster| {
                let is_leaving = cluster.metadata.deletion_timestamp.is_some();
                (Admission::of(&cluster), is_leaving)
            })
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in self.clusters.observe(event) {
            if admission(old) != admission(new) {
                let located = self.located_in(&key.name);
                self.flipped.extend(located.iter().cloned());
                woken.extend(located);
                woken.extend(self.left());
            }
        }
        woken
    }

    /// Applies an event of a Remedy. If people's decisions changed, the ingresses in the blocked clusters
    /// concerned are woken: whether these may be readmitted depends on it.
    pub(crate) fn observe_remedy(&mut self, event: Event<Decoded<Remedy>>) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut concerned = Vec::new();
        for Transition { key, old, new } in backends.remedies.observe(event) {
            let (old, new) = (old.as_deref(), new.as_deref());
            concerned.extend(backends.decided.change(&key.name, old, new));
        }
        self.blocked_in(&concerned)
    }
}

fn unclear(cluster: Cluster) -> Decoded<Cluster> {
    Decoded::Invalid {
        metadata: Box::new(cluster.metadata),
        error: "remedyActions is no list of texts".to_owned(),
    }
}

/// Returns what of an ingress refers to other objects.
fn references(ingress: &MultiClusterIngress) -> impl PartialEq + '_ {
    let status = ingress.status.as_ref();
    let locations = status.and_then(|status| status.service_locations.as_ref());
    (&ingress.spec, locations)
}

#[cfg(test)]
mod tests;
