//! Which change in the Karmada API wakes which ingress.

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
use karmada_runtime::metrics::register_unread;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Guarded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::known::{Backends, Known};

/// Finds the `EndpointSlice`s that Karmada collected from member clusters.
const COLLECTED: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslice-controller.karmada.io";

/// What is known of the Karmada API, and the queue of the ingresses it wakes.
#[derive(Debug)]
pub(crate) struct Index {
    known: Mutex<Known>,
    queue: Queue<Key>,
}

/// Watches everything that decides about ingresses: Services and `EndpointSlice`s only for a load
/// balancer that needs them.
pub(crate) fn watch_all(program: &mut Program, client: &Client, index: &Arc<Index>) {
    let all = Config::default;
    let mut to = Watching {
        program,
        client,
        index,
    };
    to.start("ingresses", all(), Known::observe_ingress);
    to.start("classes", all(), Known::observe_class);
    to.start("clusters", all(), Known::observe_cluster);
    to.start("bindings", all(), Known::observe_binding);
    if index.known.lock().backends.is_some() {
        to.start("services", all(), Known::observe_template);
        to.start("slices", all().labels(COLLECTED), Known::observe_slice);
    }
    let index = Arc::clone(index);
    register_unread(&mut program.registry, move || index.known.lock().unread());
}

struct Watching<'a> {
    program: &'a mut Program,
    client: &'a Client,
    index: &'a Arc<Index>,
}

impl Watching<'_> {
    fn start<K>(
        &mut self,
        name: &'static str,
        config: Config,
        observe: fn(&mut Known, Event<Guarded<K>>) -> Vec<Key>,
    ) where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let index = Arc::clone(self.index);
        let api = Api::all(self.client.clone());
        self.program.watch(name, api, config, move |event| {
            index.observe(|known| observe(known, event));
        });
    }
}

impl Index {
    /// Knows nothing yet. Without `backends`, Services and `EndpointSlice`s are not watched.
    pub(crate) fn new(queue: Queue<Key>, backends: Option<Backends>) -> Self {
        Self {
            known: Mutex::new(Known::new(backends)),
            queue,
        }
    }

    /// Every ingress.
    pub(crate) fn ingresses(&self) -> Vec<Key> {
        self.known.lock().all().cloned().collect()
    }

    /// The ingress `key`, if it can be read, and what to do about it.
    pub(crate) fn decide(
        &self,
        key: &Key,
        controller: &ControllerName,
    ) -> (Option<Arc<MultiClusterIngress>>, Decision) {
        let known = self.known.lock();
        let seen = known.ingress(key);
        let decision = decide(key, seen.map(AsRef::as_ref), &*known, controller);
        match seen {
            Cached::Present(ingress) => (Some(Arc::clone(ingress)), decision),
            Cached::Absent | Cached::Unread => (None, decision),
        }
    }

    /// Takes an event in and wakes the ingresses it concerns.
    pub(crate) fn observe(&self, observe: impl FnOnce(&mut Known) -> Vec<Key>) {
        let woken = self.known.lock().take_in(observe);
        self.queue.add_all(woken);
    }
}

impl Known {
    /// Takes an event in with `observe` and says which ingresses it concerns. Anything may depend on
    /// an object that could never be read, when it comes and when it goes.
    fn take_in(&mut self, observe: impl FnOnce(&mut Self) -> Vec<Key>) -> Vec<Key> {
        let unread = self.count_unread();
        let mut woken = observe(self);
        if self.count_unread() != unread {
            let all: Vec<Key> = self.all().cloned().collect();
            for ingress in &all {
                self.index_ingress(ingress);
            }
            woken.extend(all);
        }
        woken
    }

    /// An ingress changed: it is woken. The echo of our own write is such a change too, so that what
    /// was decided on an older view is decided again.
    pub(crate) fn observe_ingress(
        &mut self,
        event: Event<Guarded<MultiClusterIngress>>,
    ) -> Vec<Key> {
        let unread = self.ingresses.unread().clone();
        let mut woken = Vec::new();
        for Transition { key, .. } in self.ingresses.observe(event) {
            self.index_ingress(&key);
            woken.push(key);
        }
        woken.extend(unread.difference(self.ingresses.unread()).cloned());
        woken
    }

    /// A class changed: the ingresses it may decide about are woken.
    pub(crate) fn observe_class(&mut self, event: Event<Guarded<IngressClass>>) -> Vec<Key> {
        let mut woken = Vec::new();
        for Transition { key, .. } in self.classes.observe(event) {
            woken.extend(self.of_class(&key.name));
        }
        woken
    }

    /// A cluster's admission changed: the ingresses located there are woken, and no other.
    pub(crate) fn observe_cluster(&mut self, event: Event<Guarded<Cluster>>) -> Vec<Key> {
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

    /// A Service was placed elsewhere: the ingresses that name it are woken. Bindings of anything
    /// else are not kept.
    pub(crate) fn observe_binding(&mut self, event: Event<Guarded<ResourceBinding>>) -> Vec<Key> {
        let event = match event {
            Event::Apply(Guarded::Good(binding)) | Event::InitApply(Guarded::Good(binding))
                if bound_service(&binding).is_none() =>
            {
                Event::Delete(Guarded::Good(binding))
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

    /// A Service has other ports: the ingresses that name it are woken.
    pub(crate) fn observe_template(&mut self, event: Event<Guarded<Service>>) -> Vec<Key> {
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

    /// Endpoints of a Service changed: the ingresses that name it are woken.
    pub(crate) fn observe_slice(&mut self, event: Event<Guarded<EndpointSlice>>) -> Vec<Key> {
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
