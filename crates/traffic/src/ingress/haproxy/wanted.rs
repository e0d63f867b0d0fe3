use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort};

use super::names::{BackendName, Target, port_number};
use crate::ingress::locations::backends;
use crate::ingress::problem::is_port;
use crate::ingress::{Backend, Cached, ClusterEndpoints, Desired, Unusable};

/// The servers that serve one ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The targets in each backend.
    pub(super) backends: BTreeMap<BackendName, BTreeMap<Target, Role>>,
    /// The addresses to which HAProxy can send no request, by Service.
    pub unusable: BTreeMap<String, BTreeSet<Unusable>>,
}

/// The role of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It gets requests.
    Serves,
    /// It gets no new ones: it ends, and keeps those it has.
    Ends,
}

impl Wanted {
    /// Returns the servers for every port of a Service that the routes name. A Service whose ports are unknown has none
    /// here.
    pub fn new(desired: &Desired) -> Self {
        let mut wanted = Self::default();
        for named in backends(&desired.routes).filter_map(|backend| backend.service.as_ref()) {
            let Some(backend) = desired.backend(&named.name) else {
                continue;
            };
            let Cached::Present(ports) = &backend.ports else {
                continue;
            };
            let named_port = named.port.clone().unwrap_or_default();
            let port = ports.iter().find(|port| is_port(&named_port, port));
            if let Some(port) = port
                && let Some(name) = BackendName::new(&desired.key, &backend.service, port.port)
                && !wanted.backends.contains_key(&name)
            {
                let targets = wanted.targets(backend, port);
                wanted.backends.insert(name, targets);
            }
        }
        wanted
    }

    /// Returns the names of the backends, which the configuration of HAProxy must have.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.backends.keys().map(BackendName::to_string)
    }

    /// Returns each address once, of the first cluster in which it is ready.
    fn targets(&mut self, backend: &Backend, port: &ServicePort) -> BTreeMap<Target, Role> {
        let admitted = backend.clusters.iter().filter(|c| c.admission.is_served());
        let mut found: BTreeMap<SocketAddr, (Role, Target)> = BTreeMap::new();
        for cluster in admitted {
            for (role, target) in self.of_cluster(&backend.service, cluster, port) {
                let best = found
                    .entry(target.address)
                    .or_insert_with(|| (role, target.clone()));
                if role < best.0 {
                    *best = (role, target);
                }
            }
        }
        let serves = found.values().any(|(role, _)| *role == Role::Serves);
        let targets = found.into_values().map(|(role, target)| {
            // The last that serve until they end do so, as in the proxies of Kubernetes (KEP-1669).
            (target, if serves { role } else { Role::Serves })
        });
        targets.collect()
    }

    fn of_cluster(
        &mut self,
        service: &str,
        cluster: &ClusterEndpoints,
        port: &ServicePort,
    ) -> Vec<(Role, Target)> {
        let mut targets = Vec::new();
        for slice in cluster.routable() {
            let mut ports = slice.ports.iter().flatten();
            let Some(number) = ports
                .find(|found| is_same(found, port))
                .and_then(|p| p.port)
            else {
                continue;
            };
            for endpoint in slice.endpoints.iter().flatten() {
                let Some(role) = role(endpoint) else {
                    continue;
                };
                for address in &endpoint.addresses {
                    match target(&cluster.cluster, address, number) {
                        Ok(target) => targets.push((role, target)),
                        Err(reason) => {
                            let unusable = self.unusable.entry(service.to_owned()).or_default();
                            unusable.insert(Unusable {
                                cluster: cluster.cluster.clone(),
                                address: address.clone(),
                                reason: reason.to_owned(),
                            });
                        }
                    }
                }
            }
        }
        targets
    }
}

/// Returns `true` if a slice's port is this one of the Service. HTTP and TLS go over TCP.
fn is_same(found: &EndpointPort, port: &ServicePort) -> bool {
    let [found_name, name] = [&found.name, &port.name].map(|name| name.as_deref().unwrap_or(""));
    let is_tcp = found.protocol.as_deref().is_none_or(|p| p == "TCP");
    is_tcp && found_name == name
}

/// Returns the role of an endpoint. Unknown is to be taken for ready (Kubernetes API reference, `EndpointConditions`).
fn role(endpoint: &Endpoint) -> Option<Role> {
    let Some(conditions) = &endpoint.conditions else {
        return Some(Role::Serves);
    };
    if conditions.terminating == Some(true) {
        let serves = conditions.serving.or(conditions.ready) == Some(true);
        return serves.then_some(Role::Ends);
    }
    (conditions.ready != Some(false)).then_some(Role::Serves)
}

/// Returns the target at an address. HAProxy takes a host name, finds it healthy, and answers 503.
fn target(cluster: &str, address: &str, port: i32) -> Result<Target, &'static str> {
    let ip: IpAddr = address.parse().map_err(|_| "is no IP address")?;
    let ip = ip.to_canonical();
    if ip.is_unspecified() {
        return Err("is the unspecified address, which is HAProxy's own machine");
    }
    let port = port_number(port).ok_or("has a port that does not exist")?;
    Target::new(cluster, ip, port).ok_or("belongs to a cluster with a name that does not exist")
}
