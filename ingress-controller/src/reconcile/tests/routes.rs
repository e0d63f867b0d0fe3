//! The writes to an `HTTPRoute` that is read as an ingress.

use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use traffic::ingress::http_route::served_key;

use super::*;
use crate::fixtures::{
    filtered, gateway, gateway_class, gateway_kinds, http_route, observe_routes,
};
use crate::gateway_classes::GatewayClasses;
use crate::parents::Parents;
use crate::routes::Routes;

const ROUTE: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/ns/httproutes/i";
const GATEWAY: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/ns/gateways/web";
const CLASS: &str = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/ours";

impl Stage {
    /// Returns a stage with `route`, stored in the API and shown by the watch.
    async fn with_route(route: HttpRoute) -> Self {
        let stage = Self::new().await;
        stage.api.install(gateway_kinds());
        let stored = stage.api.create(&route).await;
        stage.observe(|index| {
            let [controller, finalizer] =
                [GATEWAY_CONTROLLER, CONTROLLER].map(|name| name.parse().unwrap());
            index.lock().routes = Routes::new(controller, finalizer);
            observe_routes(index, vec![stored])
        });
        stage
    }

    /// Changes the route as a user does, and shows it.
    async fn change_route(&self, change: &Value) {
        self.api.send("PATCH", ROUTE, change).await;
        self.show_route().await;
    }

    /// Shows the route as it is stored to the index.
    async fn show_route(&self) {
        let stored = self.stored_route().await;
        self.observe(|index| index.observe_route(applied(stored)));
    }

    async fn stored_route(&self) -> HttpRoute {
        let api: Api<HttpRoute> = Api::namespaced(self.api.user(), "ns");
        api.get("i").await.unwrap()
    }

    /// Reconciles the status and then the load balancer until nothing more is written.
    async fn settle_route(&self) {
        let key = served_key(&key("i"));
        loop {
            self.reconciler.reconcile(&key).await.unwrap();
            self.gateway.reconcile(&key).await.unwrap();
            if self.api.calls().is_empty() {
                return;
            }
            self.show_route().await;
        }
    }

    /// Returns our conditions, each as `type status message` without our domain.
    async fn conditions(&self) -> Vec<String> {
        let parents = self.stored_route().await.status.unwrap().parents;
        let ours = parents
            .iter()
            .find(|entry| entry.controller_name == GATEWAY_CONTROLLER);
        let conditions = ours.into_iter().flat_map(|entry| &entry.conditions);
        let shown = conditions.map(|condition| {
            let kind = condition
                .type_
                .trim_start_matches("networking.karmada-rs.io/");
            format!("{kind} {} {}", condition.status, condition.message)
        });
        shown.collect()
    }
}

fn addressed() -> Ensured {
    Ensured {
        load_balancer: Some(object(json!({ "ingress": [{ "ip": "192.0.2.1" }] }))),
        obstacles: BTreeSet::new(),
    }
}

/// A route gets our finalizer, is served under a key of its own, and has locations, block and addresses in its status, beside
/// the entries of others.
#[tokio::test]
async fn route_is_served() {
    let other = json!({ "controllerName": "example.com/theirs", "parentRef": { "name": "theirs" },
        "conditions": [{ "type": "Accepted", "status": "True", "new": 1 }] });
    let stage = Stage::with_route(http_route("i", "s")).await;
    let status = json!({ "status": { "parents": [other] } });
    let path = format!("{ROUTE}/status");
    stage.api.send("PATCH", &path, &status).await;
    stage.show_route().await;
    for _ in 0..4 {
        stage.balancer_returns(Ok(addressed()));
    }
    stage.settle_route().await;

    let stored = stage.stored_route().await;
    assert_eq!(
        stored.metadata.finalizers,
        Some(vec![CONTROLLER.to_owned()])
    );
    let raw = stage.api.get(ROUTE).await;
    assert_eq!(raw["status"]["parents"][0], other);
    assert_eq!(
        stage.conditions().await,
        [
            "Accepted True ",
            "ResolvedRefs True ",
            "TrafficBlocked True m1",
            "Located True s: m1, m2",
            "LoadBalanced True 192.0.2.1",
        ]
    );
    assert!(
        stage
            .balancer_calls()
            .iter()
            .all(|call| call == "ensure ns/httproute:i")
    );
    let blocked = "!TrafficBlocked: A Remedy takes the traffic of cluster m1 away";
    assert_eq!(stage.events(), [blocked]);
}

/// An edit that is refused is told in the conditions and once in an Event, and the served version goes on and follows blocks.
#[tokio::test]
async fn refused_edit_is_told() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    stage.settle_route().await;
    stage.events();
    let rules = json!(filtered(http_route("i", "t")).spec.rules);
    stage
        .change_route(&json!({ "spec": { "rules": rules } }))
        .await;
    stage.balancer_calls();
    stage.settle_route().await;
    let line = "rule 1 has filters, which is not served; remove it";
    assert_eq!(
        stage.conditions().await[..2],
        [
            format!("Accepted False {line}"),
            "ResolvedRefs True ".to_owned()
        ]
    );
    assert_eq!(stage.events(), [format!("!RouteRefused: {line}")]);
    assert!(
        stage
            .balancer_calls()
            .contains(&"ensure ns/httproute:i".to_owned())
    );

    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.settle_route().await;
    assert_eq!(stage.conditions().await[2], "TrafficBlocked False ");
    assert_eq!(
        stage.events(),
        ["TrafficUnblocked: Cluster m1 is no longer blocked"]
    );
}

/// A route that was never served is told so, and nothing reaches the load balancer.
#[tokio::test]
async fn refused_route_is_told() {
    let stage = Stage::with_route(filtered(http_route("i", "s"))).await;
    stage.settle_route().await;
    assert_eq!(
        stage.conditions().await[0],
        "Accepted False rule 1 has filters, which is not served; remove it"
    );
    assert_eq!(stage.balancer_calls(), [""; 0]);
    assert_eq!(stage.events().len(), 1);
}

/// A route that leaves our Gateway is deleted from the load balancer, and keeps neither entry nor finalizer of ours.
#[tokio::test]
async fn route_moved_away_is_released() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    stage.settle_route().await;
    stage.balancer_calls();
    let parents = json!([{ "name": "theirs" }]);
    stage
        .change_route(&json!({ "spec": { "parentRefs": parents } }))
        .await;
    stage.settle_route().await;
    assert!(
        stage
            .balancer_calls()
            .contains(&"delete ns/httproute:i".to_owned())
    );
    let stored = stage.stored_route().await;
    assert_eq!(stored.metadata.finalizers.unwrap_or_default(), [""; 0]);
    assert_eq!(stored.status.unwrap().parents, []);
}

/// Who undoes our entries each time meets pauses, in which the route is not read either.
#[tokio::test(start_paused = true)]
async fn contended_entries_back_off() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    let (key, path) = (served_key(&key("i")), format!("{ROUTE}/status"));
    let theirs = json!({ "status": { "parents": [] } });
    for _ in 0..20 {
        stage.reconciler.reconcile(&key).await.unwrap();
        stage.api.send("PATCH", &path, &theirs).await;
        stage.show_route().await;
    }
    // Before each of three writes, and once to find out who it is.
    assert_eq!(stage.api.reads(), [ROUTE; 3 + 1]);
    assert_eq!(stage.reconciler.queue.len(), 1, "after the pause");
}

/// A finalizer that another adds during the release stays.
#[tokio::test]
async fn release_keeps_other_finalizer() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    stage.settle_route().await;
    stage
        .change_route(&json!({ "spec": { "parentRefs": [] } }))
        .await;
    let finalizers = json!({ "metadata": { "finalizers": [CONTROLLER, "example.com/theirs"] } });
    stage.api.send("PATCH", ROUTE, &finalizers).await;
    let key = served_key(&key("i"));
    stage.gateway.reconcile(&key).await.unwrap_err();
    stage.show_route().await;
    stage.settle_route().await;
    let left = stage.stored_route().await.metadata.finalizers;
    assert_eq!(left, Some(vec!["example.com/theirs".to_owned()]));
}

/// Our class is accepted once, and that of another controller is left alone.
#[tokio::test]
async fn own_class_is_accepted() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    let theirs = gateway_class("theirs", "example.com/theirs");
    let theirs = stage.api.create(&theirs).await;
    let stored = stage
        .api
        .create(&gateway_class("ours", GATEWAY_CONTROLLER))
        .await;
    let classes = GatewayClasses {
        index: Arc::clone(&stage.reconciler.index),
        committer: stage.reconciler.ingresses.committer.clone(),
        queue: Queue::default(),
    };
    for class in [stored, theirs] {
        stage.observe(|index| index.observe_gateway_class(applied(class)));
    }
    classes
        .reconcile(&Key::cluster_scoped("ours"))
        .await
        .unwrap();
    classes
        .reconcile(&Key::cluster_scoped("theirs"))
        .await
        .unwrap();
    assert_eq!(stage.api.calls(), [format!("PATCH {CLASS}/status")]);
    let api: Api<GatewayClass> = Api::all(stage.api.user());
    let stored = api.get("ours").await.unwrap();
    let conditions = stored.status.clone().unwrap().conditions.unwrap();
    assert_eq!(
        (conditions[0].type_.as_str(), conditions[0].status.as_str()),
        ("Accepted", "True")
    );
    stage.observe(|index| index.observe_gateway_class(applied(stored)));
    classes
        .reconcile(&Key::cluster_scoped("ours"))
        .await
        .unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// Our Gateway is told how many routes it has, which are accepted, and that of another class is left alone.
#[tokio::test]
async fn own_gateway_is_accepted() {
    let stage = Stage::with_route(http_route("i", "s")).await;
    let mut theirs = gateway("theirs", &["http"]);
    theirs.spec.gateway_class_name = "theirs".to_owned();
    let class = gateway_class("theirs", "example.com/theirs");
    stage.observe(|index| index.observe_gateway_class(applied(class)));
    for own in [gateway("web", &["http"]), theirs] {
        let stored = stage.api.create(&own).await;
        stage.observe(|index| index.observe_gateway(applied(stored)));
    }
    let parents = Parents {
        index: Arc::clone(&stage.reconciler.index),
        committer: stage.reconciler.ingresses.committer.clone(),
        queue: Queue::default(),
    };
    let api: Api<Gateway> = Api::namespaced(stage.api.user(), "ns");
    let write = format!("PATCH {GATEWAY}/status");
    stage.api.calls();
    for (route, calls, attached) in [
        (None, vec![write.clone()], 1),
        (None, vec![], 1),
        (Some(filtered(http_route("i", "s"))), vec![write], 0),
    ] {
        if let Some(route) = route {
            stage.observe(|index| index.observe_route(applied(route)));
        }
        for name in ["web", "theirs"] {
            parents.reconcile(&key(name)).await.unwrap();
        }
        assert_eq!(stage.api.calls(), calls);
        let stored = api.get("web").await.unwrap();
        let status = stored.status.clone().unwrap();
        assert_eq!(status.listeners[0].attached_routes, attached);
        stage.observe(|index| index.observe_gateway(applied(stored)));
    }
}

/// Kinds that are installed later are watched then, and until they are, no object is asked for.
#[tokio::test(start_paused = true)]
async fn kinds_are_watched_later() {
    let api = karmada().await;
    let mut program = Program::new(crate::IDENTITY, ([127, 0, 0, 1], 0).into());
    let routes = Routes::new(
        GATEWAY_CONTROLLER.parse().unwrap(),
        CONTROLLER.parse().unwrap(),
    );
    let index = SharedIndex::new(Queues::new(1), None).reading(routes);
    let index = Arc::new(index);
    crate::watch::routes::watch(&mut program, &api.client(), &index);
    tokio::time::sleep(Duration::from_mins(3)).await;
    let group = "/apis/gateway.networking.k8s.io/v1";
    let asked = api.reads();
    assert!(
        !asked.is_empty() && asked.iter().all(|read| read == group),
        "{asked:?}"
    );
    api.install(gateway_kinds());
    api.create(&gateway_class("ours", GATEWAY_CONTROLLER)).await;
    api.create(&gateway("web", &["http"])).await;
    api.create(&http_route("i", "s")).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(index.keys(), [served_key(&key("i"))]);
}
