//! The `HTTPRoute`s of the Karmada API that Gateways of our class serve. Each is read as an ingress, under a key that no
//! `MultiClusterIngress` has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::MultiClusterIngress;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::reverse_index::ReverseIndex;
use objects::{Key, Metadata};
use traffic::ingress::http_route::{
    ParentFacts, Refusal, RouteReport, as_ingress, attachment, gateways, has_entry, ingress_spec,
    route_of, served_key,
};
use traffic::ingress::{
    Cached, ControllerName, Decision, Facts, FieldPlan, Ownership, Serve, decide_owned, services,
};

use crate::cached::cached;

/// The routes, and the Gateways and classes that decide whose they are.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The name of our controller in classes of Gateways.
    controller: ControllerName,
    /// The name of our finalizer.
    finalizer: ControllerName,
    cache: Cache<HttpRoute>,
    gateways: Cache<Gateway>,
    classes: Cache<GatewayClass>,
    kinds: Kinds,
    /// The routes that are ours, or were, by the key under which they are served.
    read: BTreeMap<Key, ReadRoute>,
    /// From a route to the Gateways it refers to.
    by_gateway: ReverseIndex<Key, Key>,
    /// The classes that have changed since they were last taken.
    pub(crate) changed_classes: BTreeSet<Key>,
}

/// What is known of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    /// Whether the API serves them is not known.
    Unknown,
    Unserved,
    /// Set for each kind of which all objects are known: routes, Gateways and classes.
    Served([bool; 3]),
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

/// What the status of a route must say.
pub(crate) struct RouteStatus {
    /// The route, as an ingress.
    pub(crate) ingress: Arc<MultiClusterIngress>,
    /// The reason why its newest version is not served.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) plan: FieldPlan<RouteReport>,
}

/// A route that was read again.
pub(crate) struct Reread {
    pub(crate) key: Key,
    /// The ingress before.
    pub(crate) before: Option<Arc<MultiClusterIngress>>,
}

impl Routes {
    /// Creates empty caches. `controller` is our name in classes of Gateways.
    pub(crate) fn new(controller: ControllerName, finalizer: ControllerName) -> Self {
        Self {
            controller,
            finalizer,
            cache: Cache::default(),
            gateways: Cache::default(),
            classes: Cache::default(),
            kinds: Kinds::Unknown,
            read: BTreeMap::new(),
            by_gateway: ReverseIndex::default(),
            changed_classes: BTreeSet::new(),
        }
    }

    /// Returns our name in classes of Gateways.
    pub(crate) fn controller(&self) -> &ControllerName {
        &self.controller
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
        route_of(key).is_some_and(|route| self.cache.unread().contains(&route))
    }

    /// Returns `true` if a route of `namespace` may be ours, and its Services are not known.
    pub(crate) fn may_name_services(&self, namespace: &str) -> bool {
        let mut unread = self.cache.unread().iter();
        let mut refused = self.read.iter();
        match self.kinds {
            Kinds::Unserved => false,
            Kinds::Unknown => true,
            Kinds::Served(_) => {
                !self.is_listed()
                    || unread.any(|route| route.namespace == namespace)
                    || refused.any(|(key, read)| key.namespace == namespace && !read.is_read)
            }
        }
    }

    /// Returns the class `key` of Gateways.
    pub(crate) fn class(&self, key: &Key) -> Option<&Arc<GatewayClass>> {
        self.classes.get(key)
    }

    /// Returns the keys of all classes of Gateways.
    pub(crate) fn classes(&self) -> impl Iterator<Item = Key> {
        self.classes.iter().map(|(key, _)| key.clone())
    }

    /// Returns the objects that cannot be read, for each kind.
    pub(crate) fn undecoded(&self) -> [(&'static str, Undecoded); 3] {
        [
            ("HTTPRoute", self.cache.undecoded()),
            ("Gateway", self.gateways.undecoded()),
            ("GatewayClass", self.classes.undecoded()),
        ]
    }

    /// Takes in whether the API serves the kinds. Returns `true` if that is news.
    pub(crate) fn set_served(&mut self, is_served: bool) -> bool {
        let kinds = match self.kinds {
            Kinds::Served(_) => return false,
            _ if is_served => Kinds::Served([false; 3]),
            _ => Kinds::Unserved,
        };
        std::mem::replace(&mut self.kinds, kinds) != kinds
    }

    /// Returns `true` if all objects of all three kinds are known.
    pub(crate) fn is_listed(&self) -> bool {
        self.kinds == Kinds::Served([true; 3])
    }

    /// Returns `found`, of the `nth` kind: without all objects, one that is not there may exist.
    fn known<T>(&self, nth: usize, found: Cached<T>) -> Cached<T> {
        let knows = matches!(self.kinds, Kinds::Served(listed) if listed.get(nth) == Some(&true));
        match found {
            Cached::Absent if !knows => Cached::Unread,
            found => found,
        }
    }

    /// Notes the end of the list of the `nth` kind.
    fn note_list<K>(&mut self, nth: usize, event: &Event<Decoded<K>>) -> bool {
        let Kinds::Served(listed) = &mut self.kinds else {
            return false;
        };
        let Some(listed) = listed.get_mut(nth) else {
            return false;
        };
        matches!(event, Event::InitDone) && !std::mem::replace(listed, true)
    }

    /// Applies an event of a route.
    pub(crate) fn observe_route(&mut self, event: Event<Decoded<HttpRoute>>) -> Vec<Reread> {
        let unread = self.cache.unread().clone();
        self.note_list(0, &event);
        let changed = self.cache.observe(event);
        let mut reread: Vec<Reread> = Vec::new();
        for Transition { key, new, .. } in changed {
            let gateways = new.as_deref().map(|route| gateways(route).collect());
            self.by_gateway.replace(&key, gateways.unwrap_or_default());
            reread.extend(self.read(&key));
        }
        // No transition shows one of them that is gone, but it may be in the load balancer.
        let gone = unread.difference(self.cache.unread());
        reread.extend(gone.map(|route| Reread {
            key: served_key(route),
            before: None,
        }));
        reread
    }

    /// Applies an event of a Gateway.
    pub(crate) fn observe_gateway(&mut self, event: Event<Decoded<Gateway>>) -> Vec<Reread> {
        let all = self.note_list(1, &event);
        let mut concerned = BTreeSet::new();
        for Transition { key, old, new } in self.gateways.observe(event) {
            // Its status is its controllers'.
            let [before, now] = [&old, &new].map(|gateway| gateway.as_ref().map(|g| &g.spec));
            if before != now {
                concerned.extend(self.by_gateway.sources(&key).cloned());
            }
        }
        self.read_again(all, concerned)
    }

    /// Applies an event of a class. Which Gateways have it is no matter: classes change when a fleet is set up.
    pub(crate) fn observe_class(&mut self, event: Event<Decoded<GatewayClass>>) -> Vec<Reread> {
        let mut all = self.note_list(2, &event);
        for Transition { key, old, new } in self.classes.observe(event) {
            let [before, now] = [&old, &new].map(|class| class.as_ref().map(|c| &c.spec));
            all |= before != now;
            self.changed_classes.insert(key);
        }
        self.read_again(all, BTreeSet::new())
    }

    fn read_again(&mut self, all: bool, concerned: BTreeSet<Key>) -> Vec<Reread> {
        let keys: Vec<Key> = if all {
            self.cache.iter().map(|(key, _)| key.clone()).collect()
        } else {
            concerned.into_iter().collect()
        };
        keys.iter().filter_map(|key| self.read(key)).collect()
    }

    /// Reads a route again; `None` if it neither is ours nor was.
    fn read(&mut self, route: &Key) -> Option<Reread> {
        let key = served_key(route);
        let before = self.read.remove(&key);
        let found = self.cache.get(route).map(Arc::clone);
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

    /// Reads a route as an ingress. What was served `before` stays if the newest version is refused.
    fn as_ours(&self, route: Arc<HttpRoute>, before: Option<&ReadRoute>) -> Option<ReadRoute> {
        let attachment = attachment(&route, self, &self.controller);
        let has_entry = has_entry(&route, &self.controller);
        let mut finalizers = route.metadata.finalizers.iter().flatten();
        let is_held = finalizers.any(|finalizer| finalizer == self.finalizer.as_str());
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
            ingress: Arc::new(as_ingress(&route, spec, &self.controller)),
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

    /// Returns what the status must say, with the `serve` that was decided, if any.
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
        let news = report.filter(|report| !report.is_shown(&self.route, &routes.controller));
        RouteStatus {
            ingress: Arc::clone(&self.ingress),
            refusal: self.refusal.clone(),
            plan: news.map_or(FieldPlan::Unchanged, FieldPlan::Write),
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
        let attachment = attachment(&self.route, routes, &routes.controller);
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
        self.known(1, cached(&self.gateways, key).map(AsRef::as_ref))
    }

    fn gateway_class(&self, name: &str) -> Cached<&GatewayClass> {
        let key = Key::cluster_scoped(name);
        self.known(2, cached(&self.classes, &key).map(AsRef::as_ref))
    }
}
