//! The real parts themselves: they start, work as other tests rely on, and end.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use anyhow::{Context, Result};
use hickory_proto::op::ResponseCode;
use k8s_openapi::{
    api::{
        core::v1::Service,
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, IngressClass},
    },
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api, Resource,
    api::{DeleteParams, PostParams},
};
use pipeline_tests::{
    api::merge,
    backend::HttpBackend,
    control_plane::{ApiKind, ControlPlane},
    coredns::{CoreDns, Silence, query},
    fleet::{Fleet, GATEWAY_CLASS, HOST, INGRESS, Member, NAMESPACE, PROXY, SERVICE},
    netns::add_address,
    programs::Profile,
    traefik::Traefik,
    traffic::Traffic,
};
use serde_json::{Value, json};

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const NAME: &str = "kubernetes.default.svc.cluster.local.";

/// CoreDNS answers from the API and can refuse or drop queries.
async fn coredns_can_fail_three_ways(server: ApiKind) -> Result<()> {
    let ip = IpAddr::from([10, 244, 1, 53]);
    let address = SocketAddr::new(ip, 53);
    add_address(ip)?;
    let api = ControlPlane::start("member1", server).await?;
    let mut coredns = CoreDns::start(address, api.kubeconfig_path()).await?;
    let response = query(address, NAME).await?;
    assert_eq!(response.code, ResponseCode::NoError);
    assert_eq!(response.addresses, [Ipv4Addr::new(10, 96, 0, 1)]);
    let response = query(address, "absent.default.svc.cluster.local.").await?;
    assert_eq!(response.code, ResponseCode::NXDomain);

    coredns.stop().await?;
    let refused = query(address, NAME).await.unwrap_err();
    assert!(format!("{refused:#}").contains("refused"), "{refused:#}");

    let silence = Silence::on(address)?;
    let dropped = query(address, NAME).await.unwrap_err();
    assert_eq!(dropped.to_string(), "10.244.1.53:53 does not respond");

    drop(silence);
    coredns.restart().await?;
    assert_eq!(query(address, NAME).await?.code, ResponseCode::NoError);
    Ok(())
}

/// Traefik routes by endpoint slices, and a deleted one gets no request.
async fn traefik_follows_endpoint_slices(server: ApiKind) -> Result<()> {
    let api = ControlPlane::start("gateway", server).await?;
    api.namespace("shop").await?;
    let mut backends = Vec::new();
    for (number, cluster) in [(1, "member1"), (2, "member2")] {
        let ip = IpAddr::from([10, 244, number, 1]);
        add_address(ip)?;
        backends.push(HttpBackend::start(SocketAddr::new(ip, 8080), cluster).await?);
        create_slice(&api, ip, cluster).await?;
    }
    create_route(&api).await?;
    let gateway = IpAddr::from([10, 0, 0, 80]);
    add_address(gateway)?;
    let traefik = Traefik::start(
        SocketAddr::new(gateway, 80),
        api.kubeconfig_path(),
        Some("gateway"),
    )
    .await?;

    let started = Instant::now();
    let traffic = Traffic::start(traefik.address(), "shop.example");
    traffic.first_to("member1", started).await?;
    traffic.first_to("member2", started).await?;

    let both = Instant::now();
    let slices: Api<EndpointSlice> = Api::namespaced(api.client(), "shop");
    slices
        .delete("web-member1", &DeleteParams::default())
        .await?;
    traffic.left("member1", 200, both).await?;
    let gone = Instant::now();
    let after = traffic.next(200, gone).await?;
    assert_eq!((after.to("member1"), after.failed()), (0, 0), "{after}");
    assert!(after.to("member2") >= 200, "{after}");

    create_slice(&api, IpAddr::from([10, 244, 1, 1]), "member1").await?;
    traffic.first_to("member1", gone).await?;
    let all = traffic.counts_since(both);
    assert_eq!(all.failed(), 0, "{all}");
    assert!(traffic.last_to("member1") > Some(gone));
    Ok(())
}

/// Traefik serves the objects that our provider writes for a default backend beside rules, for a backend of plain HTTP at port 443, and
/// for an address that two clusters share.
async fn traefik_serves_our_objects(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    Fleet::lay_network(&MEMBERS)?;
    let mut backends = Vec::new();
    for member in MEMBERS {
        backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
    }
    let services: Api<Service> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let port = json!({ "name": "http", "port": 443, "targetPort": 8080, "appProtocol": "http" });
    let ports = json!({ "spec": { "ports": [port] } });
    merge(&services, SERVICE, &ports).await?;
    let backend = json!({ "service": { "name": SERVICE, "port": { "number": 443 } } });
    let path = json!({ "path": "/only", "pathType": "Prefix", "backend": backend });
    let spec = json!({ "defaultBackend": backend, "rules": [{ "host": HOST, "http": { "paths": [path] } }] });
    let spec = json!({ "spec": spec });
    merge(&fleet.ingresses(), INGRESS, &spec).await?;
    let controller = fleet.ingress_controller().await?;
    let proxy: SocketAddr = PROXY.parse()?;
    let access = fleet.proxy_access().await?;
    let traefik = Traefik::start(proxy, &access, Some(GATEWAY_CLASS)).await?;
    let started = Instant::now();
    // Its path is not that of the rule, and the other host is in none.
    for host in [HOST, "elsewhere.example.com"] {
        let traffic = Traffic::start(traefik.address(), host);
        for member in MEMBERS {
            traffic.first_to(&member.name(), started).await?;
        }
    }

    // Member 2 says that it has the address of member 1, too, and that it is not ready.
    let slices: Api<EndpointSlice> = Api::namespaced(fleet.karmada.client(), NAMESPACE);
    let shared = json!({ "endpoints": [
        { "addresses": [Member(1).backend().ip()], "conditions": { "ready": false } },
    ] });
    let name = format!("imported-{}-{SERVICE}", Member(2).name());
    merge(&slices, &name, &shared).await?;
    fleet.serves(&[Member(1)]).await?;
    let traffic = Traffic::start(traefik.address(), HOST);
    traffic.left("member2", 200, Instant::now()).await?;
    let after = traffic.next(200, Instant::now()).await?;
    assert_eq!(after.failed(), 0, "{after}");
    controller.stop().await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let mut object = object;
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("cannot create a {}", K::kind(&())))
}

async fn create_slice(api: &ControlPlane, ip: IpAddr, cluster: &str) -> Result<()> {
    let _: EndpointSlice = create(
        &Api::namespaced(api.client(), "shop"),
        json!({
            "metadata": {
                "name": format!("web-{cluster}"),
                "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        }),
    )
    .await?;
    Ok(())
}

async fn create_route(api: &ControlPlane) -> Result<()> {
    let _: IngressClass = create(
        &Api::all(api.client()),
        json!({
            "metadata": {"name": "gateway"},
            "spec": {"controller": "traefik.io/ingress-controller"},
        }),
    )
    .await?;
    let _: Service = create(
        &Api::namespaced(api.client(), "shop"),
        json!({"metadata": {"name": "web"}, "spec": {"ports": [
            {"name": "http", "port": 80, "targetPort": 8080}]}}),
    )
    .await?;
    let _: Ingress = create(
        &Api::namespaced(api.client(), "shop"),
        json!({"metadata": {"name": "web"}, "spec": {
            "ingressClassName": "gateway",
            "rules": [{"host": "shop.example", "http": {"paths": [{
                "path": "/",
                "pathType": "Prefix",
                "backend": {"service": {"name": "web", "port": {"number": 80}}},
            }]}}],
        }}),
    )
    .await?;
    Ok(())
}

mod with_tools {
    use pipeline_tests::on_both;

    use super::{
        coredns_can_fail_three_ways, traefik_follows_endpoint_slices, traefik_serves_our_objects,
    };

    on_both!(
        coredns_can_fail_three_ways,
        traefik_follows_endpoint_slices,
        traefik_serves_our_objects,
    );
}

mod real {
    use futures::{StreamExt, TryStreamExt};
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::{
        Api, ResourceExt,
        runtime::{WatchStreamExt, watcher},
    };
    use pipeline_tests::{
        control_plane::{ApiKind, ControlPlane},
        netns::isolated,
        test_name,
    };

    /// An idle API server counts no write when it renews its lease.
    #[test]
    fn own_lease_is_not_counted() {
        isolated(test_name!(), async || {
            let api = ControlPlane::start("karmada", ApiKind::Real).await?;
            let before = api.successful_writes().await?;
            let leases: Api<Lease> = Api::namespaced(api.client(), "kube-system");
            let renewals = watcher(leases, watcher::Config::default()).applied_objects();
            let renewals: Vec<_> = renewals.take(2).try_collect().await?;
            assert_eq!(renewals[0].name_any(), renewals[1].name_any());
            let written = api.successful_writes().await?.since(&before);
            assert_eq!(written.to_string(), "no writes");
            Ok(())
        });
    }
}
