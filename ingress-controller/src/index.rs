//! The watched objects of the Karmada API, looked up by name and by their referrers.

mod exports;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fleet_api::Placement;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{
    Cluster, MultiClusterIngress, PropagationPolicy, Remedy, ResourceBinding, ServiceExport,
    clusters_by_namespace, execution_namespace,
};
use karmada_runtime::store::{Store, Verdict};
use objects::reverse_index::ReverseIndex;
use objects::{Key, Scope};
use traffic::ClusterKind;
use traffic::endpoints::slice_service;
use traffic::ingress::http_route::route_of;
use traffic::ingress::{
    Cached, ClusterFacts, ControllerName, DecidedBlocks, Decision, Exporter, Facts, binding_names,
    binding_of, bound_ingress, bound_service, decide, keep_placed, placed_services, secrets,
    service_locations, services,
};

use crate::cached::cached;
use crate::routes::{ReadRoute, Routes};

/// The watched objects, and the ingresses by the objects that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The kind of the clusters.
    pub(crate) kind: ClusterKind,
    pub(crate) ingresses: Store<MultiClusterIngress>,
    pub(crate) classes: Store<IngressClass>,
    pub(crate) clusters: Store<Cluster>,
    /// By the objects that they bind. Bindings of other kinds are most of them, and would only take memory.
    pub(crate) bindings: Store<ResourceBinding, Bound>,
    /// Those of a hub, of each scope, by the Services that they bring.
    pub(crate) placements: [Store<Placement, Key>; 2],
    pub(crate) routes: Routes,
    /// `None` if the load balancer does not need the objects that follow: then they are not watched.
    pub(crate) backends: Option<Backends>,
    pub(crate) templates: Store<Service>,
    /// By the Service for which they were collected.
    pub(crate) slices: Store<EndpointSlice, Key>,
    /// Those in which nodes are published, by cluster.
    pub(crate) node_slices: Store<EndpointSlice, String>,
    pub(crate) secrets: Store<Secret>,
    pub(crate) remedies: Store<Remedy>,
    /// The Remedies without matches.
    pub(crate) decided: DecidedBlocks,
    pub(crate) exports: Store<ServiceExport>,
    /// Our policies for the exports, by the Service that is exported.
    pub(crate) policies: Store<PropagationPolicy, Key>,
    /// The Services whose exports the last changes concern.
    concerned: BTreeSet<Key>,
    /// From an ingress to its dependencies.
    dependencies: ReverseIndex<Key, Dependency>,
    /// The last known addresses of the hosts that members report, which are unread until DNS has answered.
    pub(crate) hosts: BTreeMap<String, Cached<Vec<IpAddr>>>,
    /// From an ingress to the hosts behind it.
    pub(crate) by_host: ReverseIndex<Key, String>,
    /// The ingresses that the last decision left as they are. The load balancer may hold endpoints of
    /// any cluster for them.
    left: BTreeSet<Key>,
}

/// The sources from which a load balancer learns the addresses of backends, besides Services, slices and Remedies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backends {
    /// Set if Secrets are copied.
    pub(crate) secrets: bool,
    /// Set unless the exports of Services are left to the user.
    pub(crate) exports: bool,
    /// Set if the load balancer takes the names of hosts, and none is looked up.
    pub(crate) names: bool,
}

/// An object on which an ingress depends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    /// A Service that it names.
    Service(Key),
    /// A Secret that it names.
    Secret(Key),
    /// The class that it names, if any.
    Class(Option<String>),
    /// A cluster in which one of its Services runs.
    Cluster(String),
}

/// An object that a binding binds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// A Service.
    Service(Key),
    /// A networking.k8s.io Ingress.
    Ingress(Key),
}

impl Index {
    pub(crate) fn new(backends: Option<Backends>) -> Self {
        Self {
            clusters: Store::default().judging(judge_cluster),
            bindings: Store::by(bound).judging(judge_binding),
            placements: [(); 2].map(|()| Store::by(placed_services).keeping(keep_placed)),
            slices: Store::by(|slice| collected_for(ClusterKind::Cluster, slice)),
            node_slices: Store::by(clusters_by_namespace::<EndpointSlice>),
            policies: Store::by(exported),
            backends,
            ..Self::default()
        }
    }

    /// Reads a hub.
    pub(crate) fn read_hub(&mut self) {
        self.kind = ClusterKind::MemberCluster;
        self.slices = Store::by(|slice| collected_for(ClusterKind::MemberCluster, slice));
    }

    /// Returns the placements of a scope.
    pub(crate) fn placements_mut(&mut self, scope: Scope) -> &mut Store<Placement, Key> {
        let [of_cluster, in_namespaces] = &mut self.placements;
        match scope {
            Scope::Cluster => of_cluster,
            Scope::Namespaced => in_namespaces,
        }
    }

    /// Returns the ingress `key`, or the `HTTPRoute` that is served under it.
    pub(crate) fn ingress(&self, key: &Key) -> Cached<&Arc<MultiClusterIngress>> {
        match route_of(key) {
            Some(_) => self.routes.ingress(key),
            None => cached(&self.ingresses, key),
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
        self.routes.get(key)
    }

    /// Returns the keys of all ingresses, including those that never decoded.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let read = self.ingresses.keys();
        let unread = self.ingresses.unread();
        read.chain(unread).chain(self.routes.keys())
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
        self.depending_on(&Dependency::Service(service.clone()))
    }

    /// Returns the ingresses that name the Secret `secret`.
    pub(crate) fn naming_secret(&self, secret: &Key) -> Vec<Key> {
        self.depending_on(&Dependency::Secret(secret.clone()))
    }

    /// Returns the ingresses with a Service in `cluster`.
    pub(crate) fn located_in(&self, cluster: &str) -> Vec<Key> {
        self.depending_on(&Dependency::Cluster(cluster.to_owned()))
    }

    /// Returns the ingresses that `class` may decide about: those that name it, and those that name
    /// none, for which it may be the default class.
    pub(crate) fn of_class(&self, class: &str) -> Vec<Key> {
        let mut found = self.depending_on(&Dependency::Class(Some(class.to_owned())));
        found.extend(self.depending_on(&Dependency::Class(None)));
        found
    }

    fn depending_on(&self, dependency: &Dependency) -> Vec<Key> {
        self.dependencies.sources(dependency).cloned().collect()
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

    /// Updates the index after a change of the ingress `key`, or of where its Services run.
    pub(crate) fn index_ingress(&mut self, key: &Key) {
        let found = self.get(key).map(Arc::clone);
        if found.is_none() {
            self.by_host.replace(key, BTreeSet::new());
        }
        let dependencies = found.map(|ingress| self.dependencies(key, &ingress));
        let dependencies = dependencies.unwrap_or_default();
        self.dependencies.replace(key, dependencies);
    }

    fn dependencies(&self, key: &Key, ingress: &MultiClusterIngress) -> BTreeSet<Dependency> {
        let spec = &ingress.spec.ingress;
        let here = |name: &str| Key::new(&key.namespace, name);
        let named = services(spec).into_iter().map(here);
        let secrets = secrets(spec).into_iter().map(here);
        // A route has no class of ingresses, not even the default one.
        let class = self
            .route(key)
            .is_none()
            .then(|| spec.ingress_class_name.clone());
        let status = ingress.status.as_ref();
        let previous = status.and_then(|status| status.service_locations.as_deref());
        let locations = service_locations(&key.namespace, spec, previous.unwrap_or_default(), self);
        let clusters = locations
            .into_iter()
            .filter_map(|location| location.clusters);
        named
            .map(Dependency::Service)
            .chain(secrets.map(Dependency::Secret))
            .chain(class.map(Dependency::Class))
            .chain(clusters.flatten().map(Dependency::Cluster))
            .collect()
    }

    /// Updates the index as a whole, and returns all ingresses.
    pub(crate) fn index_all(&mut self) -> Vec<Key> {
        let all: Vec<Key> = self.keys().cloned().collect();
        for ingress in &all {
            self.index_ingress(ingress);
        }
        all
    }
}

/// Nothing else of a cluster decides here: actions that cannot be read neither block nor unblock.
fn judge_cluster(cluster: &Cluster) -> Verdict {
    if cluster.has_unclear_actions() {
        Verdict::Unreadable("remedyActions is no list of texts".to_owned())
    } else {
        Verdict::Valid
    }
}

fn judge_binding(binding: &ResourceBinding) -> Verdict {
    if bound(binding).is_empty() {
        Verdict::Ignored
    } else {
        Verdict::Valid
    }
}

fn bound(binding: &ResourceBinding) -> BTreeSet<Bound> {
    let Key { namespace, .. } = Key::of(binding);
    let service = bound_service(binding).map(|name| Bound::Service(Key::new(&namespace, name)));
    let ingress = bound_ingress(binding).map(|name| Bound::Ingress(Key::new(&namespace, name)));
    service.into_iter().chain(ingress).collect()
}

fn collected_for(kind: ClusterKind, slice: &EndpointSlice) -> BTreeSet<Key> {
    slice_service(kind, slice).into_iter().collect()
}

fn exported(policy: &PropagationPolicy) -> BTreeSet<Key> {
    let service = Exporter::exported(policy);
    let service = service.map(|service| Key::new(Key::of(policy).namespace, service));
    service.into_iter().collect()
}

impl ClusterFacts for Index {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        cached(&self.clusters, &Key::cluster_scoped(name)).map(AsRef::as_ref)
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        // One that could never be read may be a person's decision.
        self.backends.is_none() || !self.remedies.unread().is_empty() || self.decided.cover(cluster)
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

    fn cluster_kind(&self) -> ClusterKind {
        self.kind
    }

    fn placements(&self, service: &Key) -> Option<impl Iterator<Item = &Placement>> {
        let mut all = self.placements.iter();
        let is_read = all.all(|placements| placements.unread().is_empty());
        let bringing = self.placements.iter();
        let bringing = bringing.flat_map(move |placements| placements.of(service));
        is_read.then_some(bringing.map(|placement| &**placement))
    }

    fn binding(&self, namespace: &str, service: &str) -> Cached<&ResourceBinding> {
        let of = Bound::Service(Key::new(namespace, service));
        let bound = self.bindings.of(&of);
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
        let of = Bound::Ingress(Key::new(namespace, name));
        let mut bound = self.bindings.keys_of(&of);
        match bound.find_map(|key| self.bindings.get(key)) {
            Some(binding) => Cached::Present(binding),
            // One that could never be read may be its.
            None if self.bindings.unread().is_empty() => Cached::Absent,
            None => Cached::Unread,
        }
    }

    fn addresses(&self, host: &str) -> Option<Cached<Vec<IpAddr>>> {
        let takes_names = self.backends.is_some_and(|backends| backends.names);
        let known = self.hosts.get(host).cloned();
        (!takes_names).then(|| known.unwrap_or(Cached::Unread))
    }

    fn nodes(&self, cluster: &str) -> Cached<Vec<Arc<EndpointSlice>>> {
        let namespace = execution_namespace(cluster);
        let mut unread = self.node_slices.unread().iter();
        if unread.any(|key| key.namespace == namespace) {
            return Cached::Unread;
        }
        let published = self.node_slices.of(&cluster.to_owned());
        let published: Vec<_> = published.cloned().collect();
        if published.is_empty() {
            Cached::Absent
        } else {
            Cached::Present(published)
        }
    }

    fn template(&self, namespace: &str, service: &str) -> Cached<&Service> {
        if self.backends.is_none() {
            return Cached::Unread;
        }
        cached(&self.templates, &Key::new(namespace, service)).map(AsRef::as_ref)
    }

    fn secret(&self, namespace: &str, name: &str) -> Cached<Arc<Secret>> {
        cached(&self.secrets, &Key::new(namespace, name)).map(Arc::clone)
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        let service = Key::new(namespace, service);
        self.slices.of(&service).cloned().collect()
    }

    fn unread_slices(&self, namespace: &str) -> BTreeSet<String> {
        let unread = self.slices.unread().iter();
        // On a hub, those of all namespaces are in those of the members.
        let is_hub = self.kind == ClusterKind::MemberCluster;
        let here = unread.filter(|key| is_hub || key.namespace == namespace);
        here.map(|key| key.name.clone()).collect()
    }
}
