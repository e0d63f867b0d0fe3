use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::MultiClusterIngressStatus;
use objects::Key;

use super::admission::{Admission, admission_of};
use super::facts::{Cached, Facts};
use super::locations::{located, services};
use super::when_all_blocked::WhenAllBlocked;
use crate::endpoints::slice_cluster;

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
    /// Collected `EndpointSlice`s that could never be read. Objects made from them remain.
    pub unread_slices: BTreeSet<String>,
    /// Clusters that must get no request, whichever Service the load balancer has endpoints of there:
    /// it may still route to one that the routes no longer name.
    pub excluded: BTreeSet<String>,
    /// The behaviour while every cluster of a backend is blocked.
    pub when_all_blocked: WhenAllBlocked,
    /// The text of an annotation for that behaviour that could not be parsed.
    pub misspelt: Option<String>,
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
    /// The slices as Karmada collected them, sorted by name. Their ports have the names of the Service's
    /// ports.
    pub slices: Vec<Arc<EndpointSlice>>,
}

impl ClusterEndpoints {
    /// Returns the slices to whose endpoints requests can be sent. Pods that lack the port of their Service are in slices
    /// without ports.
    pub fn routable(&self) -> impl Iterator<Item = &EndpointSlice> {
        let slices = self.slices.iter().map(AsRef::as_ref);
        slices.filter(|slice: &&EndpointSlice| {
            let has_endpoints = slice.endpoints.iter().flatten().next().is_some();
            has_endpoints && slice.ports.iter().flatten().next().is_some()
        })
    }
}

/// The clusters of which a load balancer holds endpoints, by the load balancer's name of the Service.
pub type Held = BTreeMap<String, BTreeSet<String>>;

impl Desired {
    /// Returns the desired state for the ingress `key` with `spec`. `status` is the last decision.
    pub(super) fn new(
        key: Key,
        spec: &IngressSpec,
        status: &MultiClusterIngressStatus,
        facts: &impl Facts,
    ) -> Self {
        let backends = services(spec)
            .into_iter()
            .map(|service| Backend::new(&key.namespace, service, status, facts))
            .collect();
        Self {
            routes: IngressSpec {
                ingress_class_name: None,
                ..spec.clone()
            },
            backends,
            unread_slices: facts.unread_slices(&key.namespace),
            annotations: BTreeMap::new(),
            withheld: Vec::new(),
            excluded: BTreeSet::new(),
            when_all_blocked: WhenAllBlocked::default(),
            misspelt: None,
            key,
        }
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
    let is_of = |key: &str, domain: &str| {
        let own = key.split_once('/').map_or("", |(own, _)| own);
        own.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let all = ingress.annotations.iter().flatten();
    all.filter(|(key, _)| {
        !OTHERS.contains(&key.as_str()) && !is_of(key, "karmada.io") && !is_of(key, "karmada-rs.io")
    })
    .map(|(key, value)| (key.clone(), value.clone()))
    .collect()
}

/// Returns those of `clusters` that must get no request. An unreadable one is left out unless it is in
/// `previous`, the clusters blocked so far.
pub fn excluded(
    clusters: BTreeSet<String>,
    previous: &[String],
    facts: &impl Facts,
) -> BTreeSet<String> {
    let is_excluded = |name: &String| admission_of(name, previous, facts).is_excluded();
    clusters.into_iter().filter(is_excluded).collect()
}

impl Backend {
    fn new(
        namespace: &str,
        service: &str,
        status: &MultiClusterIngressStatus,
        facts: &impl Facts,
    ) -> Self {
        let blocked = status.traffic_block_clusters.as_deref().unwrap_or_default();
        let located = located(namespace, service, facts);
        let is_located = |cluster: &str| match &located {
            Cached::Present(clusters) => clusters.contains(cluster),
            Cached::Unread => true,
            Cached::Absent => false,
        };
        // A block outranks the location, so that a blocked cluster is reported as such everywhere.
        let admission = |cluster: &str| match admission_of(cluster, blocked, facts) {
            Admission::Admitted if !is_located(cluster) => Admission::NotLocated,
            other => other,
        };
        let mut clusters: BTreeMap<String, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
        let known: Vec<&str> = match &located {
            Cached::Present(located) => located.iter().copied().collect(),
            Cached::Absent => Vec::new(),
            // The last decision stands in for the unread binding.
            Cached::Unread => located_before(service, status),
        };
        clusters.extend(known.into_iter().map(|c| (c.to_owned(), Vec::new())));
        for slice in facts.slices(namespace, service) {
            if let Some(cluster) = slice_cluster(&slice) {
                clusters.entry(cluster.to_owned()).or_default().push(slice);
            }
        }
        let clusters = clusters.into_iter().map(|(cluster, mut slices)| {
            slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
            ClusterEndpoints {
                admission: admission(&cluster),
                is_located: is_located(&cluster),
                cluster,
                slices,
            }
        });
        Self {
            service: service.to_owned(),
            ports: facts.template(namespace, service).map(ports),
            clusters: clusters.collect(),
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

fn ports(template: &Service) -> Vec<ServicePort> {
    let spec = template.spec.as_ref();
    spec.and_then(|spec| spec.ports.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
