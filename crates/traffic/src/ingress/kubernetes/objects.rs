use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use karmada_api::names::{SERVICE_NAME, SLICE_MANAGED_BY};
use objects::{Key, Metadata};

use super::managed_by::{ManagedBy, add_recorded, map};
use super::names::{object_name, service_name};
use super::scheme::service_scheme;
use crate::ingress::node_ports::TRAFFIC_POLICY_ANNOTATION;
use crate::ingress::{Backend, Cached, ClusterEndpoints, Desired};

/// The label of a slice with the member cluster that its endpoints belong to.
pub const CLUSTER_LABEL: &str = "karmada-rs.io/cluster";
pub(super) const SOURCE_ANNOTATION: &str = "karmada-rs.io/collected-endpoint-slice";

/// The objects that serve one ingress. Its routes are of the kind `R`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects<R> {
    /// One for each backend Service that has ports.
    pub services: Vec<Service>,
    /// One for each collected slice with endpoints of a served cluster. Collected slices come from an
    /// API server, so each has one address family and at most 1,000 endpoints.
    pub slices: Vec<EndpointSlice>,
    /// One for each Secret of TLS that can be read.
    pub secrets: Vec<Secret>,
    /// `None` if they cannot be told now: those that exist remain.
    pub routes: Option<Vec<R>>,
}

/// Returns the Services and slices of `desired`, without routes. A backend without a template, or without ports, has no
/// objects; one with an unreadable template has slices but no Service here, and its existing Service
/// remains.
pub(in crate::ingress) fn backend_objects<R>(
    managed_by: &ManagedBy,
    desired: &Desired,
) -> Objects<R> {
    let key = &desired.key;
    let mut objects = Objects {
        services: Vec::new(),
        slices: Vec::new(),
        secrets: Vec::new(),
        routes: None,
    };
    for backend in desired.backends.iter().filter(|b| has_objects(b)) {
        if let Cached::Present(ports) = &backend.ports {
            let service = service(managed_by, desired, backend, ports);
            objects.services.push(service);
        }
        let served = backend
            .clusters
            .iter()
            .filter(|cluster| cluster.admission.is_served());
        let slices = served.flat_map(|cluster| slices(managed_by, key, backend, cluster));
        let mut slices: Vec<EndpointSlice> = slices.collect();
        keep_once(&mut slices);
        objects.slices.extend(slices);
    }
    objects
}

/// Returns one slice without endpoints for each Service of `desired`. A Gateway takes a Service that has none for missing, and
/// refuses the route.
pub(in crate::ingress) fn empty_slices(
    managed_by: &ManagedBy,
    desired: &Desired,
) -> impl Iterator<Item = EndpointSlice> {
    let backends = desired.backends.iter().filter(|b| has_objects(b));
    backends.map(|backend| {
        let (key, service) = (&desired.key, &backend.service);
        let name = object_name(&key.name, service, &["empty"]);
        let mut metadata = managed_by.metadata(key, name);
        metadata.labels.get_or_insert_default().extend(map([
            (SERVICE_NAME, service_name(key, service).as_str()),
            (SLICE_MANAGED_BY, managed_by.value()),
        ]));
        EndpointSlice {
            metadata,
            address_type: "IPv4".to_owned(),
            endpoints: Some(Vec::new()),
            ports: None,
        }
    })
}

/// Returns `true` for a backend to which there is something to route. Ports that are unread may be there.
pub(super) fn has_objects(backend: &Backend) -> bool {
    match &backend.ports {
        Cached::Present(ports) => !ports.is_empty(),
        Cached::Unread => true,
        Cached::Absent => false,
    }
}

fn service(
    managed_by: &ManagedBy,
    desired: &Desired,
    backend: &Backend,
    ports: &[ServicePort],
) -> Service {
    let name = service_name(&desired.key, &backend.service);
    let mut metadata = managed_by.metadata(&desired.key, name);
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

/// Returns the slices of a cluster's endpoints.
pub(super) fn slices<'a>(
    managed_by: &'a ManagedBy,
    ingress: &'a Key,
    backend: &'a Backend,
    cluster: &'a ClusterEndpoints,
) -> impl Iterator<Item = EndpointSlice> {
    let service = service_name(ingress, &backend.service);
    cluster.routable().map(move |slice| {
        let source = slice.metadata.name.as_deref().unwrap_or_default();
        // Two clusters, or two families, may have slices of the same name.
        let distinct = [&cluster.cluster, source, &slice.address_type];
        let name = object_name(&ingress.name, &backend.service, &distinct);
        let mut metadata = managed_by.metadata(ingress, name);
        metadata.labels.get_or_insert_default().extend(map([
            (SERVICE_NAME, service.as_str()),
            // Keeps the gateway's EndpointSlice controllers away from slices that are not theirs.
            (SLICE_MANAGED_BY, managed_by.value()),
            (CLUSTER_LABEL, &cluster.cluster),
        ]));
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.extend(map([(SOURCE_ANNOTATION, source)]));
        let policy = slice.metadata.annotation(TRAFFIC_POLICY_ANNOTATION);
        annotations.extend(policy.map(|it| (TRAFFIC_POLICY_ANNOTATION.to_owned(), it.to_owned())));
        EndpointSlice {
            metadata,
            address_type: slice.address_type.clone(),
            endpoints: Some(slice.endpoints.iter().flatten().map(endpoint).collect()),
            ports: Some(slice.ports.iter().flatten().map(endpoint_port).collect()),
        }
    })
}

/// Keeps each address of a Service at the same ports once, ready if it is ready anywhere: of two that differ, a proxy takes
/// either.
fn keep_once(slices: &mut Vec<EndpointSlice>) {
    if slices.len() < 2 {
        return;
    }
    let mut kept: HashMap<(String, String), (usize, bool)> = HashMap::new();
    for (place, slice) in slices.iter().enumerate() {
        let ports = ports_of(slice);
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            let is_ready = conditions.and_then(|conditions| conditions.ready) == Some(true);
            let found = (place, is_ready);
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

/// Returns the mark that tells the ports of a slice from others'.
fn ports_of(slice: &EndpointSlice) -> String {
    let ports = slice.ports.iter().flatten();
    let ports = ports.map(|port| format!("{:?} {:?} {:?}", port.name, port.port, port.protocol));
    ports.collect::<Vec<_>>().join(",")
}

pub(super) fn non_blank(text: Option<String>) -> Option<String> {
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
