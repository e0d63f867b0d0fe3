use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::{
    Ingress, IngressBackend, IngressRule, IngressSpec, IngressTLS,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use karmada_api::names::{SERVICE_NAME, SLICE_MANAGED_BY};
use objects::Key;
use serde_json::json;

use super::names::{managed_by, object_name};
use crate::ingress::{Backend, Cached, ClusterEndpoints, ControllerName, Desired};

pub(in crate::ingress) const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
pub(super) const CLUSTER_LABEL: &str = "karmada-rs.io/cluster";
const INGRESS_ANNOTATION: &str = "karmada-rs.io/multi-cluster-ingress";
/// Lists the annotations that an Ingress has from the user's ingress, as JSON.
pub(super) const PASSED_ON_ANNOTATION: &str = "karmada-rs.io/passed-on-annotations";
pub(super) const SOURCE_ANNOTATION: &str = "karmada-rs.io/collected-endpoint-slice";

/// The factory of objects in the gateway cluster, which also recognizes them.
#[derive(Clone, Debug)]
pub struct Gateway {
    managed_by: String,
    ingress_class: Option<String>,
}

/// The objects that serve one ingress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// One for each backend Service that has ports.
    pub services: Vec<Service>,
    /// One for each collected slice with endpoints of a served cluster. Collected slices come from an
    /// API server, so each has one address family and at most 1,000 endpoints.
    pub slices: Vec<EndpointSlice>,
    /// `None` if there is nothing to route: an Ingress needs a rule or a default backend.
    pub ingress: Option<Ingress>,
}

/// Returns the ingress for which one of our objects was created.
pub fn ingress_of(meta: &ObjectMeta) -> Option<Key> {
    let name = meta.annotations.as_ref()?.get(INGRESS_ANNOTATION)?;
    Some(Key::new(meta.namespace.clone()?, name))
}

impl Gateway {
    /// Creates a factory for `controller`. The gateway cluster's `ingress_class`, or its default class,
    /// serves the objects.
    pub fn new(controller: &ControllerName, ingress_class: Option<String>) -> Self {
        Self {
            managed_by: managed_by(controller),
            ingress_class,
        }
    }

    /// Returns the label selector of our objects.
    pub fn selector(&self) -> String {
        format!("{MANAGED_BY_LABEL}={}", self.managed_by)
    }

    /// Returns `true` if an object is ours to change.
    pub fn owns(&self, meta: &ObjectMeta) -> bool {
        let labels = meta.labels.as_ref();
        labels.and_then(|labels| labels.get(MANAGED_BY_LABEL)) == Some(&self.managed_by)
    }

    /// Returns the name of the gateway Service for `service` of `ingress`.
    pub(super) fn service_name(ingress: &Key, service: &str) -> String {
        object_name(&ingress.name, service, &[])
    }

    /// Returns the objects that serve `desired`. A backend without a template, or without ports, has no
    /// objects; one with an unreadable template has slices but no Service here, and its existing Service
    /// remains.
    pub fn objects(&self, desired: &Desired) -> Objects {
        let key = &desired.key;
        let mut objects = Objects {
            ingress: self.ingress(desired),
            ..Objects::default()
        };
        for backend in &desired.backends {
            // Without ports there is nothing to route to; unread ones keep the existing Service.
            match &backend.ports {
                Cached::Present(ports) if !ports.is_empty() => {
                    objects.services.push(self.service(key, backend, ports));
                }
                Cached::Unread => {}
                Cached::Present(_) | Cached::Absent => continue,
            }
            let served = backend
                .clusters
                .iter()
                .filter(|cluster| cluster.admission.is_served());
            for cluster in served {
                objects.slices.extend(self.slices(key, backend, cluster));
            }
        }
        objects
    }

    fn meta(&self, ingress: &Key, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(ingress.namespace.clone()),
            labels: Some(map([(MANAGED_BY_LABEL, self.managed_by.as_str())])),
            annotations: Some(map([(INGRESS_ANNOTATION, ingress.name.as_str())])),
            ..ObjectMeta::default()
        }
    }

    fn service(&self, ingress: &Key, backend: &Backend, ports: &[ServicePort]) -> Service {
        Service {
            metadata: self.meta(ingress, Self::service_name(ingress, &backend.service)),
            spec: Some(ServiceSpec {
                // Without a selector: the gateway cluster's own controller makes no slices for it.
                type_: Some("ClusterIP".to_owned()),
                ports: Some(ports.iter().map(service_port).collect()),
                ..ServiceSpec::default()
            }),
            status: None,
        }
    }

    fn slices<'a>(
        &'a self,
        ingress: &'a Key,
        backend: &'a Backend,
        cluster: &'a ClusterEndpoints,
    ) -> impl Iterator<Item = EndpointSlice> {
        let service = Self::service_name(ingress, &backend.service);
        cluster.routable().map(move |slice| {
            let source = slice.metadata.name.as_deref().unwrap_or_default();
            // Two clusters, or two families, may have slices of the same name.
            let distinct = [&cluster.cluster, source, &slice.address_type];
            let name = object_name(&ingress.name, &backend.service, &distinct);
            let mut metadata = self.meta(ingress, name);
            metadata.labels.get_or_insert_default().extend(map([
                (SERVICE_NAME, service.as_str()),
                // Keeps the gateway's EndpointSlice controllers away from slices that are not theirs.
                (SLICE_MANAGED_BY, &self.managed_by),
                (CLUSTER_LABEL, &cluster.cluster),
            ]));
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.extend(map([(SOURCE_ANNOTATION, source)]));
            EndpointSlice {
                metadata,
                address_type: slice.address_type.clone(),
                endpoints: Some(slice.endpoints.iter().flatten().map(endpoint).collect()),
                ports: Some(slice.ports.iter().flatten().map(endpoint_port).collect()),
            }
        })
    }

    fn ingress(&self, desired: &Desired) -> Option<Ingress> {
        let key = &desired.key;
        let routes = &desired.routes;
        let rules: Vec<IngressRule> = routes.rules.clone().unwrap_or_default();
        let backend = |b: IngressBackend| renamed(key, b);
        let spec = IngressSpec {
            default_backend: routes.default_backend.clone().map(backend),
            ingress_class_name: self.ingress_class.clone(),
            rules: non_empty(rules.into_iter().map(|r| renamed_rule(key, r)).collect()),
            tls: non_empty(routes.tls.iter().flatten().map(tls).collect()),
        };
        let routes_anything = spec.default_backend.is_some() || spec.rules.is_some();
        routes_anything.then(|| {
            let mut metadata = self.meta(key, key.name.clone());
            if !desired.annotations.is_empty() {
                let names: Vec<&String> = desired.annotations.keys().collect();
                let annotations = metadata.annotations.get_or_insert_default();
                annotations.extend(desired.annotations.clone());
                let names = json!(names).to_string();
                annotations.insert(PASSED_ON_ANNOTATION.to_owned(), names);
            }
            Ingress {
                metadata,
                spec: Some(spec),
                status: None,
            }
        })
    }
}

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Replaces an empty list by none, as an API server does: the desired object must equal the stored one.
fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

fn non_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Returns the port with the defaults that an API server fills in.
fn service_port(port: &ServicePort) -> ServicePort {
    ServicePort {
        app_protocol: port.app_protocol.clone(),
        name: non_blank(port.name.clone()),
        node_port: None,
        port: port.port,
        protocol: Some(port.protocol.clone().unwrap_or_else(tcp)),
        // The slices name the real ports; without a selector this one has no effect.
        target_port: Some(IntOrString::Int(port.port)),
    }
}

/// Returns the port with the defaults that an API server fills in.
fn endpoint_port(port: &EndpointPort) -> EndpointPort {
    EndpointPort {
        app_protocol: port.app_protocol.clone(),
        name: Some(port.name.clone().unwrap_or_default()),
        port: port.port,
        protocol: Some(port.protocol.clone().unwrap_or_else(tcp)),
    }
}

fn tcp() -> String {
    "TCP".to_owned()
}

/// Returns the addresses and conditions. Nodes, zones and pods of a member cluster do not exist in the
/// gateway cluster.
fn endpoint(endpoint: &Endpoint) -> Endpoint {
    Endpoint {
        addresses: endpoint.addresses.clone(),
        conditions: Some(endpoint.conditions.clone().unwrap_or_default()),
        ..Endpoint::default()
    }
}

fn tls(tls: &IngressTLS) -> IngressTLS {
    IngressTLS {
        hosts: tls.hosts.clone().and_then(non_empty),
        secret_name: non_blank(tls.secret_name.clone()),
    }
}

fn renamed_rule(ingress: &Key, mut rule: IngressRule) -> IngressRule {
    rule.host = non_blank(rule.host);
    for path in rule.http.iter_mut().flat_map(|http| &mut http.paths) {
        path.path = non_blank(path.path.take());
        path.backend = renamed(ingress, std::mem::take(&mut path.backend));
    }
    rule
}

/// Replaces the Service of a backend by the gateway's.
fn renamed(ingress: &Key, mut backend: IngressBackend) -> IngressBackend {
    if let Some(service) = &mut backend.service {
        service.name = Gateway::service_name(ingress, &service.name);
        if let Some(port) = &mut service.port {
            port.name = non_blank(port.name.take());
            port.number = port.number.filter(|&number| number != 0);
        }
    }
    backend
}
