//! The real parts themselves: they start, do what the tests rely on, and go away.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use hickory_proto::op::ResponseCode;
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Service},
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, IngressClass},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt, watcher},
};
use pipeline_tests::{
    backend::Backend,
    control_plane::{ControlPlane, Options},
    coredns::{CoreDns, Silence, ask},
    netns::{add_address, isolated},
    test_name,
    traefik::Traefik,
    traffic::Traffic,
};
use serde_json::{Value, json};

const NAME: &str = "kubernetes.default.svc.cluster.local.";

#[test]
fn the_api_server_counts_what_others_have_written() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start(Options::named("karmada")).await?;
        let before = api.successful_writes().await?;
        api.namespace("shop").await?;
        let maps: Api<ConfigMap> = Api::namespaced(api.client(), "shop");
        let apply = PatchParams::apply("test");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}});
        maps.patch("map", &apply, &Patch::Apply(&map)).await?;
        maps.patch("map", &apply, &Patch::Apply(&map)).await?;
        maps.get("map").await?;
        let invalid = Patch::Merge(json!({"data": 7}));
        let refused = maps.patch("map", &PatchParams::default(), &invalid).await;
        refused.expect_err("a number is no data");
        let written = api.successful_writes().await?.since(&before);
        assert_eq!(written.to_string(), "2 APPLY configmaps, 1 POST namespaces");
        Ok(())
    });
}

#[test]
fn an_idle_api_server_counts_no_write_when_it_renews_its_lease() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start(Options::named("karmada")).await?;
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

#[test]
fn a_user_has_only_the_rights_that_rbac_gives() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start(Options::named("karmada")).await?;
        let kubeconfig = api.kubeconfig_for("system:serviceaccount:shop:reader", None)?;
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let user = Client::try_from(config)?;
        let maps: Api<ConfigMap> = Api::namespaced(user, "default");
        let refused = maps.list(&ListParams::default()).await.unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(r#"User "system:serviceaccount:shop:reader" cannot list"#),
            "{refused}"
        );

        let _: ClusterRole = create(
            &Api::all(api.client()),
            json!({"metadata": {"name": "reader"}, "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]}),
        )
        .await?;
        let _: ClusterRoleBinding = create(
            &Api::all(api.client()),
            json!({"metadata": {"name": "reader"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "reader"}]}),
        )
        .await?;
        // The authorizer reads from a watch of its own: ask until it has seen the binding.
        while maps.list(&ListParams::default()).await.is_err() {}
        let refused = maps.delete("any", &DeleteParams::default()).await;
        assert!(refused.unwrap_err().to_string().contains("cannot delete"));
        Ok(())
    });
}

#[test]
fn an_api_outage_keeps_address_and_data() {
    isolated(test_name!(), async || {
        let mut api = ControlPlane::start(Options::named("karmada")).await?;
        let address = api.address();
        api.namespace("shop").await?;
        api.stop_api().await?;
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        api.start_api().await?;
        assert_eq!(api.address(), address);
        let namespaces: Api<Namespace> = Api::all(api.client());
        namespaces.get("shop").await?;
        Ok(())
    });
}

#[test]
fn installed_crds_are_served_and_a_file_that_is_none_is_named() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start(Options::named("karmada")).await?;
        let folder = tempfile::tempdir()?;
        let install = async || api.install_crds(&[folder.path()]).await;
        let error = install().await.unwrap_err();
        assert!(error.to_string().starts_with("no .yaml file in"), "{error}");

        std::fs::write(folder.path().join("apples.yaml"), APPLES)?;
        install().await?;
        let version = api.client().list_api_group_resources("test.io/v1").await?;
        assert_eq!(version.resources[0].name, "apples");

        std::fs::write(
            folder.path().join("b.yaml"),
            "kind: ConfigMap\napiVersion: v1\n",
        )?;
        let error = install().await.unwrap_err();
        assert!(error.to_string().ends_with("b.yaml"), "{error}");
        Ok(())
    });
}

#[test]
fn coredns_answers_from_the_api_and_can_refuse_or_drop_questions() {
    isolated(test_name!(), async || {
        let ip = IpAddr::from([10, 244, 1, 53]);
        let address = SocketAddr::new(ip, 53);
        add_address(ip)?;
        let api = ControlPlane::start(Options::named("member1")).await?;
        let mut coredns = CoreDns::start(address, api.kubeconfig_path()).await?;
        let answer = ask(address, NAME).await?;
        assert_eq!(answer.code, ResponseCode::NoError);
        assert_eq!(answer.addresses, [Ipv4Addr::new(10, 96, 0, 1)]);
        let answer = ask(address, "absent.default.svc.cluster.local.").await?;
        assert_eq!(answer.code, ResponseCode::NXDomain);

        coredns.stop().await?;
        let refused = ask(address, NAME).await.unwrap_err();
        assert!(format!("{refused:#}").contains("refused"), "{refused:#}");

        let silence = Silence::on(address)?;
        let dropped = ask(address, NAME).await.unwrap_err();
        assert_eq!(dropped.to_string(), "10.244.1.53:53 does not answer");

        drop(silence);
        coredns.restart().await?;
        assert_eq!(ask(address, NAME).await?.code, ResponseCode::NoError);
        Ok(())
    });
}

#[test]
fn traefik_routes_by_endpoint_slices_and_a_deleted_one_gets_no_request() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start(Options::named("gateway")).await?;
        api.namespace("shop").await?;
        let mut backends = Vec::new();
        for (number, cluster) in [(1, "member1"), (2, "member2")] {
            let ip = IpAddr::from([10, 244, number, 1]);
            add_address(ip)?;
            backends.push(Backend::start(SocketAddr::new(ip, 8080), cluster).await?);
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

        let served = Instant::now();
        let slices: Api<EndpointSlice> = Api::namespaced(api.client(), "shop");
        slices
            .delete("web-member1", &DeleteParams::default())
            .await?;
        traffic.left("member1", 200, served).await?;
        let gone = Instant::now();
        let after = traffic.next(200, gone).await?;
        assert_eq!((after.to("member1"), after.failed()), (0, 0), "{after}");
        assert!(after.to("member2") >= 200, "{after}");

        create_slice(&api, IpAddr::from([10, 244, 1, 1]), "member1").await?;
        traffic.first_to("member1", gone).await?;
        let all = traffic.counts_since(served);
        assert_eq!(all.failed(), 0, "{all}");
        assert!(traffic.last_to("member1") > Some(gone));
        Ok(())
    });
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

const APPLES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: apples.test.io
spec:
  group: test.io
  scope: Namespaced
  names: {plural: apples, singular: apple, kind: Apple, listKind: AppleList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";
