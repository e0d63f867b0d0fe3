//! The `HTTPRoute`s of the Karmada API that Gateways of our class serve. Each is read as an ingress, under a key that no
//! `MultiClusterIngress` has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::MultiClusterIngress;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use karmada_runtime::store::Store;
use objects::{Key, Metadata};
use traffic::ingress::http_route::{
    GatewayReport, ParentFacts, Refusal, RouteReport, as_ingress, attachment, gateway_report,
    gateways, has_entry, ingress_spec, route_of, served_key,
};
use traffic::ingress::{
    Cached, ControllerName, Decision, Facts, Ownership, Serve, decide_owned, services,
};

use crate::cached::cached;

/// The routes, and the Gateways and classes that decide to whom they belong.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// `None` if none are read.
    names: Option<Names>,
    /// By the Gateways that they refer to.
    pub(crate) stored: Store<HttpRoute, Key>,
    pub(crate) gateways: Store<Gateway>,
    pub(crate) classes: Store<GatewayClass>,
    kinds: Kinds,
    /// The routes that are ours, or were, by the key under which they are served.
    read: BTreeMap<Key, ReadRoute>,
}

/// The names by which we recognize ours.
#[derive(Debug)]
struct Names {
    /// The name of our controller in classes of Gateways.
    controller: ControllerName,
    /// The name of our finalizer.
    finalizer: ControllerName,
}

/// Whether the API serves the kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kinds {
    /// That is not known.
    Unknown,
    #[default]
    Unserved,
    Served,
}

/// A route, as an ingress.
#[derive(Debug)]
pub(crate) struct ReadRoute {
    route: Arc<HttpRoute>,
    /// The ingress, with the newest routes that could be served; without any if there never were such.
    ingress: Arc<MultiClusterIngress>,
    /// Set if there were such.
    is_read: bool,
    owner: Ownership,
    /// The reason why the newest version is not served.
    refusal: Option<Refusal>,
    /// Set if the status has an entry of ours.
    has_entry: bool,
}

/// The status that a route must have.
pub(crate) struct RouteStatus {
    /// The route, as an ingress.
    pub(crate) ingress: Arc<MultiClusterIngress>,
    /// The reason why its newest version is not served.
    pub(crate) refusal: Option<Refusal>,
    /// The changes that its status needs.
    pub(crate) report: Option<RouteReport>,
}

/// A route that was read again.
pub(crate) struct Reread {
    pub(crate) key: Key,
    /// The ingress before.
    pub(crate) before: Option<Arc<MultiClusterIngress>>,
}

impl Routes {
    /// Creates the stores of routes that are read. `controller` is our name in classes of Gateways.
    pub(crate) fn new(controller: ControllerName, finalizer: ControllerName) -> Self {
        Self {
            names: Some(Names {
                controller,
                finalizer,
            }),
            stored: Store::by(referred_gateways),
            kinds: Kinds::Unknown,
            ..Self::default()
        }
    }

    /// Returns our name in classes of Gateways; `None` if none are read.
    pub(crate) fn controller(&self) -> Option<&ControllerName> {
        Some(&self.names.as_ref()?.controller)
    }

    /// Returns the route that is served under `key`.
    pub(crate) fn get(&self, key: &Key) -> Option<&ReadRoute> {
        self.read.get(key)
    }

    /// Returns the keys of all routes that are ours.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.read.keys()
    }

    /// Returns the ingresses of all routes that can be served.
    pub(crate) fn ingresses(&self) -> impl Iterator<Item = (&Key, &Arc<MultiClusterIngress>)> {
        let read = self.read.iter();
        read.filter_map(|(key, read)| Some((key, read.ingress()?)))
    }

    /// Returns the ingress that is served under `key`. Without all objects, one that is not there may exist.
    pub(crate) fn ingress(&self, key: &Key) -> Cached<&Arc<MultiClusterIngress>> {
        match self.read.get(key) {
            Some(read) => read.ingress().map_or(Cached::Unread, Cached::Present),
            None if self.is_listed() && !self.is_unread(key) => Cached::Absent,
            None => Cached::Unread,
        }
    }

    fn is_unread(&self, key: &Key) -> bool {
        route_of(key).is_some_and(|route| self.stored.unread().contains(&route))
    }

    /// Returns `true` if a route of `namespace` may be ours, and its Services are not known.
    pub(crate) fn may_name_services(&self, namespace: &str) -> bool {
        let mut unread = self.stored.unread().iter();
        let mut refused = self.read.iter();
        match self.kinds {
            Kinds::Unserved => false,
            Kinds::Unknown => true,
            Kinds::Served => {
                !self.is_listed()
                    || unread.any(|route| route.namespace == namespace)
                    || refused.any(|(key, read)| key.namespace == namespace && !read.is_read)
            }
        }
    }

    /// Takes in whether the API serves the kinds. Returns `true` if that is news.
    pub(crate) fn set_served(&mut self, is_served: bool) -> bool {
        let kinds = match self.kinds {
            Kinds::Served => return false,
            _ if is_served => Kinds::Served,
            _ => Kinds::Unserved,
        };
        std::mem::replace(&mut self.kinds, kinds) != kinds
    }

    /// Returns `true` if all objects of all three kinds are known.
    pub(crate) fn is_listed(&self) -> bool {
        self.kinds == Kinds::Served
            && self.stored.is_listed()
            && self.gateways.is_listed()
            && self.classes.is_listed()
    }

    /// Returns the Gateways that share routes with this one.
    pub(crate) fn sharing_routes(&self, gateway: &Key) -> BTreeSet<Key> {
        let routes = self.stored.keys_of(gateway);
        let shared = routes.flat_map(|route| self.stored.targets(route));
        shared.cloned().collect()
    }

    /// Returns the status that a Gateway must have; `None` unless it is ours, and all that counts is known.
    pub(crate) fn gateway_report(&self, key: &Key) -> Option<(Arc<Gateway>, GatewayReport)> {
        let gateway = self.gateways.get(key).filter(|_| self.is_listed())?;
        let routes = self.stored.keys_of(key);
        let read = routes.filter_map(|route| self.read.get(&served_key(route)));
        let accepted = read.filter(|read| read.is_accepted());
        let accepted = accepted.map(|read| &*read.route);
        let report = gateway_report(gateway, accepted, self, self.controller()?)?;
        Some((Arc::clone(gateway), report))
    }

    /// Reads a route again; `None` if it neither is ours nor was.
    pub(crate) fn read(&mut self, route: &Key) -> Option<Reread> {
        let key = served_key(route);
        let before = self.read.remove(&key);
        let found = self.stored.get(route).map(Arc::clone);
        let now = found.and_then(|route| self.as_ours(route, before.as_ref()));
        let is_ours = before.is_some() || now.is_some();
        if let Some(now) = now {
            self.read.insert(key.clone(), now);
        }
        is_ours.then(|| Reread {
            key,
            before: before.and_then(|before| before.ingress().map(Arc::clone)),
        })
    }

    /// Reads a route as an ingress. The version that was served `before` stays if the newest one is refused.
    fn as_ours(&self, route: Arc<HttpRoute>, before: Option<&ReadRoute>) -> Option<ReadRoute> {
        let Names {
            controller,
            finalizer: own,
        } = self.names.as_ref()?;
        let attachment = attachment(&route, self, controller);
        let has_entry = has_entry(&route, controller);
        let is_held = route.metadata.has_finalizer(own.as_str());
        if attachment.owner == Ownership::Foreign && !has_entry && !is_held {
            return None;
        }
        let before = before.filter(|before| before.route.metadata.uid == route.metadata.uid);
        let before = before.and_then(ReadRoute::ingress);
        let before = before.map(|ingress| ingress.spec.ingress.clone());
        let (spec, refusal) = match attachment.owner {
            // Who has no part in it does not judge it, nor who does not know its Gateways.
            Ownership::Foreign | Ownership::Unclear => (before, None),
            Ownership::Ours | Ownership::Unclaimed => {
                match ingress_spec(&route, &attachment.parents) {
                    Ok(spec) => (Some(spec), None),
                    Err(refusal) => (before, Some(refusal)),
                }
            }
        };
        let (is_read, spec) = (spec.is_some(), spec.unwrap_or_default());
        Some(ReadRoute {
            ingress: Arc::new(as_ingress(&route, spec, controller)),
            is_read,
            owner: attachment.owner,
            refusal,
            has_entry,
            route,
        })
    }
}

impl ReadRoute {
    /// Returns the ingress, if the route can be served in some version.
    pub(crate) fn ingress(&self) -> Option<&Arc<MultiClusterIngress>> {
        Some(&self.ingress).filter(|_| self.is_read)
    }

    /// Returns `true` if the newest version is served.
    fn is_accepted(&self) -> bool {
        self.owner == Ownership::Ours && self.refusal.is_none()
    }

    /// Decides on the route, which is served under `key`, and returns it unless it is left.
    pub(crate) fn decide(
        &self,
        key: &Key,
        facts: &impl Facts,
        controller: &ControllerName,
    ) -> (Option<Arc<MultiClusterIngress>>, Decision) {
        let is_over = self.owner == Ownership::Foreign || self.route.metadata.is_deleting();
        if !self.is_read && !is_over {
            return (None, Decision::Leave);
        }
        let mut decision = decide_owned(key, &self.ingress, self.owner, facts, controller);
        if let Decision::Release(release) = &mut decision {
            release.clears_status |= self.has_entry;
        }
        (Some(Arc::clone(&self.ingress)), decision)
    }

    /// Returns the status that a route must have, with the `serve` that was decided, if any.
    pub(crate) fn status(
        &self,
        routes: &Routes,
        facts: &impl Facts,
        serve: Option<&Serve>,
    ) -> RouteStatus {
        let report = self.report(routes).map(|report| {
            let named = services(&self.ingress.spec.ingress).into_iter();
            let namespace = self.route.metadata.namespace();
            let missing = named
                .filter(|service| matches!(facts.template(namespace, service), Cached::Absent));
            let missing: Vec<&str> = missing.collect();
            let report = report.with_verdict(self.refusal.as_ref(), &missing);
            match serve {
                Some(serve) => report.with_traffic(&serve.shown(&self.ingress)),
                None => report,
            }
        });
        let controller = routes.controller();
        let report = report.filter(|report| {
            controller.is_some_and(|controller| !report.is_shown(&self.route, controller))
        });
        RouteStatus {
            ingress: Arc::clone(&self.ingress),
            refusal: self.refusal.clone(),
            report,
        }
    }

    /// Returns the write that shows the addresses of the load balancer.
    pub(crate) fn addresses(
        &self,
        routes: &Routes,
        addresses: Option<&IngressLoadBalancerStatus>,
    ) -> Option<RouteReport> {
        Some(self.report(routes)?.with_addresses(addresses))
    }

    /// Returns a report that says nothing; `None` if nothing may be said.
    fn report(&self, routes: &Routes) -> Option<RouteReport> {
        let attachment = attachment(&self.route, routes, routes.controller()?);
        match attachment.owner {
            Ownership::Ours | Ownership::Unclaimed => {
                Some(RouteReport::new(&self.route, &attachment.parents))
            }
            Ownership::Foreign | Ownership::Unclear => None,
        }
    }
}

impl ParentFacts for Routes {
    fn gateway(&self, key: &Key) -> Cached<&Gateway> {
        known(&self.gateways, key)
    }

    fn gateway_class(&self, name: &str) -> Cached<&GatewayClass> {
        known(&self.classes, &Key::cluster_scoped(name))
    }
}

/// Returns the object `key`: without all objects, one that is not there may exist.
fn known<'a, K>(store: &'a Store<K>, key: &Key) -> Cached<&'a K> {
    match cached(store, key) {
        Cached::Absent if !store.is_listed() => Cached::Unread,
        found => found.map(AsRef::as_ref),
    }
}

fn referred_gateways(route: &HttpRoute) -> BTreeSet<Key> {
    gateways(route).collect()
}
