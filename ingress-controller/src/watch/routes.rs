//! The changes to `HTTPRoute`s and to the Gateways and classes that decide whose they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::MultiClusterIngress;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use karmada_runtime::error::Chain;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Client, Resource};
use objects::Key;
use traffic::ingress::{Serve, services};

use super::SharedIndex;
use crate::index::Index;
use crate::optional::{PAUSE, follow, is_served};
use crate::routes::{Reread, RouteStatus, Routes};

/// The pause before the second look: an API that starts answers before it knows all of its kinds.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Watches the kinds of the Gateway API as soon as the API has them. Readiness does not depend on it, and until all are known
/// no route is released.
pub(crate) fn watch(program: &mut Program, client: &Client, index: &Arc<SharedIndex>) {
    let (client, index) = (client.clone(), Arc::clone(index));
    program.run_until_stopped("http_routes", async move {
        until_served(&client, &index).await;
        index.observe(|index| index.observe_kinds(true));
        tracing::info!("Reading HTTPRoutes");
        futures::join!(
            follow(&client, Config::default(), &index, Index::observe_gateway),
            follow(
                &client,
                Config::default(),
                &index,
                Index::observe_gateway_class
            ),
            follow(&client, Config::default(), &index, Index::observe_route),
        );
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
            Ok(false) if pause == PAUSE => index.observe(|index| index.observe_kinds(false)),
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
    /// Returns what the status of the route under `key` must say, with the `serve` that was decided; `None` for a
    /// `MultiClusterIngress`.
    pub(crate) fn route_status(&self, key: &Key, serve: Option<&Serve>) -> Option<RouteStatus> {
        let index = self.index.lock();
        let routes = index.routes.as_ref()?;
        Some(routes.get(key)?.status(routes, &*index, serve))
    }

    /// Reads from the routes.
    pub(crate) fn with_routes<T>(&self, read: impl FnOnce(&Routes) -> Option<T>) -> Option<T> {
        read(self.index.lock().routes.as_ref()?)
    }
}

impl Index {
    /// Takes in whether the API serves the kinds.
    pub(crate) fn observe_kinds(&mut self, is_served: bool) -> Vec<Key> {
        let is_news = self
            .routes
            .as_mut()
            .is_some_and(|routes| routes.set_served(is_served));
        if is_news {
            let all = self.exportable();
            self.concern(all);
        }
        Vec::new()
    }

    /// Applies an event of a route and wakes it.
    pub(crate) fn observe_route(&mut self, event: Event<Decoded<HttpRoute>>) -> Vec<Key> {
        self.read_routes(|routes| routes.observe_route(event))
    }

    /// Applies an event of a Gateway. If its spec changed, the routes that refer to it are woken.
    pub(crate) fn observe_gateway(&mut self, event: Event<Decoded<Gateway>>) -> Vec<Key> {
        self.read_routes(|routes| routes.observe_gateway(event))
    }

    /// Applies an event of a class of Gateways. If its spec changed, all routes are woken.
    pub(crate) fn observe_gateway_class(
        &mut self,
        event: Event<Decoded<GatewayClass>>,
    ) -> Vec<Key> {
        self.read_routes(|routes| routes.observe_class(event))
    }

    /// Returns the classes of Gateways that have changed since the last call.
    pub(crate) fn take_changed_classes(&mut self) -> BTreeSet<Key> {
        let routes = self.routes.as_mut();
        routes.map_or_else(BTreeSet::new, |routes| {
            std::mem::take(&mut routes.changed_classes)
        })
    }

    fn read_routes(&mut self, observe: impl FnOnce(&mut Routes) -> Vec<Reread>) -> Vec<Key> {
        let Some(routes) = &mut self.routes else {
            return Vec::new();
        };
        let was_listed = routes.is_listed();
        let reread = observe(routes);
        let is_complete = routes.is_listed() && !was_listed;
        let mut woken = Vec::new();
        for Reread { key, before } in reread {
            self.index_ingress(&key);
            let now = self.get(&key).map(Arc::clone);
            let versions: [Option<&MultiClusterIngress>; 2] = [before.as_deref(), now.as_deref()];
            let named = versions.into_iter().flatten();
            let named = named.flat_map(|ingress| services(&ingress.spec.ingress));
            self.concern(named.map(|service| Key::new(&key.namespace, service)));
            woken.push(key);
        }
        if is_complete {
            // Those that are in the load balancer and not here are gone, which only now is known.
            woken.extend(self.left());
            let all = self.exportable();
            self.concern(all);
        }
        woken
    }
}
