use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::{HTTPIngressPath, IngressBackend};
use karmada_api::gateway_api::{
    BackendReference, GROUP, HttpRoute, HttpRouteMatch, HttpRouteRule, HttpRouteSpec,
    ParentReference,
};
use objects::Key;

use super::claims::Claims;
use super::path::{RoutePath, is_host};
use super::problem::RouteProblem;
use crate::ingress::kubernetes::{
    ManagedBy, Objects, add_recorded, all_rules, backend_objects, empty_slices, hash, object_name,
    service_name,
};
use crate::ingress::problem::is_port;
use crate::ingress::{Cached, ControllerName, Desired};

/// The most rules of a route (`HTTPRouteSpec.rules`, Gateway API 1.5).
const MOST_RULES: usize = 16;
/// The most matches of a rule.
const MOST_MATCHES: usize = 64;
/// The most matches of all rules of a route.
const MOST_MATCHES_IN_ALL: usize = 128;
/// The most routes to which the paths of one host are dealt.
const MOST_ROUTES: u64 = 1 << 16;

/// The factory of the objects of a gateway cluster with a Gateway.
#[derive(Clone, Debug)]
pub struct HttpRoutes {
    managed_by: ManagedBy,
    gateway: Key,
}

/// The objects of an ingress, and the parts of it that they leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    /// The objects.
    pub objects: Objects<HttpRoute>,
    /// The reasons why something is left out, or may not be served.
    pub problems: BTreeSet<RouteProblem>,
}

/// The Service to which requests go, and its port; `None` if it has no such port.
type Target = (String, Option<i32>);

/// The paths of each host.
type Paths = BTreeMap<String, BTreeMap<RoutePath, Target>>;

impl HttpRoutes {
    /// Creates a factory for `controller` of routes that are attached to `gateway`.
    pub fn new(controller: &ControllerName, gateway: Key) -> Self {
        Self {
            managed_by: ManagedBy::new(controller),
            gateway,
        }
    }

    /// Returns the label of the objects.
    pub fn managed_by(&self) -> &ManagedBy {
        &self.managed_by
    }

    /// Returns the Gateway.
    pub fn gateway(&self) -> &Key {
        &self.gateway
    }

    /// Returns the objects that serve `desired`. `claims` tells who has which paths of a host.
    pub fn objects(&self, desired: &Desired, claims: impl Fn(&str) -> Claims) -> Routed {
        let mut problems = BTreeSet::new();
        let paths = paths(desired, &mut problems).map(|mut paths| {
            for (host, paths) in &mut paths {
                leave_others(&desired.key, host, paths, &claims(host), &mut problems);
            }
            paths
        });
        let routes = paths.map(|paths| {
            let hosts = paths.iter();
            hosts
                .flat_map(|(host, paths)| self.routes(desired, host, paths))
                .collect()
        });
        let mut objects = Objects {
            routes,
            ..backend_objects(&self.managed_by, desired)
        };
        objects
            .services
            .iter_mut()
            .for_each(take_out_unknown_protocols);
        let empty = empty_slices(&self.managed_by, desired);
        objects.slices.extend(empty);
        Routed { objects, problems }
    }

    /// Returns the routes of one host. Its paths are dealt to one route, or to two, four and so on by their hashes: one that is
    /// added later moves no other.
    fn routes(
        &self,
        desired: &Desired,
        host: &str,
        paths: &BTreeMap<RoutePath, Target>,
    ) -> Vec<HttpRoute> {
        let mut count = 1;
        loop {
            let mut dealt: BTreeMap<u64, BTreeMap<&Target, Vec<&RoutePath>>> = BTreeMap::new();
            for (path, target) in paths {
                let route = hash([path.to_string().as_str()]) % count;
                let targets = dealt.entry(route).or_default();
                targets.entry(target).or_default().push(path);
            }
            if count >= MOST_ROUTES || dealt.values().all(fits) {
                let routes = dealt.into_iter();
                return routes
                    .map(|(number, targets)| self.route(desired, host, number, &targets))
                    .collect();
            }
            count *= 2;
        }
    }

    fn route(
        &self,
        desired: &Desired,
        host: &str,
        number: u64,
        targets: &BTreeMap<&Target, Vec<&RoutePath>>,
    ) -> HttpRoute {
        let key = &desired.key;
        let name = object_name(&key.name, host, &["route", &number.to_string()]);
        let mut metadata = self.managed_by.metadata(key, name);
        add_recorded(&mut metadata, desired.annotations.clone());
        let rules = targets.iter().flat_map(|(target, paths)| {
            let rules = paths.chunks(MOST_MATCHES);
            rules.map(move |paths| rule(key, target, paths))
        });
        HttpRoute {
            api_version: HttpRoute::API_VERSION.to_owned(),
            kind: HttpRoute::KIND.to_owned(),
            metadata,
            spec: HttpRouteSpec {
                parent_refs: vec![ParentReference {
                    group: Some(GROUP.to_owned()),
                    kind: Some("Gateway".to_owned()),
                    namespace: Some(self.gateway.namespace.clone()),
                    name: self.gateway.name.clone(),
                    ..ParentReference::default()
                }],
                hostnames: Some(host.to_owned())
                    .filter(|host| !host.is_empty())
                    .into_iter()
                    .collect(),
                rules: rules.collect(),
            },
            status: None,
        }
    }
}

/// Returns the paths of each host, and adds the paths that cannot be had. `None` if a port is not known now.
fn paths(desired: &Desired, problems: &mut BTreeSet<RouteProblem>) -> Option<Paths> {
    let mut all = Paths::new();
    for rule in all_rules(&desired.routes) {
        let host = rule.host.unwrap_or_default();
        if !is_host(&host) {
            problems.insert(RouteProblem::Host { host });
            continue;
        }
        for path in rule.http.into_iter().flat_map(|http| http.paths) {
            match route_path(&path) {
                Ok(wanted) => {
                    let target = target(desired, &path.backend)?;
                    // The first of two, as in an Ingress.
                    let paths = all.entry(host.clone()).or_default();
                    paths.entry(wanted).or_insert(target);
                }
                Err(reason) => {
                    problems.insert(RouteProblem::Path {
                        host: host.clone(),
                        path: path.path.unwrap_or_default(),
                        reason,
                    });
                }
            }
        }
    }
    Some(all)
}

fn route_path(path: &HTTPIngressPath) -> Result<RoutePath, &'static str> {
    if path.backend.service.is_none() {
        return Err("leads to something else than a Service");
    }
    RoutePath::of_ingress(path)
}

/// Takes out the paths that another ingress of ours has, and adds the problems with them and with those that somebody else has,
/// too.
fn leave_others(
    ingress: &Key,
    host: &str,
    paths: &mut BTreeMap<RoutePath, Target>,
    claims: &Claims,
    problems: &mut BTreeSet<RouteProblem>,
) {
    paths.retain(|path, _| {
        let (host, shown) = (host.to_owned(), path.to_string());
        if let Some(by) = claims.holder(ingress, path) {
            problems.insert(RouteProblem::Taken {
                by: by.clone(),
                host,
                path: shown,
            });
            return false;
        }
        if let Some(route) = claims.other(path) {
            problems.insert(RouteProblem::Conflict {
                route: route.clone(),
                host,
                path: shown,
            });
        }
        true
    });
}

/// Returns the Service of a backend with the number of its port. `None` if the port has a name, and the template of the Service
/// cannot be read.
fn target(desired: &Desired, backend: &IngressBackend) -> Option<Target> {
    let service = backend.service.as_ref()?;
    let named = service.port.clone().unwrap_or_default();
    let ports = desired.backend(&service.name).map(|backend| &backend.ports);
    let port = match ports {
        Some(Cached::Present(ports)) => {
            let found = ports.iter().find(|port| is_port(&named, port));
            found.map(|port| port.port)
        }
        Some(Cached::Unread) => Some(named.number.filter(|&number| number != 0)?),
        Some(Cached::Absent) | None => None,
    };
    Some((service.name.clone(), port))
}

/// Returns `true` for a path that one route can have.
fn fits(targets: &BTreeMap<&Target, Vec<&RoutePath>>) -> bool {
    let rules: usize = targets
        .values()
        .map(|paths| paths.len().div_ceil(MOST_MATCHES))
        .sum();
    let matches: usize = targets.values().map(Vec::len).sum();
    rules <= MOST_RULES && matches <= MOST_MATCHES_IN_ALL
}

/// Returns the rule that leads to a Service. Without a port there is none, and requests get an error there.
fn rule(ingress: &Key, (service, port): &Target, paths: &[&RoutePath]) -> HttpRouteRule {
    let backend = port.map(|port| BackendReference {
        group: Some(String::new()),
        kind: Some("Service".to_owned()),
        name: service_name(ingress, service),
        port: Some(port),
        weight: Some(1),
        ..BackendReference::default()
    });
    let matches = paths.iter().map(|path| HttpRouteMatch {
        path: Some(path.to_match()),
        ..HttpRouteMatch::default()
    });
    HttpRouteRule {
        matches: matches.collect(),
        backend_refs: backend.into_iter().collect(),
        ..HttpRouteRule::default()
    }
}

/// Takes out protocols that Gateways need not know: one such port, and they refuse the whole backend.
fn take_out_unknown_protocols(service: &mut Service) {
    const KNOWN: [&str; 5] = [
        "http",
        "https",
        "kubernetes.io/h2c",
        "kubernetes.io/ws",
        "kubernetes.io/wss",
    ];
    let spec = service.spec.iter_mut();
    for port in spec.flat_map(|spec| spec.ports.iter_mut().flatten()) {
        let protocol = port.app_protocol.take();
        port.app_protocol = protocol.filter(|protocol| {
            let protocol = protocol.to_ascii_lowercase();
            KNOWN.contains(&protocol.as_str())
        });
    }
}
