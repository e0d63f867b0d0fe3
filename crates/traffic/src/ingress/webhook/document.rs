use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU16;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};
use k8s_openapi::api::networking::v1::{IngressBackend, IngressSpec};
use karmada_api::provider::{
    API_VERSION, BackendReference, ProviderIngress, Route, RouteBackend, RouteEndpoint, RouteTls,
};
use objects::digest::sha256;

use crate::ingress::kubernetes::all_rules;
use crate::ingress::problem::{described, is_tcp};
use crate::ingress::{Backend, Cached, ControllerName, Desired};

/// Returns the document of `desired` for `controller`. Of unreadable objects it has the addresses that are `held` already, but for
/// clusters that must get no request.
///
/// # Errors
/// Fails if the document cannot be written as JSON.
pub fn document(
    controller: &ControllerName,
    desired: &Desired,
    held: Option<&ProviderIngress>,
) -> serde_json::Result<ProviderIngress> {
    let routes = routes(&desired.routes);
    let named: BTreeSet<&BackendReference> = routes.iter().map(|route| &route.backend).collect();
    let backends = named.into_iter().map(|reference| {
        let mut held = held.iter().flat_map(|held| &held.backends);
        let held = held.find(|backend| backend.reference == *reference);
        backend(desired, reference, held)
    });
    let document = ProviderIngress {
        api_version: API_VERSION.to_owned(),
        controller: controller.as_str().to_owned(),
        namespace: desired.key.namespace.clone(),
        name: desired.key.name.clone(),
        revision: String::new(),
        annotations: desired.annotations.clone(),
        backends: backends.collect(),
        tls: tls(&desired.routes),
        routes,
    };
    revised(document)
}

/// Returns the document with the revision of its content.
pub(super) fn revised(mut document: ProviderIngress) -> serde_json::Result<ProviderIngress> {
    document.revision.clear();
    let content = serde_json::to_vec(&document)?;
    document.revision = sha256(&content);
    Ok(document)
}

fn routes(spec: &IngressSpec) -> Vec<Route> {
    let rules = all_rules(spec).into_iter();
    let routes = rules.flat_map(|rule| {
        let host = rule.host.unwrap_or_default();
        let paths = rule.http.into_iter().flat_map(|http| http.paths);
        paths.filter_map(move |path| {
            let given = path.path.filter(|path| !path.is_empty());
            Some(Route {
                host: host.clone(),
                path: given.unwrap_or_else(|| "/".to_owned()),
                path_type: path.path_type,
                backend: reference(&path.backend)?,
            })
        })
    });
    routes.collect()
}

/// Returns the Service of a backend; `None` for a resource, which no program outside Kubernetes can serve.
fn reference(backend: &IngressBackend) -> Option<BackendReference> {
    let service = backend.service.as_ref()?;
    Some(BackendReference {
        service: service.name.clone(),
        port: service.port.as_ref().map(described).unwrap_or_default(),
    })
}

fn tls(spec: &IngressSpec) -> Vec<RouteTls> {
    let all = spec.tls.iter().flatten();
    all.map(|tls| RouteTls {
        hosts: tls.hosts.clone().unwrap_or_default(),
        secret_name: tls.secret_name.clone().unwrap_or_default(),
    })
    .collect()
}

fn backend(
    desired: &Desired,
    reference: &BackendReference,
    held: Option<&RouteBackend>,
) -> RouteBackend {
    let mut made = RouteBackend {
        reference: reference.clone(),
        ..RouteBackend::default()
    };
    let Some(backend) = desired.backend(&reference.service) else {
        return made;
    };
    let mut endpoints = BTreeMap::new();
    let port = port(backend, reference);
    if let Some(port) = port {
        made.app_protocol = port.app_protocol.clone().unwrap_or_default();
        let served = backend.clusters.iter().filter(|c| c.admission.is_served());
        for cluster in served {
            for slice in cluster.routable() {
                for endpoint in of_slice(slice, port, &cluster.cluster) {
                    add(&mut endpoints, endpoint);
                }
            }
        }
    }
    let is_unread = backend.ports == Cached::Unread;
    if let Some(held) = held {
        if is_unread {
            made.app_protocol.clone_from(&held.app_protocol);
        }
        let kept = held.endpoints.iter().filter(|endpoint| {
            let cluster = backend.cluster(&endpoint.cluster);
            let is_served = cluster.is_some_and(|cluster| cluster.admission.is_served());
            is_served && (is_unread || desired.is_unread(&endpoint.source))
        });
        kept.for_each(|endpoint| add(&mut endpoints, endpoint.clone()));
    }
    made.endpoints = endpoints.into_values().collect();
    // Proxies of Kubernetes fall back to endpoints that end and still serve (KEP-1669).
    if !made.endpoints.iter().any(|endpoint| endpoint.ready) {
        made.endpoints
            .iter_mut()
            .for_each(|endpoint| endpoint.ready = true);
    }
    made
}

/// Returns the port of the Service that a route names.
fn port<'a>(backend: &'a Backend, reference: &BackendReference) -> Option<&'a ServicePort> {
    let Cached::Present(ports) = &backend.ports else {
        return None;
    };
    // A name has a letter, so none is a number.
    ports.iter().filter(|port| is_tcp(port)).find(|port| {
        port.name.as_ref() == Some(&reference.port) || port.port.to_string() == reference.port
    })
}

/// Returns the addresses of a slice that serve the port of a Service.
fn of_slice(
    slice: &EndpointSlice,
    port: &ServicePort,
    cluster: &str,
) -> impl Iterator<Item = RouteEndpoint> {
    let name = port.name.as_deref().unwrap_or_default();
    let mut ports = slice.ports.iter().flatten();
    let port = ports.find(|port| port.name.as_deref().unwrap_or_default() == name);
    // A slice may have a port that does not exist.
    let port = port.and_then(|port| NonZeroU16::new(u16::try_from(port.port?).ok()?));
    let endpoints = slice.endpoints.iter().flatten();
    let source = slice.metadata.name.as_deref().unwrap_or_default();
    endpoints
        .filter_map(|endpoint| Some((endpoint, is_ready(endpoint.conditions.as_ref())?)))
        .flat_map(|(endpoint, ready)| endpoint.addresses.iter().map(move |ip| (ip, ready)))
        .filter_map(move |(address, ready)| {
            Some(RouteEndpoint {
                // A slice may have host names, which this protocol has not.
                address: address.parse::<IpAddr>().ok()?.to_canonical().to_string(),
                port: port?.get(),
                ready,
                cluster: cluster.to_owned(),
                source: source.to_owned(),
            })
        })
}

/// Returns whether an endpoint gets new requests; `None` if it serves none at all.
fn is_ready(conditions: Option<&EndpointConditions>) -> Option<bool> {
    let Some(conditions) = conditions else {
        return Some(true);
    };
    let ends = conditions.terminating == Some(true) && conditions.serving == Some(true);
    // Unknown is to be taken for ready (Kubernetes API reference, EndpointConditions).
    match conditions.ready {
        None | Some(true) => Some(true),
        Some(false) => ends.then_some(false),
    }
}

/// Adds an endpoint. Of one that several clusters have, as behind a shared load balancer, the one that is ready counts.
fn add(all: &mut BTreeMap<(String, u16), RouteEndpoint>, endpoint: RouteEndpoint) {
    match all.entry((endpoint.address.clone(), endpoint.port)) {
        Entry::Vacant(place) => {
            place.insert(endpoint);
        }
        Entry::Occupied(mut place) => {
            if endpoint.ready && !place.get().ready {
                place.insert(endpoint);
            }
        }
    }
}
