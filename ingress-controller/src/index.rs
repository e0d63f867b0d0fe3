//! The watched objects of the Karmada API, looked up by name and by what refers to them.

mod exports;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{
    Cluster, MultiClusterIngress, PropagationPolicy, Remedy, ResourceBinding, ServiceExport,
};
use karmada_runtime::cache::{Cache, Undecoded};
use objects::Key;
use objects::reverse_index::ReverseIndex;
use traffic::endpoints::slice_service;
use traffic::ingress::http_route::route_of;
use traffic::ingress::{
    Cached, ClusterFacts, ControllerName, DecidedBlocks, Decision, Facts, binding_names,
    binding_of, bound_ingress, bound_service, decide, secrets, service_locations, services,
};

use crate::cached::cached;
use crate::routes::{ReadRoute, Routes};

/// The watched objects, and the ingresses by what they refer to.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) ingresses: Cache<MultiClusterIngress>,
    pub(crate) classes: Cache<IngressClass>,
    pub(crate) clusters: Cache<Cluster>,
    pub(crate) bindings: Cache<ResourceBinding>,
    /// `None` if `HTTPRoute`s are not read.
    pub(crate) routes: Option<Routes>,
    /// `None` if the load balancer does not need them: then they are not watched.
    pub(crate) backends: Option<Backends>,
    /// From a binding to its Service.
    bound: ReverseIndex<Key, Key>,
    /// From a binding to its Ingress.
    bound_ingresses: ReverseIndex<Key, Key>,
    /// From an ingress to the Services it names.
    by_service: ReverseIndex<Key, Key>,
    /// From an ingress to the Secrets it names.
    pub(crate) by_secret: ReverseIndex<Key, Key>,
    /// From an ingress to the clusters its Services run in.
    by_cluster: ReverseIndex<Key, String>,
    /// From an ingress to the class it names, if any.
    by_class: ReverseIndex<Key, Option<String>>,
    /// The ingresses that the last decision left as they are. The load balancer may hold endpoints of
    /// any cluster for them.
    left: BTreeSet<Key>,
    /// The ingresses with a Service in a cluster whose admission the last changes concern.
    pub(crate) flipped: BTreeSet<Key>,
}

/// The objects from which a load balancer learns the addresses of backends.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    pub(crate) templates: Cache<Service>,
    pub(crate) slices: Cache<EndpointSlice>,
    pub(crate) remedies: Cache<Remedy>,
    /// The Remedies without matches.
    pub(crate) decided: DecidedBlocks,
    /// `None` if Secrets are not copied: then they are not watched.
    pub(crate) secrets: Option<Cache<Secret>>,
    /// `None` if the exports of Services are left to the user.
    pub(crate) exports: Option<Exports>,
    /// The last known addresses of the hosts that members report.
    pub(crate) hosts: BTreeMap<String, Vec<IpAddr>>,
    /// From an ingress to the hosts behind it.
    pub(crate) by_host: ReverseIndex<Key, String>,
    /// From a slice to the Service it was collected for.
    by_service: ReverseIndex<Key, Key>,
}

/// The exports of Services, and our policies for them.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    pub(crate) objects: Cache<ServiceExport>,
    pub(crate) policies: Cache<PropagationPolicy>,
    /// Set once all exports are known, and all policies.
    pub(crate) listed: [bool; 2],
    /// The Services whose exports the last changes concern.
    pub(crate) concerned: BTreeSet<Key>,
}

impl Index {
    pub(crate) fn new(backends: Option<Backends>) -> Self {
        Self {
            backends,
            ..Self::default()
        }
    }

    /// Returns the ingress `key`, or the `HTTPRoute` that is served under it.
    pub(crate) fn ingress(&self, key: &Key) -> Cached<&Arc<MultiClusterIngress>> {
        match &self.routes {
            Some(routes) if route_of(key).is_some() => routes.ingress(key),
            _ => cached(&self.ingresses, key),
        }
    }

    /// Returns the ingress `key` in its last version that can be served.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<MultiClusterIngress>> {
        match self.ingress(key) {
            Cached::Present(ingress) => Some(ingress),
            Cached::Absent | Cached::Unread => None,
        }
    }

    /// Returns the `HTTPRoute` that is served under `key`.
    pub(crate) fn route(&self, key: &Key) -> Option<&ReadRoute> {
        self.routes.as_ref()?.get(key)
    }

    /// Returns the keys of all ingresses, including those that never decoded.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let read = self.ingresses.iter().map(|(key, _)| key);
        let routes = self.routes.iter().flat_map(Routes::keys);
        read.chain(self.ingresses.unread()).chain(routes)
    }

    /// Decides on the ingress `key`, and returns it if it can be read.
    pub(crate) fn decide(
        &self,
        key: &Key,
        controller: &ControllerName,
    ) -> (Option<Arc<MultiClusterIngress>>, Decision) {
        if let Some(route) = self.route(key) {
            return route.decide(key, self, controller);
        }
        let seen = self.ingress(key);
        let decision = decide(key, seen.map(AsRef::as_ref), self, controller);
        match seen {
            Cached::Present(ingress) => (Some(Arc::clone(ingress)), decision),
            Cached::Absent | Cached::Unread => (None, decision),
        }
    }

    /// Returns the ingresses that name the Service `service`.
    pub(crate) fn naming(&self, service: &Key) -> Vec<Key> {
        self.by_service.sources(service).cloned().collect()
    }

    /// Returns the ingresses with a Service in `cluster`.
    pub(crate) fn located_in(&self, cluster: &str) -> Vec<Key> {
        self.by_cluster.sources(cluster).cloned().collect()
    }

    /// Remembers whether the last decision left the ingress `key` as it is.
    pub(crate) fn set_left(&mut self, key: &Key, is_left: bool) {
        if is_left {
            self.left.insert(key.clone());
        } else {
            self.left.remove(key);
        }
    }

    /// Returns the ingresses that the last decision left as they are.
    pub(crate) fn left(&self) -> impl Iterator<Item = Key> {
        self.left.iter().cloned()
    }

    /// Returns the ingresses that `class` may decide about: those that name it, and those that name
    /// none, for which it may be the default class.
    pub(crate) fn of_class(&self, class: &str) -> Vec<Key> {
        let class = Some(class.to_owned());
        let classless = self.by_class.sources(&None);
        self.by_class
            .sources(&class)
            .chain(classless)
            .cloned()
            .collect()
    }

    /// Updates the index after a change of the ingress `key`.
    pub(crate) fn index_ingress(&mut self, key: &Key) {
        let found = self.get(key).map(Arc::clone);
        let spec = found.as_ref().map(|ingress| &ingress.spec.ingress);
        // A route has no class of ingresses, not even the default one.
        let class = spec.filter(|_| self.route(key).is_none());
        let class = class.map(|spec| spec.ingress_class_name.clone());
        let here = |name: &str| Key::new(&key.namespace, name);
        let named = spec.map(services).unwrap_or_default().into_iter();
        let secrets = spec.map(secrets).unwrap_or_default().into_iter();
        self.by_class.replace(key, class.into_iter().collect());
        self.by_service.replace(key, named.map(here).collect());
        self.by_secret.replace(key, secrets.map(here).collect());
        self.index_clusters(key);
    }

    /// Updates the index after a change of the binding `key`.
    pub(crate) fn index_binding(&mut self, key: &Key) {
        let binding = self.bindings.get(key);
        let service = binding.and_then(|binding| bound_service(binding));
        let service = service.map(|service| Key::new(&key.namespace, service));
        self.bound.replace(key, service.into_iter().collect());
        let ingress = binding.and_then(|binding| bound_ingress(binding));
        let ingress = ingress.map(|ingress| Key::new(&key.namespace, ingress));
        self.bound_ingresses
            .replace(key, ingress.into_iter().collect());
    }

    /// Updates the index after a change of the placement of `service`.
    pub(crate) fn index_service(&mut self, service: &Key) {
        for ingress in self.naming(service) {
            self.index_clusters(&ingress);
        }
    }

    fn index_clusters(&mut self, key: &Key) {
        let clusters = self.get(key).map(|ingress| {
            let status = ingress.status.as_ref();
            let previous = status.and_then(|status| status.service_locations.as_deref());
            let spec = &ingress.spec.ingress;
            service_locations(&key.namespace, spec, previous.unwrap_or_default(), self)
        });
        let clusters: BTreeSet<String> = clusters
            .into_iter()
            .flatten()
            .flat_map(|location| location.clusters.unwrap_or_default())
            .collect();
        self.by_cluster.replace(key, clusters);
    }

    /// Returns the objects that never decoded, for each kind that decides about ingresses.
    pub(crate) fn unread(&self) -> Vec<BTreeSet<Key>> {
        let mut unread = vec![
            self.ingresses.unread().clone(),
            self.classes.unread().clone(),
            self.clusters.unread().clone(),
            self.bindings.unread().clone(),
        ];
        if let Some(backends) = &self.backends {
            unread.push(backends.templates.unread().clone());
            unread.push(backends.slices.unread().clone());
            unread.push(backends.remedies.unread().clone());
            let secrets = backends.secrets.as_ref();
            unread.extend(secrets.map(|secrets| secrets.unread().clone()));
        }
        unread
    }

    /// Returns the number of objects of each kind whose newest version does not decode.
    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        let mut counts = vec![
            ("MultiClusterIngress", self.ingresses.undecoded()),
            ("IngressClass", self.classes.undecoded()),
            ("Cluster", self.clusters.undecoded()),
            ("ResourceBinding", self.bindings.undecoded()),
        ];
        counts.extend(self.routes.iter().flat_map(Routes::undecoded));
        if let Some(backends) = &self.backends {
            counts.push(("Service", backends.templates.undecoded()));
            counts.push(("EndpointSlice", backends.slices.undecoded()));
            counts.push(("Remedy", backends.remedies.undecoded()));
            let secrets = backends.secrets.as_ref();
            counts.extend(secrets.map(|secrets| ("Secret", secrets.undecoded())));
            if let Some(exports) = &backends.exports {
                counts.push(("ServiceExport", exports.objects.undecoded()));
                counts.push(("PropagationPolicy", exports.policies.undecoded()));
            }
        }
        counts
    }
}

impl Backends {
    /// Adds the exports of Services, which the controller manages.
    pub(crate) fn with_exports(mut self) -> Self {
        self.exports = Some(Exports::default());
        self
    }

    /// Adds Secrets, which the controller copies.
    pub(crate) fn with_secrets(mut self) -> Self {
        self.secrets = Some(Cache::default());
        self
    }

    /// Updates the index after a change of the slice `key`.
    pub(crate) fn index_slice(&mut self, key: &Key) {
        let service = self.slices.get(key).and_then(|slice| slice_service(slice));
        let service = service.map(|service| Key::new(&key.namespace, service));
        self.by_service.replace(key, service.into_iter().collect());
    }
}

impl ClusterFacts for Index {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        cached(&self.clusters, &Key::cluster_scoped(name)).map(AsRef::as_ref)
    }

    fn is_decided(&self, cluster: &str) -> bool {
        self.backends.as_ref().is_none_or(|backends| {
            // One that could never be read may be a person's decision.
            !backends.remedies.unread().is_empty() || backends.decided.cover(cluster)
        })
    }
}

impl Facts for Index {
    fn classes(&self) -> impl Iterator<Item = Cached<&IngressClass>> {
        let read = self
            .classes
            .iter()
            .map(|(_, class)| Cached::Present(&**class));
        read.chain(self.classes.unread().iter().map(|_| Cached::Unread))
    }

    fn class(&self, name: &str) -> Cached<&IngressClass> {
        cached(&self.classes, &Key::cluster_scoped(name)).map(AsRef::as_ref)
    }

    fn binding(&self, namespace: &str, service: &str) -> Cached<&ResourceBinding> {
        let bound = self.bound.sources(&Key::new(namespace, service));
        let bound = bound.filter_map(|key| self.bindings.get(key));
        if let Some(binding) = binding_of(bound.map(AsRef::as_ref), service) {
            return Cached::Present(binding);
        }
        let mut names = binding_names(service);
        let unread = self.bindings.unread();
        if names.any(|name| unread.contains(&Key::new(namespace, name))) {
            Cached::Unread
        } else {
            Cached::Absent
        }
    }

    fn ingress_binding(&self, namespace: &str, name: &str) -> Cached<&ResourceBinding> {
        let mut bound = self.bound_ingresses.sources(&Key::new(namespace, name));
        match bound.find_map(|key| self.bindings.get(key)) {
            Some(binding) => Cached::Present(binding),
            // One that could never be read may be its.
            None if self.bindings.unread().is_empty() => Cached::Absent,
            None => Cached::Unread,
        }
    }

    fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let backends = self.backends.as_ref();
        let known = backends.and_then(|backends| backends.hosts.get(host));
        known.cloned().unwrap_or_default()
    }

    fn template(&self, namespace: &str, service: &str) -> Cached<&Service> {
        match &self.backends {
            Some(backends) => {
                cached(&backends.templates, &Key::new(namespace, service)).map(AsRef::as_ref)
            }
            None => Cached::Unread,
        }
    }

    fn secret(&self, namespace: &str, name: &str) -> Cached<Arc<Secret>> {
        let secrets = self.backends.as_ref().and_then(|b| b.secrets.as_ref());
        secrets.map_or(Cached::Absent, |secrets| {
            cached(secrets, &Key::new(namespace, name)).map(Arc::clone)
        })
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        let Some(backends) = &self.backends else {
            return Vec::new();
        };
        let service = Key::new(namespace, service);
        let keys = backends.by_service.sources(&service);
        keys.filter_map(|key| backends.slices.get(key))
            .cloned()
            .collect()
    }

    fn unread_slices(&self, namespace: &str) -> BTreeSet<String> {
        let unread = self.backends.iter().flat_map(|b| b.slices.unread());
        unread
            .filter(|key| key.namespace == namespace)
            .map(|key| key.name.clone())
            .collect()
    }
}
