//! The changes in the Karmada API that wake an ingress.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, Key, MultiClusterIngress, ResourceBinding};
use karmada_rules::ingress::{
    Admission, Cached, ControllerName, Decision, bound_clusters, bound_service, decide,
    slice_cluster, slice_service,
};
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::index::{Backends, Index};

/// Selects the `EndpointSlice`s that Karmada collected from member clusters, and no others of the
/// control plane.
const COLLECTED: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslice-controller.karmada.io";

/// The index behind a lock, and the queue of the ingresses that its changes wake.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: Mutex<Index>,
    queue: Queue<Key>,
}

impl SharedIndex {
    /// Creates an empty index. Without `backends`, Services and `EndpointSlice`s are not watched.
    pub(crate) fn new(queue: Queue<Key>, backends: Option<Backends>) -> Self {
        Self {
            index: Mutex::new(Index::new(backends)),
            queue,
        }
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
        if self.index.lock().backends.is_some() {
            to.start("services", all(), Index::observe_template);
            to.start("slices", all().labels(COLLECTED), Index::observe_slice);
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
        controller: &ControllerName,
    ) -> (Option<Arc<MultiClusterIngress>>, Decision) {
        let index = self.index.lock();
        let seen = index.ingress(key);
        let decision = decide(key, seen.map(AsRef::as_ref), &*index, controller);
        match seen {
            Cached::Present(ingress) => (Some(Arc::clone(ingress)), decision),
            Cached::Absent | Cached::Unread => (None, decision),
        }
    }

    /// Applies an event with `observe` and wakes the ingresses it returns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        let woken = self.index.lock().apply(observe);
        self.queue.add_all(woken);
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
        let unread = self.count_unread();
        let mut woken = observe(self);
        // Any ingress may depend on an object that does not decode: its content is unknown.
        if self.count_unread() != unread {
            let all: Vec<Key> = self.keys().cloned().collect();
            for ingress in &all {
                self.index_ingress(ingress);
            }
            woken.extend(all);
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
        for Transition { key, .. } in self.ingresses.observe(event) {
            self.index_ingress(&key);
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
        let admission = |cluster: Option<Arc<Cluster>>| {
            cluster.map_or(Admission::ClusterMissing, |cluster| Admission::of(&cluster))
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in self.clusters.observe(event) {
            if admission(old) != admission(new) {
                woken.extend(self.located_in(&key.name));
            }
        }
        woken
    }

    /// Applies an event of a binding. If its Service is placed elsewhere, the ingresses that name the
    /// Service are woken.
    pub(crate) fn observe_binding(&mut self, event: Event<Decoded<ResourceBinding>>) -> Vec<Key> {
        // Bindings of other kinds are most of them, and would only take memory.
        let event = match event {
            Event::Apply(Decoded::Valid(binding)) | Event::InitApply(Decoded::Valid(binding))
                if bound_service(&binding).is_none() =>
            {
                Event::Delete(Decoded::Valid(binding))
            }
            event => event,
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in self.bindings.observe(event) {
            let versions = [old.as_deref(), new.as_deref()];
            let [before, now] = versions.map(|binding| {
                binding.map(|binding| (bound_service(binding), bound_clusters(binding)))
            });
            if before == now {
                continue;
            }
            for service in versions.into_iter().flatten().filter_map(bound_service) {
                let service = Key::new(&key.namespace, service);
                self.index_service(&service);
                woken.extend(self.naming(&service));
            }
        }
        woken
    }

    /// Applies an event of a Service template. If its ports changed, the ingresses that name it are
    /// woken.
    pub(crate) fn observe_template(&mut self, event: Event<Decoded<Service>>) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in backends.templates.observe(event) {
            if old.as_deref().map(ports) != new.as_deref().map(ports) {
                woken.extend(self.naming(&key));
            }
        }
        woken
    }

    /// Applies an event of a slice. If its endpoints changed, the ingresses that name its Service are
    /// woken.
    pub(crate) fn observe_slice(&mut self, event: Event<Decoded<EndpointSlice>>) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut concerned = Vec::new();
        for Transition { key, old, new } in backends.slices.observe(event) {
            if let (Some(old), Some(new)) = (&old, &new)
                && same_endpoints(old, new)
            {
                continue;
            }
            backends.index_slice(&key);
            let versions = [&old, &new].into_iter().flatten();
            let services = versions.filter_map(|slice| slice_service(slice));
            concerned.extend(services.map(|service| Key::new(&key.namespace, service)));
        }
        let woken = concerned.iter().flat_map(|service| self.naming(service));
        woken.collect()
    }
}

fn unclear(cluster: Cluster) -> Decoded<Cluster> {
    Decoded::Invalid {
        metadata: Box::new(cluster.metadata),
        error: "remedyActions is no list of texts".to_owned(),
    }
}

fn ports(template: &Service) -> Option<&Vec<ServicePort>> {
    template.spec.as_ref()?.ports.as_ref()
}

fn same_endpoints(a: &EndpointSlice, b: &EndpointSlice) -> bool {
    slice_service(a) == slice_service(b)
        && slice_cluster(a) == slice_cluster(b)
        && a.address_type == b.address_type
        && a.endpoints == b.endpoints
        && a.ports == b.ports
}

#[cfg(test)]
mod tests;
