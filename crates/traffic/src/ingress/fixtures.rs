//! Facts for the tests of this module, and constructors of the objects in them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fleet_api::Placement;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, IngressBackend, IngressClass, IngressClassSpec,
    IngressRule, IngressServiceBackend, IngressSpec, ServiceBackendPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use karmada_api::{
    AggregatedStatusItem, Cluster, ClusterStatus, MultiClusterIngress, MultiClusterIngressSpec,
    ObjectReference, ResourceBinding, ResourceBindingStatus, ServiceLocation, TRAFFIC_CONTROL,
    TargetCluster, execution_namespace,
};
use objects::Key;
use serde_json::{Value, json};

use super::facts::{ClusterFacts, Facts};
use super::locations::binding_of;
use crate::ClusterKind;
use crate::cached::Cached;
use crate::endpoints::slice_service;

/// Facts in memory. Every namespaced object is in the namespace `ns`.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixture {
    pub(super) classes: Vec<IngressClass>,
    pub(super) unread_classes: BTreeSet<String>,
    pub(super) clusters: BTreeMap<String, Cluster>,
    pub(super) unread_clusters: BTreeSet<String>,
    /// The clusters that a Remedy without matches blocks.
    pub(super) decided: BTreeSet<String>,
    pub(super) bindings: BTreeMap<String, ResourceBinding>,
    pub(super) unread_bindings: BTreeSet<String>,
    pub(super) ingress_bindings: BTreeMap<String, ResourceBinding>,
    /// The addresses of hosts, as far as DNS has told them.
    pub(super) hosts: BTreeMap<String, Vec<IpAddr>>,
    /// Set if the load balancer takes the names of hosts.
    pub(super) takes_names: bool,
    /// The slices of nodes, by cluster.
    pub(super) nodes: BTreeMap<String, Vec<Arc<EndpointSlice>>>,
    pub(super) unread_nodes: BTreeSet<String>,
    pub(super) templates: BTreeMap<String, Service>,
    pub(super) unread_templates: BTreeSet<String>,
    pub(super) secrets: BTreeMap<String, Arc<Secret>>,
    pub(super) unread_secrets: BTreeSet<String>,
    pub(super) slices: Vec<Arc<EndpointSlice>>,
    pub(super) unread_slices: BTreeSet<String>,
}

impl Fixture {
    pub(super) fn with_cluster(mut self, cluster: Cluster) -> Self {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        self.clusters.insert(name, cluster);
        self
    }

    pub(super) fn with_binding(mut self, service: &str, binding: ResourceBinding) -> Self {
        self.bindings.insert(service.to_owned(), binding);
        self
    }

    pub(super) fn with_template(mut self, template: Service) -> Self {
        let name = template.metadata.name.clone().unwrap_or_default();
        self.templates.insert(name, template);
        self
    }

    pub(super) fn with_secret(mut self, name: &str, key: &str) -> Self {
        let data = [("tls.key".to_owned(), ByteString(key.into()))];
        let secret = Secret {
            metadata: in_ns(name),
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data.into()),
            ..Secret::default()
        };
        self.secrets.insert(name.to_owned(), Arc::new(secret));
        self
    }

    pub(super) fn with_slices(mut self, slices: &[EndpointSlice]) -> Self {
        self.slices.extend(slices.iter().cloned().map(Arc::new));
        self
    }
}

/// Returns the facts of two Services: `s` runs in two clusters, and `t` in one of them.
pub(super) fn two_services() -> Fixture {
    Fixture::default()
        .with_cluster(cluster("m1"))
        .with_cluster(cluster("m2"))
        .with_binding("s", binding("s", &["m1", "m2"]))
        .with_binding("t", binding("t", &["m1"]))
        .with_template(template("s", &[("web", 80)]))
        .with_template(template("t", &[("web", 80)]))
        .with_slices(&[
            slice("s", "m1", "x", &["10.0.0.1"]),
            slice("s", "m2", "x", &["10.0.0.2"]),
            slice("t", "m1", "x", &["10.0.0.3"]),
        ])
}

fn seen<'a, T>(
    map: &'a BTreeMap<String, T>,
    unread: &BTreeSet<String>,
    name: &str,
) -> Cached<&'a T> {
    match map.get(name) {
        Some(object) => Cached::Present(object),
        None if unread.contains(name) => Cached::Unread,
        None => Cached::Absent,
    }
}

impl ClusterFacts for Fixture {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        seen(&self.clusters, &self.unread_clusters, name)
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        self.decided.contains(cluster)
    }
}

impl Facts for Fixture {
    fn classes(&self) -> impl Iterator<Item = Cached<&IngressClass>> {
        let unread = self.unread_classes.iter().map(|_| Cached::Unread);
        self.classes.iter().map(Cached::Present).chain(unread)
    }

    fn class(&self, name: &str) -> Cached<&IngressClass> {
        let mut classes = self.classes.iter();
        match classes.find(|class| class.metadata.name.as_deref() == Some(name)) {
            Some(class) => Cached::Present(class),
            None if self.unread_classes.contains(name) => Cached::Unread,
            None => Cached::Absent,
        }
    }

    fn cluster_kind(&self) -> ClusterKind {
        ClusterKind::Cluster
    }

    fn placements(&self, _: &Key) -> Option<impl Iterator<Item = &Placement>> {
        Some(std::iter::empty::<&Placement>())
    }

    fn binding(&self, _: &str, service: &str) -> Cached<&ResourceBinding> {
        match seen(&self.bindings, &self.unread_bindings, service) {
            Cached::Present(binding) => {
                binding_of([binding].into_iter(), service).map_or(Cached::Absent, Cached::Present)
            }
            other => other,
        }
    }

    fn ingress_binding(&self, _: &str, name: &str) -> Cached<&ResourceBinding> {
        seen(&self.ingress_bindings, &self.unread_bindings, name)
    }

    fn addresses(&self, host: &str) -> Option<Cached<Vec<IpAddr>>> {
        let known = match self.hosts.get(host) {
            Some(known) if known.is_empty() => Cached::Absent,
            Some(known) => Cached::Present(known.clone()),
            None => Cached::Unread,
        };
        (!self.takes_names).then_some(known)
    }

    fn nodes(&self, cluster: &str) -> Cached<Vec<Arc<EndpointSlice>>> {
        match self.nodes.get(cluster) {
            Some(slices) => Cached::Present(slices.clone()),
            None if self.unread_nodes.contains(cluster) => Cached::Unread,
            None => Cached::Absent,
        }
    }

    fn template(&self, _: &str, service: &str) -> Cached<&Service> {
        seen(&self.templates, &self.unread_templates, service)
    }

    fn secret(&self, _: &str, name: &str) -> Cached<Arc<Secret>> {
        seen(&self.secrets, &self.unread_secrets, name).map(Arc::clone)
    }

    fn slices(&self, _: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        let own = self.slices.iter().filter(|slice| {
            slice_service(ClusterKind::Cluster, slice).is_some_and(|found| found.name == service)
        });
        own.cloned().collect()
    }

    fn unread_slices(&self, _: &str) -> BTreeSet<String> {
        self.unread_slices.clone()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn in_ns(name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some("ns".to_owned()),
        ..named(name)
    }
}

pub(super) fn class(name: &str, controller: &str) -> IngressClass {
    IngressClass {
        metadata: named(name),
        spec: Some(IngressClassSpec {
            controller: Some(controller.to_owned()),
            parameters: None,
        }),
    }
}

pub(super) fn default_class(name: &str, controller: &str) -> IngressClass {
    let mut class = class(name, controller);
    let key = "ingressclass.kubernetes.io/is-default-class".to_owned();
    class.metadata.annotations = Some([(key, "true".to_owned())].into());
    class
}

pub(super) fn cluster(name: &str) -> Cluster {
    Cluster {
        metadata: named(name),
        ..Cluster::default()
    }
}

pub(super) fn blocked(name: &str) -> Cluster {
    Cluster {
        status: Some(ClusterStatus {
            remedy_actions: Some(vec!["Cordon".to_owned(), TRAFFIC_CONTROL.to_owned()]),
            ..ClusterStatus::default()
        }),
        ..cluster(name)
    }
}

pub(super) fn some_time() -> Time {
    Time(jiff::Timestamp::UNIX_EPOCH)
}

pub(super) fn deleting(mut cluster: Cluster) -> Cluster {
    cluster.metadata.deletion_timestamp = Some(some_time());
    cluster
}

pub(super) fn binding(service: &str, clusters: &[&str]) -> ResourceBinding {
    let clusters = clusters.iter().map(|&name| TargetCluster {
        name: name.to_owned(),
        ..TargetCluster::default()
    });
    ResourceBinding {
        metadata: in_ns(&format!("{service}-service")),
        spec: karmada_api::ResourceBindingSpec {
            resource: ObjectReference {
                api_version: "v1".to_owned(),
                kind: "Service".to_owned(),
                name: service.to_owned(),
                ..ObjectReference::default()
            },
            clusters: Some(clusters.collect()),
            ..karmada_api::ResourceBindingSpec::default()
        },
        status: None,
    }
}

/// Returns the binding of an object with these entries of `status.loadBalancer.ingress` in each cluster.
pub(super) fn bound(name: &str, clusters: &[(&str, Value)]) -> ResourceBinding {
    let names: Vec<&str> = clusters.iter().map(|(cluster, _)| *cluster).collect();
    let mut binding = binding(name, &names);
    let items = clusters
        .iter()
        .map(|(cluster, entries)| AggregatedStatusItem {
            cluster_name: (*cluster).to_owned(),
            applied: Some(true),
            status: Some(json!({ "loadBalancer": { "ingress": entries } })),
            ..AggregatedStatusItem::default()
        });
    binding.status = Some(ResourceBindingStatus {
        aggregated_status: Some(items.collect()),
        ..ResourceBindingStatus::default()
    });
    binding
}

pub(super) fn location(service: &str, clusters: &[&str]) -> ServiceLocation {
    let clusters: Vec<String> = clusters.iter().map(|&c| c.to_owned()).collect();
    ServiceLocation {
        name: service.to_owned(),
        clusters: Some(clusters).filter(|c| !c.is_empty()),
    }
}

pub(super) fn template(service: &str, ports: &[(&str, i32)]) -> Service {
    let ports = ports.iter().map(|&(name, port)| ServicePort {
        name: Some(name.to_owned()).filter(|n| !n.is_empty()),
        port,
        ..ServicePort::default()
    });
    Service {
        metadata: in_ns(service),
        spec: Some(ServiceSpec {
            ports: Some(ports.collect()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Returns an `EndpointSlice` named `<cluster>-<service>-<name>` that Karmada collected from `cluster`.
pub(super) fn slice(service: &str, cluster: &str, name: &str, ips: &[&str]) -> EndpointSlice {
    let endpoints = ips.iter().map(|&ip| Endpoint {
        addresses: vec![ip.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            ..EndpointConditions::default()
        }),
        node_name: Some("node-1".to_owned()),
        zone: Some("zone-1".to_owned()),
        ..Endpoint::default()
    });
    let label = ("kubernetes.io/service-name", format!("derived-{service}"));
    let annotation = ("work.karmada.io/namespace", execution_namespace(cluster));
    EndpointSlice {
        metadata: ObjectMeta {
            labels: Some([label].map(|(k, v)| (k.to_owned(), v)).into()),
            annotations: Some([annotation].map(|(k, v)| (k.to_owned(), v)).into()),
            ..in_ns(&format!("{cluster}-{service}-{name}"))
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints.collect()),
        ports: Some(vec![EndpointPort {
            name: Some("web".to_owned()),
            port: Some(8080),
            ..EndpointPort::default()
        }]),
    }
}

pub(super) fn by_number(port: i32) -> ServiceBackendPort {
    ServiceBackendPort {
        number: Some(port),
        name: None,
    }
}

/// Returns an ingress with one path for each of `services`, to port 80.
pub(super) fn ingress(
    name: &str,
    services: &[&str],
    default_backend: Option<&str>,
) -> MultiClusterIngress {
    let paths: Vec<HTTPIngressPath> = services
        .iter()
        .map(|service| path(backend(service, by_number(80))))
        .collect();
    MultiClusterIngress {
        metadata: in_ns(name),
        spec: MultiClusterIngressSpec {
            ingress: IngressSpec {
                rules: Some(vec![IngressRule {
                    host: Some("example.com".to_owned()),
                    http: Some(HTTPIngressRuleValue { paths }),
                }]),
                default_backend: default_backend.map(|service| backend(service, by_number(80))),
                ..IngressSpec::default()
            },
        },
        status: None,
    }
}

pub(super) fn ingress_to_port(
    name: &str,
    service: &str,
    port: ServiceBackendPort,
) -> MultiClusterIngress {
    let mut made = ingress(name, &[], None);
    made.spec.ingress.default_backend = Some(backend(service, port));
    made
}

fn path(backend: IngressBackend) -> HTTPIngressPath {
    HTTPIngressPath {
        backend,
        path: Some("/".to_owned()),
        path_type: "Prefix".to_owned(),
    }
}

fn backend(service: &str, port: ServiceBackendPort) -> IngressBackend {
    IngressBackend {
        resource: None,
        service: Some(IngressServiceBackend {
            name: service.to_owned(),
            port: Some(port),
        }),
    }
}
