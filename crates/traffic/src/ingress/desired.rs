use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Secret, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::IngressSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::MultiClusterIngressStatus;
use objects::Key;

use super::addresses::{Reported, ServedPort, Unusable, reported, source};
use super::admission::{Admission, admission_of};
use super::choice::{BackendAddresses, InvalidAnnotation, WhenAllBlocked};
use super::facts::{ClusterFacts, Facts};
use super::locations::{secrets, service_clusters, services};
use super::node_ports::{NodeObstacle, Nodes, has_node_ports, nodes};
use super::route_key::own_name;
use crate::cached::Cached;
use crate::endpoints::slice_cluster;

/// The port at which the ingress controllers of members serve HTTP.
const HTTP: i32 = 80;

/// The desired state of the load balancer for one `MultiClusterIngress`.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The ingress.
    pub key: Key,
    /// Its rules, TLS and default backend, without its class: that is ours, not the load balancer's.
    pub routes: IngressSpec,
    /// Its annotations that are meant for the controller that serves it.
    pub annotations: BTreeMap<String, String>,
    /// The keys of those that are withheld from it.
    pub withheld: Vec<String>,
    /// The Services that the routes name, sorted by name.
    pub backends: Vec<Backend>,
    /// The Secrets that its TLS names, sorted by name.
    pub secrets: Vec<TlsSecret>,
    /// Collected `EndpointSlice`s that could never be read. Objects made from them remain.
    pub unread_slices: BTreeSet<String>,
    /// Clusters that must get no request, whichever Service the load balancer has endpoints of there:
    /// it may still route to one that the routes no longer name.
    pub excluded: BTreeSet<String>,
    /// The behaviour while every cluster of a backend is blocked.
    pub when_all_blocked: WhenAllBlocked,
    /// The addresses to which requests are sent.
    pub addresses: BackendAddresses,
    /// The annotations for these choices that could not be parsed.
    pub invalid_annotations: Vec<InvalidAnnotation>,
}

/// A Secret with which the load balancer serves TLS.
#[derive(Clone, PartialEq)]
pub struct TlsSecret {
    /// The Secret's name.
    pub name: String,
    /// The user's Secret. If it is absent, one of that name may be in the gateway, where the user put it.
    pub source: Cached<Arc<Secret>>,
}

/// Shows no key.
impl fmt::Debug for TlsSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TlsSecret");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

/// One Service behind the load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    /// The Service's name.
    pub service: String,
    /// The ports of its template.
    pub ports: Cached<Vec<ServicePort>>,
    /// Its endpoints by cluster, sorted by the clusters' names.
    pub clusters: Vec<ClusterEndpoints>,
    /// The addresses that members report and that no request can be sent to.
    pub unusable: BTreeSet<Unusable>,
    /// The host names that members report.
    pub names: BTreeSet<String>,
    /// The clusters with a host name of which DNS has told nothing yet.
    pub untold: BTreeSet<String>,
    /// The reasons for which nodes of members get no request, and the clusters in which they get none.
    pub node_obstacles: BTreeMap<NodeObstacle, BTreeSet<String>>,
    /// Set if it is not known where the Service runs: then it may run anywhere.
    pub is_location_unread: bool,
}

/// The endpoints of a Service in one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterEndpoints {
    /// The cluster's name.
    pub cluster: String,
    /// The cluster's claim to requests for the Service.
    pub admission: Admission,
    /// Set if the Service runs there, by its binding or, if that is unreadable, possibly.
    pub is_located: bool,
    /// The host names that the member reports, if it reports no address besides. Their addresses are among the slices.
    pub only_names: BTreeSet<String>,
    /// The slices as Karmada collected them, or those of the addresses that members report, sorted by name. Their ports have the names of the Service's
    /// ports.
    pub slices: Vec<Arc<EndpointSlice>>,
}

impl ClusterEndpoints {
    /// Returns the slices to whose endpoints requests can be sent. Pods that lack the port of their Service are in slices
    /// without ports.
    pub fn routable(&self) -> impl Iterator<Item = &EndpointSlice> {
        let slices = self.slices.iter().map(AsRef::as_ref);
        slices.filter(|slice: &&EndpointSlice| is_routable(slice))
    }
}

/// Returns `true` if requests can be sent to the endpoints of the slice, and there are some.
pub(super) fn is_routable(slice: &EndpointSlice) -> bool {
    let has_endpoints = slice.endpoints.iter().flatten().next().is_some();
    has_endpoints && slice.ports.iter().flatten().next().is_some()
}

/// The clusters of which a load balancer holds endpoints, by the load balancer's name of the Service.
pub type ServedClusters = BTreeMap<String, BTreeSet<String>>;

impl Desired {
    /// Returns the desired state for the ingress `key` with `spec`. `status` is the last decision.
    pub(super) fn new(
        key: Key,
        spec: &IngressSpec,
        status: &MultiClusterIngressStatus,
        addresses: BackendAddresses,
        facts: &impl Facts,
    ) -> Self {
        let mut unread_slices = facts.unread_slices(&key.namespace);
        let mut backends = Vec::new();
        for service in services(spec) {
            let mut backend = Backend::located(&key.namespace, service, status, facts);
            match addresses {
                BackendAddresses::Endpoints => {
                    backend.add_collected(facts.slices(&key.namespace, service));
                }
                BackendAddresses::LoadBalancers | BackendAddresses::Ingresses => {
                    if backend.add_reported(&key, addresses, facts) == Cached::Unread {
                        unread_slices.insert(source(service));
                    }
                }
            }
            backend.admit(status, facts);
            backends.push(backend);
        }
        let secrets = secrets(spec).into_iter().map(|name| TlsSecret {
            name: name.to_owned(),
            source: facts.secret(&key.namespace, name),
        });
        Self {
            routes: IngressSpec {
                ingress_class_name: None,
                ..spec.clone()
            },
            backends,
            secrets: secrets.collect(),
            unread_slices,
            annotations: BTreeMap::new(),
            withheld: Vec::new(),
            excluded: BTreeSet::new(),
            when_all_blocked: WhenAllBlocked::default(),
            addresses,
            invalid_annotations: Vec::new(),
            key,
        }
    }

    /// Returns the host names that members report.
    pub fn names(&self) -> BTreeSet<String> {
        let names = self.backends.iter().flat_map(|backend| &backend.names);
        names.cloned().collect()
    }

    /// Keeps the endpoints of clusters with a host name of which DNS has told nothing yet, if the load balancer has some of
    /// one, as those that it has `held` since before a start. Of another there is nothing to wait for.
    pub(super) fn keep_untold(&mut self, held: &BTreeSet<String>) {
        for backend in &self.backends {
            if !backend.untold.is_disjoint(held) {
                self.unread_slices.insert(source(&backend.service));
            }
        }
    }

    /// Returns `true` if the slice or the status `source` cannot be read, so that its endpoints remain.
    pub(super) fn is_unread(&self, source: &str) -> bool {
        let mut unread = self.unread_slices.iter();
        unread.any(|unread| {
            let rest = source.strip_prefix(unread.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the backend for `service`.
    pub fn backend(&self, service: &str) -> Option<&Backend> {
        self.backends.iter().find(|b| b.service == service)
    }
}

/// Returns the annotations of `ingress` that are meant for the controller that serves it: neither
/// kubectl's, nor Karmada's, nor ours. The class that an old annotation names is ours as well.
pub(super) fn passed_on(ingress: &ObjectMeta) -> BTreeMap<String, String> {
    const OTHERS: [&str; 2] = [
        "kubectl.kubernetes.io/last-applied-configuration",
        "kubernetes.io/ingress.class",
    ];
    let all = ingress.annotations.iter().flatten();
    all.filter(|(key, _)| {
        !OTHERS.contains(&key.as_str()) && !is_of(key, "karmada.io") && !is_of(key, "karmada-rs.io")
    })
    .map(|(key, value)| (key.clone(), value.clone()))
    .collect()
}

/// Returns `true` if an annotation belongs to a domain, or to one below it.
fn is_of(key: &str, domain: &str) -> bool {
    let own = key.split_once('/').map_or("", |(own, _)| own);
    own.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns those of `clusters` that must get no request. An unreadable one is left out unless it is in
/// `previous`, the clusters blocked so far.
pub fn excluded(
    mut clusters: BTreeSet<String>,
    previous: &[String],
    facts: &impl ClusterFacts,
) -> BTreeSet<String> {
    clusters.retain(|name| admission_of(name, previous, facts).is_excluded());
    clusters
}

impl Backend {
    /// Returns the backend with the clusters in which the Service runs, not admitted yet.
    fn located(
        namespace: &str,
        service: &str,
        status: &MultiClusterIngressStatus,
        facts: &impl Facts,
    ) -> Self {
        let located = service_clusters(namespace, service, facts);
        let known: Vec<&str> = match &located {
            Cached::Present(located) => located.iter().copied().collect(),
            Cached::Absent => Vec::new(),
            // The last decision stands in for the unread binding.
            Cached::Unread => located_before(service, status),
        };
        let mut backend = Self {
            service: service.to_owned(),
            ports: facts.template(namespace, service).map(ports),
            clusters: Vec::new(),
            unusable: BTreeSet::new(),
            names: BTreeSet::new(),
            untold: BTreeSet::new(),
            node_obstacles: BTreeMap::new(),
            is_location_unread: located == Cached::Unread,
        };
        for cluster in known {
            backend.entry(cluster).is_located = true;
        }
        backend
    }

    /// Returns the cluster `name`, added if it is new.
    fn entry(&mut self, name: &str) -> &mut ClusterEndpoints {
        let place = self
            .clusters
            .binary_search_by(|c| c.cluster.as_str().cmp(name));
        let place = place.unwrap_or_else(|place| {
            let cluster = ClusterEndpoints {
                cluster: name.to_owned(),
                admission: Admission::NotLocated,
                is_located: self.is_location_unread,
                only_names: BTreeSet::new(),
                slices: Vec::new(),
            };
            self.clusters.insert(place, cluster);
            place
        });
        &mut self.clusters[place]
    }

    /// Adds the slices that Karmada collected. The only port of a Service is that of its slices, whatever it is called there: each
    /// member gets a new name of it at its own time.
    fn add_collected(&mut self, mut slices: Vec<Arc<EndpointSlice>>) {
        slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let only = match &self.ports {
            Cached::Present(ports) => <[ServicePort; 1]>::try_from(ports.clone()).ok(),
            Cached::Absent | Cached::Unread => None,
        };
        for slice in slices {
            if let Some(cluster) = slice_cluster(&slice) {
                let renamed = only.iter().find_map(|[port]| renamed(&slice, port));
                let slices = &mut self.entry(cluster).slices;
                slices.push(renamed.map_or_else(|| Arc::clone(&slice), Arc::new));
            }
        }
    }

    /// Adds the addresses that members report of the Service, or of the Ingress `key`, in place of endpoints. Adds nothing
    /// unless all of it is known.
    fn add_reported(
        &mut self,
        key: &Key,
        addresses: BackendAddresses,
        facts: &impl Facts,
    ) -> Cached<()> {
        let reported = match self.reported(key, addresses, facts) {
            Cached::Present(reported) => reported,
            Cached::Absent => return Cached::Absent,
            Cached::Unread => return Cached::Unread,
        };
        if addresses == BackendAddresses::LoadBalancers {
            match self.nodes(&key.namespace, &reported, facts) {
                Cached::Present(nodes) => {
                    self.add_slices(nodes.slices);
                    self.node_obstacles = nodes.obstacles;
                }
                Cached::Absent => {}
                Cached::Unread => return Cached::Unread,
            }
        }
        self.add_slices(reported.slices);
        for (cluster, names) in reported.only_names {
            self.entry(&cluster).only_names = names;
        }
        self.unusable = reported.unusable;
        self.names = reported.names;
        self.untold = reported.untold;
        Cached::Present(())
    }

    fn add_slices(&mut self, by_cluster: BTreeMap<String, Vec<Arc<EndpointSlice>>>) {
        for (cluster, slices) in by_cluster {
            self.entry(&cluster).slices = slices;
        }
    }

    /// Returns the nodes at which a Service of type `NodePort` is served, of the clusters that report no load balancer: one may
    /// have got another type there.
    fn nodes(&self, namespace: &str, reported: &Reported, facts: &impl Facts) -> Cached<Nodes> {
        let service = Key::new(namespace, &self.service);
        let (Cached::Present(template), Cached::Present(binding)) = (
            facts.template(namespace, &self.service),
            facts.binding(namespace, &self.service),
        ) else {
            return Cached::Absent;
        };
        if !has_node_ports(template) {
            return Cached::Absent;
        }
        let clusters = self.clusters.iter().map(|it| it.cluster.as_str());
        let silent = clusters.filter(|&cluster| {
            !reported.slices.contains_key(cluster) && !reported.only_names.contains_key(cluster)
        });
        nodes(&service, template, binding, silent, facts)
    }

    /// Returns the reports of the members about the Service, or of the Ingress `key`, in place of endpoints.
    fn reported(
        &mut self,
        key: &Key,
        addresses: BackendAddresses,
        facts: &impl Facts,
    ) -> Cached<Reported> {
        let binding = if addresses == BackendAddresses::Ingresses {
            if let Cached::Present(ports) = &mut self.ports {
                // An ingress controller speaks HTTP at its own port, whatever the pods behind it do.
                for port in ports {
                    port.app_protocol = Some("http".to_owned());
                }
            }
            facts.ingress_binding(&key.namespace, own_name(key))
        } else {
            facts.binding(&key.namespace, &self.service)
        };
        let ports = match &self.ports {
            Cached::Present(ports) => ports.iter(),
            Cached::Absent => return Cached::Absent,
            Cached::Unread => return Cached::Unread,
        };
        let served = ports.map(|port| ServedPort {
            at: match addresses {
                BackendAddresses::Ingresses => HTTP,
                _ => port.port,
            },
            port: port.clone(),
        });
        let served: Vec<ServedPort> = served.collect();
        binding.map(|binding| reported(&self.service, binding, &served, facts))
    }

    /// Decides about each cluster.
    fn admit(&mut self, status: &MultiClusterIngressStatus, facts: &impl Facts) {
        let blocked = status.traffic_block_clusters.as_deref().unwrap_or_default();
        for cluster in &mut self.clusters {
            // A block outranks the location, so that a blocked cluster is reported as such everywhere.
            cluster.admission = match admission_of(&cluster.cluster, blocked, facts) {
                Admission::Admitted if !cluster.is_located => Admission::NotLocated,
                other => other,
            };
        }
    }

    /// Returns the cluster `name` if the Service runs there or has endpoints from it.
    pub fn cluster(&self, name: &str) -> Option<&ClusterEndpoints> {
        self.clusters.iter().find(|c| c.cluster == name)
    }
}

fn located_before<'a>(service: &str, status: &'a MultiClusterIngressStatus) -> Vec<&'a str> {
    let mut locations = status.service_locations.iter().flatten();
    let location = locations.find(|location| location.name == service);
    let clusters = location.and_then(|location| location.clusters.as_ref());
    clusters.into_iter().flatten().map(String::as_str).collect()
}

/// Returns the slice with the name of `port` at its only port; `None` if it has that, or another number of ports.
fn renamed(slice: &EndpointSlice, port: &ServicePort) -> Option<EndpointSlice> {
    let [found] = slice.ports.as_deref()? else {
        return None;
    };
    let name = port.name.as_deref().unwrap_or_default();
    (found.name.as_deref().unwrap_or_default() != name).then(|| {
        let renamed = EndpointPort {
            name: Some(name.to_owned()),
            ..found.clone()
        };
        EndpointSlice {
            ports: Some(vec![renamed]),
            ..slice.clone()
        }
    })
}

fn ports(template: &Service) -> Vec<ServicePort> {
    let spec = template.spec.as_ref();
    spec.and_then(|spec| spec.ports.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
