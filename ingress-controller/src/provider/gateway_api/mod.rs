//! The provider `gateway-api`: a gateway cluster with a Gateway, whose controller, whichever it is, serves the `HTTPRoute`s
//! that are attached to it.
//!
//! - `parent`: the Gateway and its class. Their conditions are the controller's word on whether our routes are served.
//! - `others`: the `HTTPRoute`s that are not ours, of which one may have a host and path of ours.

mod args;
mod others;
mod parent;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::gateway_api::{Gateway, HttpRoute};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use objects::Key;
use objects::reverse_index::ReverseIndex;
use parking_lot::Mutex;
use traffic::ingress::gateway_api::{
    Claims, HttpRoutes, RouteProblem, addresses, gateway_problems, hosts, route_problems,
};
use traffic::ingress::kubernetes::{ManagedBy, Objects, ingress_of};
use traffic::ingress::{Cached, ControllerName, Desired};

pub(crate) use self::args::GatewayApiArgs;
use self::others::OtherRoutes;
use self::parent::Parent;

use super::balancer::{Balancers, Ensured, Obstacle, RelatedObject, label};
use super::gateway_cluster::{
    self, GatewayCluster, GatewayClusterArgs, GatewayKind, GatewayObjects, Routing,
};
use crate::reason::Reason;

/// A gateway cluster with a Gateway.
pub(crate) type GatewayApi = GatewayCluster<HttpRouting>;

/// The routes to the Services of a gateway cluster that are attached to a Gateway.
pub(crate) struct HttpRouting {
    factory: HttpRoutes,
    parent: Mutex<Parent>,
    others: Mutex<OtherRoutes>,
    /// From an ingress to the hosts of which another of ours has a path that it wants.
    waiting: Mutex<ReverseIndex<Key, String>>,
}

/// Connects to every gateway cluster of the flags.
pub(super) async fn connect(
    clusters: &GatewayClusterArgs,
    args: &GatewayApiArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Balancers, StartError> {
    let gateway = args.gateway()?;
    let factory = HttpRoutes::new(controller, gateway);
    gateway_cluster::connect(
        clusters,
        "gateway-api",
        program,
        move |name, client, writer| {
            let routing = HttpRouting::new(factory.clone());
            GatewayApi::named(name, client, writer, routing)
        },
    )
    .await
}

impl GatewayKind for HttpRoute {
    const WATCH: &'static str = "gateway_http_routes";

    fn hosts(&self) -> BTreeSet<String> {
        hosts(self)
    }
}

impl HttpRouting {
    fn new(factory: HttpRoutes) -> Self {
        Self {
            factory,
            parent: Mutex::default(),
            others: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    fn obstacle(&self, problem: &RouteProblem) -> Obstacle {
        let reason = match problem {
            RouteProblem::Host { .. } | RouteProblem::Path { .. } => Reason::RouteInvalid,
            RouteProblem::Taken { .. } | RouteProblem::Conflict { .. } => Reason::RouteConflict,
            RouteProblem::NoGateway { .. } => Reason::GatewayNotFound,
            RouteProblem::NotProgrammed { .. } | RouteProblem::Refused { .. } => {
                Reason::RouteNotAccepted
            }
            RouteProblem::NoTls { .. } => Reason::TlsNotServed,
        };
        let (kind, key) = match problem {
            RouteProblem::Conflict { route, .. } | RouteProblem::Refused { route, .. } => {
                (HttpRoute::KIND, route)
            }
            _ => (Gateway::KIND, self.factory.gateway()),
        };
        Obstacle {
            reason,
            object: RelatedObject {
                api_version: None,
                kind,
                key: key.clone(),
            },
            message: problem.to_string(),
        }
    }
}

impl Routing for HttpRouting {
    type Route = HttpRoute;

    fn managed_by(&self) -> &ManagedBy {
        self.factory.managed_by()
    }

    fn objects(
        &self,
        desired: &Desired,
        routes: &GatewayObjects<HttpRoute>,
    ) -> (Objects<HttpRoute>, BTreeSet<Obstacle>) {
        let served = self.factory.objects(desired, |host| {
            let ours = routes.with_host(host);
            let theirs = self.others.lock().with_host(host);
            let ours = ours.iter().map(|route| &**route);
            let theirs = theirs.iter().map(|route| &**route);
            Claims::new(self.factory.gateway(), ours, theirs)
        });
        let problems = served.problems.iter();
        let taken = problems.clone().filter_map(|problem| match problem {
            RouteProblem::Taken { host, .. } => Some(host.clone()),
            _ => None,
        });
        let taken = taken.collect();
        self.waiting.lock().replace(&desired.key, taken);
        let obstacles = problems.map(|problem| self.obstacle(problem)).collect();
        (served.objects, obstacles)
    }

    /// Returns the report of the Gateway's controller.
    fn report(&self, desired: &Desired, routes: &[Arc<HttpRoute>]) -> Ensured {
        let (gateway, class) = self.parent.lock().get(self.factory.gateway());
        let (load_balancer, problems) = match gateway {
            Cached::Present(gateway) => {
                let class = class.as_deref();
                let routes = routes.iter().map(|route| &**route);
                let mut problems = gateway_problems(&desired.routes, &gateway);
                let of_routes = routes.clone();
                problems.extend(of_routes.flat_map(|r| route_problems(r, &gateway, class)));
                (Some(addresses(routes, &gateway, class)), problems)
            }
            Cached::Absent => {
                let gateway = self.factory.gateway().clone();
                let problem = RouteProblem::NoGateway { gateway };
                (Some(IngressLoadBalancerStatus::default()), [problem].into())
            }
            // Its addresses are not known to have changed.
            Cached::Unread => (None, BTreeSet::new()),
        };
        let obstacles = problems.iter().map(|problem| self.obstacle(problem));
        Ensured {
            load_balancer,
            obstacles: obstacles.collect(),
        }
    }

    /// Returns those that want a path of the route's host.
    fn waiting(&self, event: &Event<Decoded<HttpRoute>>) -> Vec<Key> {
        let waiting = self.waiting.lock();
        let hosts = match event {
            Event::Apply(Decoded::Valid(route)) | Event::Delete(Decoded::Valid(route)) => {
                hosts(route)
            }
            // Which routes are gone, only the end of a list shows.
            Event::InitDone => waiting.all_targets().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let woken: BTreeSet<&Key> = hosts
            .iter()
            .flat_map(|host| waiting.sources(host))
            .collect();
        woken.into_iter().cloned().collect()
    }

    fn forget(&self, key: &Key) {
        self.waiting.lock().replace(key, BTreeSet::new());
    }

    fn watch(cluster: &Arc<GatewayApi>, program: &mut Program, queue: &Queue<Key>) {
        let gateway = cluster.routing.factory.gateway().clone();
        let name = |of| label(of, cluster.name);

        let (own, wake) = (Arc::clone(cluster), queue.clone());
        let api = Api::namespaced(cluster.client.clone(), &gateway.namespace);
        let selected = Config::default().fields(&format!("metadata.name={}", gateway.name));
        program.watch_elsewhere(name("gateway_gateways"), api, selected, move |event| {
            if own.routing.parent.lock().observe(event) {
                wake.add_all(own.routes.ingresses());
            }
        });

        let (own, wake) = (Arc::clone(cluster), queue.clone());
        let api = Api::all(cluster.client.clone());
        let all = Config::default();
        program.watch_elsewhere(name("gateway_classes"), api, all, move |event| {
            if own.routing.parent.lock().observe_class(event) {
                wake.add_all(own.routes.ingresses());
            }
        });

        let (own, wake) = (Arc::clone(cluster), queue.clone());
        let api = Api::all(cluster.client.clone());
        let others = Config::default().labels(&cluster.routing.managed_by().others());
        program.watch_elsewhere(name("gateway_other_routes"), api, others, move |event| {
            let hosts = own.routing.others.lock().observe(event);
            let routes = hosts.iter().flat_map(|host| own.routes.with_host(host));
            wake.add_all(routes.filter_map(|route| ingress_of(&route.metadata)));
        });
    }
}

#[cfg(test)]
mod tests;
