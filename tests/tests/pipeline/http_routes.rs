//! An HTTPRoute in the fleet's API is served as an ingress is, and one that is refused goes on as it was.

use std::{net::SocketAddr, path::Path, time::Instant};

use anyhow::Result;
use k8s_openapi::api::networking::v1::Ingress;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use pipeline_tests::{
    api::apply,
    backend::HttpBackend,
    control_plane::ApiKind,
    crds,
    fleet::{Fleet, GATEWAY_CLASS, Member, NAMESPACE, PROXY, SERVICE, isolated, maintenance},
    programs::Profile,
    traefik::Traefik,
    traffic::Traffic,
    wait::until,
};
use serde_json::{Value, json};
use tools::definitions;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const CONTROLLER: &str = "karmada-rs.io/multi-cluster";
const ROUTE: &str = "routed";
const HOST: &str = "routed.example.com";

/// Runs a test with the definitions of the Gateway API, which are downloaded where there is a network.
fn run(name: &str, server: ApiKind, body: impl AsyncFnOnce(Fleet, &Path) -> Result<()>) {
    let definitions = definitions::gateway_api();
    isolated(name, async move || {
        let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
        let definitions = definitions?;
        body(fleet, definitions.as_path()).await
    });
}

fn routes(fleet: &Fleet) -> Api<HttpRoute> {
    Api::namespaced(fleet.karmada.client(), NAMESPACE)
}

/// Writes the route, whose rule has these fields beside its Service.
async fn write_route(fleet: &Fleet, fields: &Value) -> Result<()> {
    let mut rule = fields.clone();
    rule["backendRefs"] = json!([{ "name": SERVICE, "port": 80 }]);
    let spec = json!({ "parentRefs": [{ "name": "web" }], "hostnames": [HOST], "rules": [rule] });
    apply(&routes(fleet), ROUTE, json!({ "spec": spec })).await
}

/// Waits until our entry in the status of the route has this condition, with `text` in its message.
async fn says(fleet: &Fleet, kind: &str, status: &str, text: &str) -> Result<()> {
    let what = format!("{kind} {status} with {text:?}");
    until(&routes(fleet), ROUTE, &what, |route| {
        let parents = route.and_then(|route| Some(&route.status.as_ref()?.parents));
        let ours = parents.into_iter().flatten();
        let ours = ours.filter(|entry| entry.controller_name == CONTROLLER);
        let mut conditions = ours.flat_map(|entry| &entry.conditions);
        conditions.any(|condition| {
            condition.type_ == kind
                && condition.status == status
                && condition.message.contains(text)
        })
    })
    .await?;
    Ok(())
}

/// Users reach both members by a route, and no request fails while one is blocked and released, nor while an edit is refused.
/// A route that is deleted leaves nothing behind.
async fn route_follows_blocks(fleet: Fleet, definitions: &Path) -> Result<()> {
    Fleet::lay_network(&MEMBERS)?;
    let mut backends = Vec::new();
    for member in MEMBERS {
        backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
    }
    fleet
        .karmada
        .install_crds(&crds::gateway_api(definitions))
        .await?;
    let classes: Api<GatewayClass> = Api::all(fleet.karmada.client());
    let class = json!({ "spec": { "controllerName": CONTROLLER } });
    apply(&classes, "multi-cluster", class).await?;
    let gateways: Api<Gateway> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let listener = json!({ "name": "http", "protocol": "HTTP", "port": 80 });
    let spec = json!({ "gatewayClassName": "multi-cluster", "listeners": [listener] });
    apply(&gateways, "web", json!({ "spec": spec })).await?;
    write_route(&fleet, &json!({})).await?;
    let proxy: SocketAddr = PROXY.parse()?;
    let access = fleet.proxy_access().await?;
    let traefik = Traefik::start(proxy, &access, Some(GATEWAY_CLASS)).await?;
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet.ingress_controller().await?;
    until(&classes, "multi-cluster", "accepted", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == "Accepted" && condition.status == "True")
    })
    .await?;
    let located = format!("{SERVICE}: member1, member2");
    says(&fleet, "networking.karmada-rs.io/Located", "True", &located).await?;
    until(&gateways, "web", "programmed, with a route", |gateway| {
        let status = gateway.and_then(|gateway| gateway.status.as_ref());
        status.is_some_and(|status| {
            let mut conditions = status.conditions.iter();
            let is_programmed =
                conditions.any(|it| it.type_ == "Programmed" && it.status == "True");
            is_programmed && status.listeners[0].attached_routes == 1
        })
    })
    .await?;
    let started = Instant::now();
    let traffic = Traffic::start(traefik.address(), HOST);
    for member in MEMBERS {
        traffic.first_to(&member.name(), started).await?;
    }

    let both = Instant::now();
    let blocked = "networking.karmada-rs.io/TrafficBlocked";
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    says(&fleet, blocked, "True", "member1").await?;
    traffic.left("member1", 200, both).await?;
    let gone = Instant::now();
    let after = traffic.next(200, gone).await?;
    assert_eq!((after.to("member1"), after.failed()), (0, 0), "{after}");

    let filter =
        json!({ "type": "RequestHeaderModifier", "requestHeaderModifier": { "remove": ["x"] } });
    write_route(&fleet, &json!({ "filters": [filter] })).await?;
    says(&fleet, "Accepted", "False", "rule 1 has filters").await?;
    fleet
        .has_event("HTTPRoute", ROUTE, "RouteRefused rule 1 has filters")
        .await?;
    fleet.delete_remedy("maintenance").await?;
    says(&fleet, blocked, "False", "").await?;
    traffic.first_to("member1", gone).await?;
    let all = traffic.counts_since(both);
    assert_eq!(all.failed(), 0, "{all}");

    let ingresses: Api<Ingress> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let before = ingresses.list(&ListParams::default()).await?.items.len();
    routes(&fleet)
        .delete(ROUTE, &DeleteParams::default())
        .await?;
    until(&routes(&fleet), ROUTE, "gone", |route| route.is_none()).await?;
    until(&gateways, "web", "without routes", |gateway| {
        let status = gateway.and_then(|gateway| gateway.status.as_ref());
        status.is_some_and(|status| status.listeners[0].attached_routes == 0)
    })
    .await?;
    let left = ingresses.list(&ListParams::default()).await?.items.len();
    assert_eq!(
        (before, left),
        (2, 1),
        "that of the route, and that of the MultiClusterIngress"
    );
    controller.stop().await
}

mod with_tools {
    mod embedded {
        use pipeline_tests::{control_plane::ApiKind, test_name};

        use super::super::{route_follows_blocks, run};

        #[test]
        fn route_is_served() {
            run(test_name!(), ApiKind::Embedded, route_follows_blocks);
        }
    }

    mod real {
        use pipeline_tests::{control_plane::ApiKind, test_name};

        use super::super::{route_follows_blocks, run};

        #[test]
        fn route_is_served() {
            run(test_name!(), ApiKind::Real, route_follows_blocks);
        }
    }
}
