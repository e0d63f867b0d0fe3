//! The table of `HTTPRoute`s, and of the Gateways and classes that decide to whom they belong.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use karmada_runtime::error::Chain;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use objects::Key;
use traffic::ingress::Serve;
use traffic::ingress::http_route::served_key;

use super::shared::{SharedIndex, wake};
use crate::index::Index;
use crate::optional::{PAUSE, is_served};
use crate::routes::{Reread, RouteStatus};

/// The pause before the second look: an API that starts answers before it knows all of its kinds.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Watches the kinds of the Gateway API as soon as the API has them. Readiness does not depend on it, and until all are known
/// no route is released.
pub(crate) fn watch(program: &mut Program, client: &Client, index: &Arc<SharedIndex>) {
    let all = Config::default;
    let gateways = index.gateways().follow(program, client, all());
    let classes = index.gateway_classes().follow(program, client, all());
    let routes = index.http_routes().follow(program, client, all());
    let (client, index) = (client.clone(), Arc::clone(index));
    program.run_until_stopped("http_routes", async move {
        until_served(&client, &index).await;
        index.set_served(true);
        tracing::info!("Reading HTTPRoutes");
        futures::join!(gateways, classes, routes);
    });
}

async fn until_served(client: &Client, index: &SharedIndex) {
    let kinds = [
        (HttpRoute::API_VERSION, HttpRoute::plural(&())),
        (Gateway::API_VERSION, Gateway::plural(&())),
        (GatewayClass::API_VERSION, GatewayClass::plural(&())),
    ];
    let mut pause = SECOND_LOOK;
    loop {
        match is_served(client, &kinds).await {
            Ok(true) => return,
            Ok(false) if pause == PAUSE => index.set_served(false),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = %Chain(&error), "Could not find out whether the API has HTTPRoutes, will retry");
            }
        }
        tokio::time::sleep(pause).await;
        pause = PAUSE;
    }
}

impl SharedIndex {
    /// Itself, and the Gateways that it refers to if its spec changes.
    pub(super) fn http_routes(&self) -> Watch<Index, HttpRoute, Key> {
        let ingresses = self.queues.ingresses();
        let rows = Watch::new(&self.index, |index| &mut index.routes.stored)
            .wakes_each(&ingresses, |index, change| {
                index.reread(iter::once(change.key.clone()))
            })
            .wakes(&self.queues.parents, |index, change| {
                let is_news = change.differs(|old, new| old.spec != new.spec);
                let parents = is_news.then(|| index.routes.stored.concerned(change));
                parents.unwrap_or_default()
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned())
            // One that never decoded and is gone may be in the load balancer.
            .follows_known(move |_, mended| {
                let mended: Vec<Key> = mended.iter().map(served_key).collect();
                wake(&ingresses, &mended);
            });
        self.completing(rows)
    }

    /// Itself, and if its spec changes the routes that refer to it, with their other Gateways.
    pub(super) fn gateways(&self) -> Watch<Index, Gateway> {
        let rows = Watch::new(&self.index, |index| &mut index.routes.gateways)
            .wakes_each(&self.queues.ingresses(), |index, change| {
                if !change.differs(|old, new| old.spec != new.spec) {
                    return Vec::new();
                }
                let routes = index.routes.stored.keys_of(&change.key);
                let routes: Vec<Key> = routes.cloned().collect();
                index.reread(routes)
            })
            .wakes(&self.queues.parents, |index, change| {
                let is_news = change.differs(|old, new| old.spec != new.spec);
                let others = is_news.then(|| index.routes.sharing_routes(&change.key));
                let mut woken = others.unwrap_or_default();
                woken.insert(change.key.clone());
                woken
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned());
        self.completing(rows)
    }

    /// Itself, and all routes and Gateways if its spec changes. Which Gateways have it is no matter: classes change when a fleet
    /// is set up.
    pub(super) fn gateway_classes(&self) -> Watch<Index, GatewayClass> {
        let rows = Watch::new(&self.index, |index| &mut index.routes.classes)
            .wakes(&self.queues.classes, |_, change| [change.key.clone()])
            .wakes(&self.queues.parents, |index, change| {
                let is_news = change.differs(|old, new| old.spec != new.spec);
                let all = index.routes.gateways.keys();
                all.filter(|_| is_news).cloned().collect::<Vec<Key>>()
            })
            .wakes_each(&self.queues.ingresses(), |index, change| {
                if change.differs(|old, new| old.spec != new.spec) {
                    index.reread_all()
                } else {
                    Vec::new()
                }
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned());
        self.completing(rows)
    }

    /// All routes and Gateways, once all objects of a kind are known.
    fn completing<K, T>(&self, rows: Watch<Index, K, T>) -> Watch<Index, K, T> {
        let ingresses = self.queues.ingresses();
        let exports = self.queues.exports.clone();
        let parents = self.queues.parents.clone();
        rows.follows_known(move |index, _| {
            parents.add_all(index.routes.gateways.keys().cloned());
            let mut woken = index.reread_all();
            if index.routes.is_listed() {
                // Those that are in the load balancer and not here are gone, which only now is known.
                woken.extend(index.left());
                index.concern_all();
            }
            wake(&ingresses, &woken);
            exports.add_all(index.take_concerned());
        })
    }

    /// Takes in whether the API serves the kinds.
    pub(crate) fn set_served(&self, is_served: bool) {
        let mut index = self.index.lock();
        if index.routes.set_served(is_served) {
            self.queues.exports.add_all(index.exportable());
        }
    }
}

impl Index {
    /// Returns the status that the route under `key` must have, with the `serve` that was decided; `None` for a
    /// `MultiClusterIngress`.
    pub(crate) fn route_status(&self, key: &Key, serve: Option<&Serve>) -> Option<RouteStatus> {
        Some(self.route(key)?.status(&self.routes, self, serve))
    }

    /// Reads routes again, and returns the keys under which ours are served.
    fn reread(&mut self, routes: impl IntoIterator<Item = Key>) -> Vec<Key> {
        let mut woken = Vec::new();
        for route in routes {
            let Some(Reread { key, before }) = self.routes.read(&route) else {
                continue;
            };
            self.index_ingress(&key);
            let now = self.get(&key).map(Arc::clone);
            self.concern_services(&key, before.as_deref().into_iter().chain(now.as_deref()));
            woken.push(key);
        }
        woken
    }

    fn reread_all(&mut self) -> Vec<Key> {
        let all: BTreeSet<Key> = self.routes.stored.keys().cloned().collect();
        self.reread(all)
    }
}
