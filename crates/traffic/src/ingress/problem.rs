use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceBackendPort;

use super::addresses::Unusable;
use super::admission::Admission;
use super::choice::{BackendAddresses, InvalidAnnotation, WhenAllBlocked};
use super::desired::{Backend, ClusterEndpoints, Desired};
use super::locations::backends;
use super::node_ports::NodeObstacle;
use crate::cached::Cached;

/// A reason why a route cannot work, for the user to fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// The Service has no template.
    NoTemplate {
        /// The Service.
        service: String,
    },
    /// The template has no such port.
    NoPort {
        /// The Service.
        service: String,
        /// The port's name or number.
        port: String,
    },
    /// An annotation for a choice cannot be parsed.
    InvalidAnnotation(InvalidAnnotation),
    /// An address that members report can get no request.
    Unusable {
        /// The Service.
        service: String,
        /// The address.
        address: Unusable,
    },
    /// Nodes of members get no request for the Service, which has node ports.
    Nodes {
        /// The Service.
        service: String,
        /// The reason.
        obstacle: NodeObstacle,
        /// The members.
        clusters: Vec<String>,
    },
    /// One address serves a port of the Service at several ports.
    SharedAddress {
        /// The Service.
        service: String,
        /// The address.
        address: String,
        /// Its ports.
        ports: BTreeSet<i32>,
    },
    /// Annotations are withheld from the load balancer.
    Withheld {
        /// Their keys.
        annotations: Vec<String>,
    },
    /// Every cluster of the Service is blocked or has no ready endpoints, and some are readmitted.
    Readmitted {
        /// The Service.
        service: String,
        /// The readmitted clusters.
        clusters: Vec<String>,
    },
    /// Every cluster of the Service is blocked or has no ready endpoints, and none is readmitted.
    AllBlocked {
        /// The Service.
        service: String,
        /// The blocked clusters.
        clusters: Vec<String>,
        /// The behaviour that is in effect.
        effective: WhenAllBlocked,
    },
    /// The Service has locations, but no addresses are known there.
    NoEndpoints {
        /// The Service.
        service: String,
        /// The locations.
        clusters: Vec<String>,
        /// The kind of addresses.
        addresses: BackendAddresses,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTemplate { service } => {
                write!(f, "Service {service} does not exist in this namespace")
            }
            Self::NoPort { service, port } => write!(f, "Service {service} has no port {port}"),
            Self::InvalidAnnotation(InvalidAnnotation {
                annotation,
                value,
                allowed,
                effective,
            }) => write!(
                f,
                "annotation {annotation} is {value:?} and {allowed}; {effective} is in effect"
            ),
            Self::Unusable { service, address } => {
                write!(
                    f,
                    "Service {service} gets no request at an address: {address}"
                )
            }
            Self::Nodes {
                service,
                obstacle,
                clusters,
            } => {
                let clusters = clusters.join(", ");
                write!(
                    f,
                    "Service {service} gets no request at nodes of {clusters}: {obstacle}"
                )
            }
            Self::SharedAddress {
                service,
                address,
                ports,
            } => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                let ports = ports.join(" and ");
                write!(
                    f,
                    "Service {service} has one address with several ports, of which a gateway may serve the first only: {address} with {ports}; give each member addresses of its own"
                )
            }
            Self::Withheld { annotations } => write!(
                f,
                "withheld from the gateway, where they would be code in its proxy: {}",
                annotations.join(", ")
            ),
            Self::Readmitted { service, clusters } => write!(
                f,
                "every cluster of Service {service} is blocked or has no ready endpoints, so those that a condition blocked are readmitted: {}",
                clusters.join(", ")
            ),
            Self::AllBlocked {
                service,
                clusters,
                effective,
            } => {
                let clusters = clusters.join(", ");
                match effective {
                    WhenAllBlocked::FailClosed => write!(
                        f,
                        "every cluster of Service {service} is blocked or has no ready endpoints, and none is readmitted, because fail-closed is in effect: {clusters}"
                    ),
                    WhenAllBlocked::FailOpen => write!(
                        f,
                        "every cluster of Service {service} is blocked or has no ready endpoints, and none may be readmitted, because a Remedy without matches blocks it or it cannot be read: {clusters}"
                    ),
                }
            }
            Self::NoEndpoints {
                service,
                clusters,
                addresses,
            } => {
                write!(f, "Service {service} runs in {}, but ", clusters.join(", "))?;
                f.write_str(match addresses {
                    BackendAddresses::Endpoints => {
                        "Karmada has collected no endpoints of it there; it collects those of a Service with a ServiceExport that is propagated to these clusters"
                    }
                    BackendAddresses::LoadBalancers => {
                        "no load balancer or ready node of it there has an address; give it the type LoadBalancer or NodePort"
                    }
                    BackendAddresses::Ingresses => {
                        "no ingress controller there has an address; propagate an Ingress with the namespace and the name of this MultiClusterIngress"
                    }
                })
            }
        }
    }
}

impl Desired {
    /// Returns the problems of the ingress.
    pub fn problems(&self) -> BTreeSet<Problem> {
        let mut problems = self.route_problems();
        problems.extend(
            self.invalid_annotations
                .iter()
                .cloned()
                .map(Problem::InvalidAnnotation),
        );
        if !self.withheld.is_empty() {
            problems.insert(Problem::Withheld {
                annotations: self.withheld.clone(),
            });
        }
        for backend in &self.backends {
            problems.extend(self.blocked_everywhere(backend));
            problems.extend(without_endpoints(backend, self.addresses));
            problems.extend(shared_addresses(backend));
            problems.extend(without_nodes(backend));
            problems.extend(backend.unusable.iter().map(|address| Problem::Unusable {
                service: backend.service.clone(),
                address: address.clone(),
            }));
        }
        problems
    }

    fn blocked_everywhere(&self, backend: &Backend) -> Option<Problem> {
        let service = backend.service.clone();
        let readmitted = backend.clusters_with(Admission::Readmitted);
        if !readmitted.is_empty() {
            return Some(Problem::Readmitted {
                service,
                clusters: readmitted,
            });
        }
        let barred = backend.barred(!self.unread_slices.is_empty());
        (!barred.is_empty()).then(|| Problem::AllBlocked {
            service,
            clusters: barred.into_iter().collect(),
            effective: self.when_all_blocked,
        })
    }

    fn route_problems(&self) -> BTreeSet<Problem> {
        backends(&self.routes)
            .filter_map(|backend| backend.service.as_ref())
            .filter_map(|named| {
                let service = named.name.clone();
                match &self.backend(&service)?.ports {
                    Cached::Unread => None,
                    Cached::Absent => Some(Problem::NoTemplate { service }),
                    Cached::Present(ports) => {
                        let port = named.port.clone().unwrap_or_default();
                        let found = ports.iter().any(|p| is_port(&port, p));
                        (!found).then(|| Problem::NoPort {
                            service,
                            port: described(&port),
                        })
                    }
                }
            })
            .collect()
    }
}

/// Returns the problem of a Service that has a template and locations, but no endpoints in any of them.
fn without_endpoints(backend: &Backend, addresses: BackendAddresses) -> Option<Problem> {
    let is_known = matches!(backend.ports, Cached::Present(_));
    let located = backend.clusters.iter().filter(|cluster| cluster.is_located);
    let clusters: Vec<String> = located.clone().map(|c| c.cluster.clone()).collect();
    let mut routable = located.flat_map(ClusterEndpoints::routable);
    let is_told = !backend.node_obstacles.is_empty();
    let lacks = is_known && !is_told && !clusters.is_empty() && routable.next().is_none();
    lacks.then(|| Problem::NoEndpoints {
        service: backend.service.clone(),
        clusters,
        addresses,
    })
}

/// Returns the problems of the nodes that get no request.
fn without_nodes(backend: &Backend) -> impl Iterator<Item = Problem> {
    let obstacles = backend.node_obstacles.iter();
    obstacles.map(|(obstacle, clusters)| Problem::Nodes {
        service: backend.service.clone(),
        obstacle: *obstacle,
        clusters: clusters.iter().cloned().collect(),
    })
}

/// Returns the problems of the addresses at which one port of a Service is served at several ports.
fn shared_addresses(backend: &Backend) -> Vec<Problem> {
    let served = backend.clusters.iter().filter(|c| c.admission.is_served());
    let slices: Vec<&EndpointSlice> = served.flat_map(ClusterEndpoints::routable).collect();
    // Most Services have the same ports everywhere.
    if slices.windows(2).all(|pair| pair[0].ports == pair[1].ports) {
        return Vec::new();
    }
    let mut found: BTreeMap<(&str, &str), BTreeSet<i32>> = BTreeMap::new();
    for slice in slices {
        let endpoints = slice.endpoints.iter().flatten();
        for address in endpoints.flat_map(|endpoint| &endpoint.addresses) {
            for port in slice.ports.iter().flatten() {
                let name = port.name.as_deref().unwrap_or_default();
                let numbers = found.entry((address.as_str(), name)).or_default();
                numbers.extend(port.port);
            }
        }
    }
    let shared = found.into_iter().filter(|(_, ports)| ports.len() > 1);
    let problems = shared.map(|((address, _), ports)| Problem::SharedAddress {
        service: backend.service.clone(),
        address: address.to_owned(),
        ports,
    });
    problems.collect()
}

/// Returns `true` if a backend names this port of its Service. One for UDP may have the number of one for TCP, as HTTP/3 has.
pub(super) fn is_port(named: &ServiceBackendPort, port: &ServicePort) -> bool {
    let named_name = named.name.as_deref().filter(|name| !name.is_empty());
    let is_named = match named_name {
        Some(name) => port.name.as_deref() == Some(name),
        None => named.number == Some(port.port),
    };
    is_named && is_tcp(port)
}

/// Returns `true` for a port over which HTTP can go.
pub(super) fn is_tcp(port: &ServicePort) -> bool {
    port.protocol.as_deref().is_none_or(|it| it == "TCP")
}

/// Returns the name or the number by which a backend names a port.
pub(super) fn described(port: &ServiceBackendPort) -> String {
    match (&port.name, port.number) {
        (Some(name), _) if !name.is_empty() => name.clone(),
        (_, number) => number.unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::MultiClusterIngressStatus;
    use objects::Key;

    use super::super::fixtures::{Fixture, by_number, ingress_to_port, template};
    use super::*;

    fn by_name(name: &str) -> ServiceBackendPort {
        ServiceBackendPort {
            name: Some(name.to_owned()),
            number: None,
        }
    }

    /// A route to a missing service or port is a problem.
    #[test]
    fn missing_service_is_problem() {
        let fixture = Fixture {
            unread_templates: ["unread".to_owned()].into(),
            ..Fixture::default()
        };
        let fixture = fixture.with_template(template("s", &[("web", 80), ("", 81)]));
        let problem = |service: &str, port: ServiceBackendPort| {
            let spec = ingress_to_port("i", service, port).spec.ingress;
            let desired = Desired::new(
                Key::new("ns", "i"),
                &spec,
                &MultiClusterIngressStatus::default(),
                BackendAddresses::Endpoints,
                &fixture,
            );
            let problems: Vec<String> = desired.problems().iter().map(Problem::to_string).collect();
            problems.join("; ")
        };
        assert_eq!(problem("s", by_number(80)), "");
        assert_eq!(problem("s", by_name("web")), "");
        assert_eq!(problem("unread", by_number(1)), "");
        assert_eq!(problem("s", by_number(82)), "Service s has no port 82");
        assert_eq!(problem("s", by_name("dns")), "Service s has no port dns");
        assert_eq!(
            problem("t", by_number(80)),
            "Service t does not exist in this namespace"
        );
    }
}
