use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use karmada_api::gateway_api::{GROUP, HttpRoute, HttpRouteMatch, ParentReference};
use objects::{Key, Metadata};

use super::path::RoutePath;
use crate::ingress::kubernetes::ingress_of;

/// Who has which paths of one host at a Gateway.
///
/// Of two routes with the same one, nothing says which is served: it is not the older, it changes with unrelated routes, and
/// both are accepted (Traefik 3.6.12).
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The ingress of ours that had it first, and since when.
    ours: BTreeMap<RoutePath, BTreeSet<(Option<Timestamp>, Key)>>,
    /// The routes of others.
    others: BTreeMap<RoutePath, Key>,
}

impl Claims {
    /// Creates the claims of routes that have the host: of ours, and of others.
    pub fn new<'a>(
        gateway: &Key,
        ours: impl IntoIterator<Item = &'a HttpRoute>,
        others: impl IntoIterator<Item = &'a HttpRoute>,
    ) -> Self {
        let mut claims = Self::default();
        for route in ours {
            let created = &route.metadata.creation_timestamp;
            let created = created.as_ref().map(|created| created.0);
            if let Some(ingress) = ingress_of(&route.metadata) {
                for path in paths(route, gateway) {
                    let all = claims.ours.entry(path).or_default();
                    all.insert((created, ingress.clone()));
                }
            }
        }
        for route in others {
            for path in paths(route, gateway) {
                claims.others.entry(path).or_insert_with(|| Key::of(route));
            }
        }
        claims
    }

    /// Returns the other ingress of ours that had the path before `ingress`. Both may have it for a moment, written at
    /// once: then both must come to the same answer.
    pub(super) fn holder(&self, ingress: &Key, path: &RoutePath) -> Option<&Key> {
        let (_, first) = self.ours.get(path)?.first()?;
        Some(first).filter(|first| *first != ingress)
    }

    /// Returns the route of somebody else that has the path.
    pub(super) fn other(&self, path: &RoutePath) -> Option<&Key> {
        self.others.get(path)
    }
}

/// Returns the hosts of a route; an empty one if it is for all.
pub fn hosts(route: &HttpRoute) -> BTreeSet<String> {
    let hosts = &route.spec.hostnames;
    if hosts.is_empty() {
        return [String::new()].into();
    }
    hosts.iter().cloned().collect()
}

/// Returns the paths of a route at `gateway` for which nothing but the path decides.
fn paths(route: &HttpRoute, gateway: &Key) -> BTreeSet<RoutePath> {
    let namespace = route.metadata.namespace();
    let mut parents = route.spec.parent_refs.iter();
    let is_attached = parents.any(|parent| refers_to(parent, namespace, gateway));
    if !is_attached || route.metadata.is_deleting() {
        return BTreeSet::new();
    }
    let any = HttpRouteMatch::default();
    let rules = route.spec.rules.iter();
    rules
        .flat_map(|rule| match rule.matches.as_slice() {
            [] => std::slice::from_ref(&any),
            matches => matches,
        })
        .filter(|one| one.headers.is_empty() && one.query_params.is_empty() && one.method.is_none())
        .filter_map(|one| RoutePath::of_route(one.path.as_ref()))
        .collect()
}

/// Returns `true` if a route of `namespace` refers to `gateway`, or to a part of it.
pub(super) fn refers_to(parent: &ParentReference, namespace: &str, gateway: &Key) -> bool {
    parent.group.as_deref().unwrap_or(GROUP) == GROUP
        && parent.kind.as_deref().unwrap_or("Gateway") == "Gateway"
        && parent.namespace.as_deref().unwrap_or(namespace) == gateway.namespace
        && parent.name == gateway.name
}
