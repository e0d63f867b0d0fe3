//! A real Traefik serves the routes that we attach to its Gateway, and its word on our routes reaches the user.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Result;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use pipeline_tests::{
    api::apply,
    backend::HttpBackend,
    control_plane::ApiKind,
    crds,
    fleet::{Fleet, HOST, INGRESS, Member, NAMESPACE, PROXY, isolated, maintenance},
    manifests,
    programs::Profile,
    traefik::{GATEWAY_CONTROLLER, Traefik},
    traffic::Traffic,
    wait::until,
};
use serde_json::json;
use tools::definitions;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];

/// Runs a test with the definitions of the Gateway API, which are downloaded where there is a network.
fn run(name: &str, server: ApiKind, body: impl AsyncFnOnce(Fleet) -> Result<()>) {
    let definitions = definitions::gateway_api();
    isolated(name, async move || {
        body(fleet(server, &definitions?).await?).await
    });
}

/// Returns a fleet with members, and with the kinds of the Gateway API in its gateway.
pub(crate) async fn fleet(server: ApiKind, definitions: &Path) -> Result<Fleet> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let kinds: Vec<PathBuf> = crds::gateway_api(definitions);
    fleet.gateway.install_crds(&kinds).await?;
    manifests::apply(&fleet.gateway.client(), "gateway-api/rights.yaml").await?;
    fleet.gateway.namespace("infra").await?;
    Ok(fleet)
}

/// Writes the Gateway of the users, whose listener takes routes `from` these namespaces.
pub(crate) async fn write_gateway(client: Client, from: &str) -> Result<()> {
    let classes: Api<GatewayClass> = Api::all(client.clone());
    let class = json!({ "spec": { "controllerName": GATEWAY_CONTROLLER } });
    apply(&classes, "traefik", class).await?;
    let proxy: SocketAddr = PROXY.parse()?;
    let listener = json!({
        "name": "http", "protocol": "HTTP", "port": proxy.port(),
        "allowedRoutes": { "namespaces": { "from": from } },
    });
    let gateways: Api<Gateway> = Api::namespaced(client, "infra");
    let spec = json!({ "gatewayClassName": "traefik", "listeners": [listener] });
    apply(&gateways, "web", json!({ "spec": spec })).await
}

pub(crate) async fn traefik(fleet: &Fleet) -> Result<Traefik> {
    let access = fleet.proxy_access().await?;
    Traefik::start_for_gateways(PROXY.parse()?, &access).await
}

/// Users reach both members through the Gateway. A member that is blocked gets no request, none fails meanwhile, and it
/// serves again once it is released. The ingress has the Gateway's address.
async fn traefik_follows_blocks(fleet: Fleet) -> Result<()> {
    Fleet::lay_network(&MEMBERS)?;
    let mut backends = Vec::new();
    for member in MEMBERS {
        backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
    }
    write_gateway(fleet.gateway.client(), "All").await?;
    let traefik = traefik(&fleet).await?;
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet.ingress_controller_at_gateway(&[]).await?;
    let proxy = PROXY.parse::<SocketAddr>()?.ip().to_string();
    until(&fleet.ingresses(), INGRESS, "with its address", |ingress| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let entries = status.and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
        let mut entries = entries.into_iter().flatten();
        entries.any(|entry| entry.ip.as_deref() == Some(&proxy))
    })
    .await?;
    let started = Instant::now();
    let traffic = Traffic::start(traefik.address(), HOST);
    for member in MEMBERS {
        traffic.first_to(&member.name(), started).await?;
    }

    let both = Instant::now();
    let block = maintenance(Member(1));
    fleet.create_remedy("maintenance", block).await?;
    fleet.serves(&[Member(2)]).await?;
    traffic.left("member1", 200, both).await?;
    let gone = Instant::now();
    let after = traffic.next(200, gone).await?;
    assert_eq!((after.to("member1"), after.failed()), (0, 0), "{after}");
    fleet.delete_remedy("maintenance").await?;
    traffic.first_to("member1", gone).await?;
    let all = traffic.counts_since(both);
    assert_eq!(all.failed(), 0, "{all}");

    let ingresses = fleet.ingresses();
    ingresses.delete(INGRESS, &DeleteParams::default()).await?;
    until(&ingresses, INGRESS, "gone", |ingress| ingress.is_none()).await?;
    let routes: Api<HttpRoute> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let left = routes.list(&ListParams::default()).await?;
    assert_eq!(left.items, []);
    controller.stop().await
}

/// A Gateway that takes no routes of the namespace refuses ours: the user is told by its controller's word, and served once
/// the listener takes them. A host of its own has the ingress that comes second; both are told.
async fn refusal_reaches_the_user(fleet: Fleet) -> Result<()> {
    Fleet::lay_network(&MEMBERS)?;
    let mut backends = Vec::new();
    for member in MEMBERS {
        backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
    }
    let controller = fleet.ingress_controller_at_gateway(&[]).await?;
    let kind = "MultiClusterIngress";
    let missing = "GatewayNotFound Gateway infra/web does not exist";
    fleet.has_event(kind, INGRESS, missing).await?;
    write_gateway(fleet.gateway.client(), "Same").await?;
    let traefik = traefik(&fleet).await?;
    let refused = "RouteNotAccepted Gateway infra/web does not serve all of HTTPRoute shop/shop-shop-example-com-";
    fleet.has_event(kind, INGRESS, refused).await?;
    write_gateway(fleet.gateway.client(), "All").await?;
    let started = Instant::now();
    let traffic = Traffic::start(traefik.address(), HOST);
    for member in MEMBERS {
        traffic.first_to(&member.name(), started).await?;
    }

    fleet.create_ingress("second", "karmada-rs").await?;
    let taken = format!("RouteConflict PathPrefix / of {HOST} is not served");
    fleet.has_event(kind, "second", &taken).await?;
    let routes: Api<HttpRoute> = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let names = routes.list(&ListParams::default()).await?;
    let names: Vec<String> = names.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    controller.stop().await
}

mod with_tools {
    mod embedded {
        use pipeline_tests::{control_plane::ApiKind, test_name};

        use super::super::{refusal_reaches_the_user, run, traefik_follows_blocks};

        #[test]
        fn gateway_follows_blocks() {
            run(test_name!(), ApiKind::Embedded, traefik_follows_blocks);
        }

        #[test]
        fn gateway_refusal_reaches_the_user() {
            run(test_name!(), ApiKind::Embedded, refusal_reaches_the_user);
        }
    }

    mod real {
        use pipeline_tests::{control_plane::ApiKind, test_name};

        use super::super::{refusal_reaches_the_user, run, traefik_follows_blocks};

        #[test]
        fn gateway_follows_blocks() {
            run(test_name!(), ApiKind::Real, traefik_follows_blocks);
        }

        #[test]
        #[ignore = "long"]
        fn gateway_refusal_reaches_the_user() {
            run(test_name!(), ApiKind::Real, refusal_reaches_the_user);
        }
    }
}
