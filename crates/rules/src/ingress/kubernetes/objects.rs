use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::{
    Ingress, IngressBackend, IngressRule, IngressSpec, IngressTLS,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use karmada_api::names::{SERVICE_NAME, SLICE_MANAGED_BY};
use objects::Key;
use serde_json::json;

use super::names::{managed_by, object_name};
use super::routes::all_routes;
use super::scheme::{ingress_scheme, service_scheme};
use crate::ingress::{Backend, Cached, ClusterEndpoints, ControllerName, Desired, TlsSecret};

pub(in crate::ingress) const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
pub(super) const CLUSTER_LABEL: &str = "karmada-rs.io/cluster";
pub(in crate::ingress) const INGRESS_ANNOTATION: &str = "karmada-rs.io/multi-cluster-ingress";
/// Lists the annotations that an object has from the user's objects, as JSON.
pub(super) const PASSED_ON_ANNOTATION: &str = "karmada-rs.io/passed-on-annotations";
pub(super) const SOURCE_ANNOTATION: &str = "karmada-rs.io/collected-endpoint-slice";

/// The factory of objects in the gateway cluster, which also recognizes them.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(in crate::ingress) managed_by: String,
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
    /// One for each Secret of TLS that can be read.
    pub secrets: Vec<Secret>,
    /// `None` if there is nothing to route: an Ingress needs a rule or a default backend.
    pub ingress: Option<Ingress>,
}

/// Returns the ingress for which one of our objects was created. It is in the same namespace unless the object says another.
pub fn ingress_of(meta: &ObjectMeta) -> Option<Key> {
    let ingress = meta.annotations.as_ref()?.get(INGRESS_ANNOTATION)?;
    Some(match ingress.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::new(meta.namespace.clone()?, ingress),
    })
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

    /// Returns the name of the copy of `secret` for `ingress`.
    pub(super) fn secret_name(ingress: &Key, secret: &str) -> String {
        object_name(&ingress.name, secret, &[])
    }

    /// Returns the objects that serve `desired`. A backend without a template, or without ports, has no
    /// objects; one with an unreadable template has slices but no Service here, and its existing Service
    /// remains.
    pub fn objects(&self, desired: &Desired) -> Objects {
        let key = &desired.key;
        let secrets = desired.secrets.iter();
        let mut objects = Objects {
            secrets: secrets.filter_map(|s| self.secret(key, s)).collect(),
            ingress: self.ingress(desired),
            ..Objects::default()
        };
        for backend in &desired.backends {
            // Without ports there is nothing to route to; unread ones keep the existing Service.
            match &backend.ports {
                Cached::Present(ports) if !ports.is_empty() => {
                    objects.services.push(self.service(desired, backend, ports));
                }
                Cached::Unread => {}
                Cached::Present(_) | Cached::Absent => continue,
            }
            let served = backend
                .clusters
                .iter()
                .filter(|cluster| cluster.admission.is_served());
            let slices = served.flat_map(|cluster| self.slices(key, backend, cluster));
            let mut slices: Vec<EndpointSlice> = slices.collect();
            keep_once(&mut slices);
            objects.slices.extend(slices);
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

    fn service(&self, desired: &Desired, backend: &Backend, ports: &[ServicePort]) -> Service {
        let name = Self::service_name(&desired.key, &backend.service);
        let mut metadata = self.meta(&desired.key, name);
        add_recorded(&mut metadata, service_scheme(&desired.routes, backend));
        Service {
            metadata,
            spec: Some(ServiceSpec {
                // Without a selector: the gateway cluster's own controller makes no slices for it.
                type_: Some("ClusterIP".to_owned()),
                ports: Some(ports.iter().map(service_port).collect()),
                ..ServiceSpec::default()
            }),
            status: None,
        }
    }

    /// Returns the copy of a Secret. Each ingress has one of its own, which goes with it.
    fn secret(&self, ingress: &Key, secret: &TlsSecret) -> Option<Secret> {
        let Cached::Present(source) = &secret.source else {
            return None;
        };
        Some(Secret {
            metadata: self.meta(ingress, Self::secret_name(ingress, &secret.name)),
            data: source.data.clone(),
            type_: source.type_.clone(),
            ..Secret::default()
        })
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
        let (default_backend, rules) = all_routes(routes);
        let spec = IngressSpec {
            default_backend: default_backend.map(|backend| renamed(key, backend)),
            ingress_class_name: self.ingress_class.clone(),
            rules: non_empty(rules.into_iter().map(|r| renamed_rule(key, r)).collect()),
            tls: non_empty(
                routes
                    .tls
                    .iter()
                    .flatten()
                    .map(|t| tls(desired, t))
                    .collect(),
            ),
        };
        let routes_anything = spec.default_backend.is_some() || spec.rules.is_some();
        routes_anything.then(|| {
            let mut metadata = self.meta(key, key.name.clone());
            let mut annotations = ingress_scheme(desired);
            // What the user says goes before what follows from a port.
            annotations.extend(desired.annotations.clone());
            add_recorded(&mut metadata, annotations);
            Ingress {
                metadata,
                spec: Some(spec),
                status: None,
            }
        })
    }
}

/// Adds annotations that go when they are no longer wanted, which takes a record of them.
fn add_recorded(metadata: &mut ObjectMeta, annotations: BTreeMap<String, String>) {
    if annotations.is_empty() {
        return;
    }
    let names: Vec<&String> = annotations.keys().collect();
    let names = json!(names).to_string();
    let all = metadata.annotations.get_or_insert_default();
    all.extend(annotations);
    all.insert(PASSED_ON_ANNOTATION.to_owned(), names);
}

/// Keeps each address of a Service at the same ports once, ready if it is ready anywhere: of two that differ, a proxy takes
/// either.
fn keep_once(slices: &mut Vec<EndpointSlice>) {
    if slices.len() < 2 {
        return;
    }
    let is_ready = |endpoint: &Endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) == Some(true)
    };
    let mut kept: HashMap<(String, String), (usize, bool)> = HashMap::new();
    for (place, slice) in slices.iter().enumerate() {
        let ports = ports_of(slice);
        for endpoint in slice.endpoints.iter().flatten() {
            let found = (place, is_ready(endpoint));
            for address in &endpoint.addresses {
                let best = kept
                    .entry((address.clone(), ports.clone()))
                    .or_insert(found);
                if found.1 && !best.1 {
                    *best = found;
                }
            }
        }
    }
    for (place, slice) in slices.iter_mut().enumerate() {
        let ports = ports_of(slice);
        for endpoint in slice.endpoints.iter_mut().flatten() {
            let addresses = &mut endpoint.addresses;
            addresses.retain(|address| kept[&(address.clone(), ports.clone())].0 == place);
        }
        let endpoints = slice.endpoints.iter_mut();
        endpoints.for_each(|all| all.retain(|endpoint| !endpoint.addresses.is_empty()));
    }
    slices.retain(|slice| slice.endpoints.iter().flatten().next().is_some());
}

/// Returns what tells the ports of a slice from others'.
fn ports_of(slice: &EndpointSlice) -> String {
    let ports = slice.ports.iter().flatten();
    let ports = ports.map(|port| format!("{:?} {:?} {:?}", port.name, port.port, port.protocol));
    ports.collect::<Vec<_>>().join(",")
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
        conditions: Some(spelled_out(endpoint.conditions.as_ref())),
        ..Endpoint::default()
    }
}

/// Returns the conditions without a gap: of one proxy, some readers go by `ready` alone and take an absent one for false,
/// and others by `serving` alone and take an absent one for true.
fn spelled_out(found: Option<&EndpointConditions>) -> EndpointConditions {
    let ready = found.and_then(|found| found.ready).unwrap_or(true);
    let ends = found.and_then(|found| found.terminating).unwrap_or(false);
    EndpointConditions {
        ready: Some(ready),
        // One that ends keeps the requests and sessions it has as long as it serves.
        serving: Some(if ends {
            found.and_then(|found| found.serving).unwrap_or(ready)
        } else {
            ready
        }),
        terminating: Some(ends),
    }
}

/// Returns the TLS with the gateway's copy of its Secret, or with the Secret of that name which the user may have put there.
fn tls(desired: &Desired, tls: &IngressTLS) -> IngressTLS {
    let name = non_blank(tls.secret_name.clone());
    let copied = desired
        .secrets
        .iter()
        .find(|secret| Some(&secret.name) == name.as_ref() && secret.source != Cached::Absent);
    IngressTLS {
        hosts: tls.hosts.clone().and_then(non_empty),
        secret_name: match copied {
            Some(secret) => Some(Gateway::secret_name(&desired.key, &secret.name)),
            None => name,
        },
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
