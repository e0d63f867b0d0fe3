//! A website that goes on serving while its versions go out, one of them broken: a real proxy in each member routes by the
//! Ingress and the Service that were placed there.

use std::{
    net::{IpAddr, SocketAddr},
    time::Instant,
};

use anyhow::{Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::EndpointSlice,
    networking::v1::{Ingress, IngressClass},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    api::create,
    backend::HttpBackend,
    control_plane::ApiKind,
    fleet::{HOST, Member},
    netns::add_address,
    traefik::Traefik,
    traffic::{LEFT_AFTER, Traffic, reaches},
};
use serde_json::json;

use super::Stage;
use super::deployments::{BROKEN, create_web, run_with, set_image, until_stopped};

const NAME: &str = "website";
const CLASS: &str = "traefik";

/// The pods of the website in one member: one of each version that ever became ready. Those of before go on serving, as
/// a pod does in its grace period.
struct Pods {
    member: Member,
    client: Client,
    serving: Vec<HttpBackend>,
}

impl Pods {
    /// Has the pod of a version serve, and leads the Service to it alone.
    async fn serve(&mut self, namespace: &str, image: &str) -> Result<()> {
        let number = u8::try_from(self.serving.len())?;
        let ip = IpAddr::from([10, 244, self.member.0, 100 + number]);
        add_address(ip)?;
        let pod = HttpBackend::start(SocketAddr::new(ip, 8080), image).await?;
        self.serving.push(pod);
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }],
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        });
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let by = PatchParams::apply("endpointslice-controller");
        slices.patch("web-1", &by, &Patch::Apply(slice)).await?;
        Ok(())
    }
}

/// Runs the Deployments of a member, and its pods.
async fn run(member: Member, client: Client) -> Result<()> {
    let mut pods = Pods {
        member,
        client: client.clone(),
        serving: Vec::new(),
    };
    run_with(client, async |namespace, image| {
        pods.serve(namespace, image).await
    })
    .await
}

/// Starts the proxy of a member.
async fn proxy(stage: &Stage, member: Member) -> Result<Traefik> {
    let api = stage.fleet.member(member);
    let class = json!({ "metadata": { "name": CLASS },
        "spec": { "controller": "traefik.io/ingress-controller" } });
    create(&Api::<IngressClass>::all(api.client()), class).await?;
    let address = SocketAddr::from(([10, 244, member.0, 80], 80));
    add_address(address.ip())?;
    Traefik::start(address, api.kubeconfig_path(), Some(CLASS)).await
}

/// Case F5: a broken version goes to one member and stops there. No request fails in any of them, from the first version
/// to the last.
async fn site_serves_through_rollout(server: ApiKind) -> Result<()> {
    let stage = Stage::start(server, 3).await?;
    let members = stage.fleet.members();
    let running = members.map(|member| run(member, stage.fleet.member(member).client()));
    tokio::select! {
        told = roll_out(&stage) => told?,
        ended = try_join_all(running.collect::<Vec<_>>()) => bail!("nothing runs: {ended:?}"),
    }
    stage.programs.stop().await
}

#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn roll_out(stage: &Stage) -> Result<()> {
    stage.fleet.hub.namespace(NAME).await?;
    let templates = create_web(stage, NAME).await?;
    let hub = stage.fleet.hub.client();
    let service = json!({ "metadata": { "name": "web" }, "spec": {
        "selector": { "app": "web" },
        "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
    } });
    create(&Api::<Service>::namespaced(hub.clone(), NAME), service).await?;
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let ingress = json!({ "metadata": { "name": "web" }, "spec": {
        "ingressClassName": CLASS,
        "rules": [{ "host": HOST, "http": { "paths": [path] } }],
    } });
    create(&Api::<Ingress>::namespaced(hub, NAME), ingress).await?;
    let everywhere = json!({ "placementType": "PickAll" });
    stage.place(NAME, everywhere).await?;
    // An Ingress is not tracked: it counts as available after a second.
    stage.until_complete(NAME).await?;

    let members = stage.fleet.members();
    let proxies = try_join_all(members.map(|member| proxy(stage, member))).await?;
    let addresses: Vec<_> = proxies.iter().map(Traefik::address).collect();
    let first = ["web:1".to_owned()];
    let reached = addresses
        .iter()
        .map(|address| reaches(*address, HOST, &first));
    try_join_all(reached).await?;
    let began = Instant::now();
    let traffic = addresses
        .iter()
        .map(|address| Traffic::start(*address, HOST));
    let traffic: Vec<_> = traffic.collect();

    set_image(&templates, BROKEN).await?;
    until_stopped(stage, NAME, "web:1").await?;
    let stopped = Instant::now();
    for one in &traffic {
        let counts = one.next(LEFT_AFTER, stopped).await?;
        assert_eq!(counts.failed(), 0, "{counts}");
        assert!(counts.to("web:1") >= u64::try_from(LEFT_AFTER)?, "{counts}");
    }

    set_image(&templates, "web:2").await?;
    stage.until_complete_at(NAME, 2).await?;
    let completed = Instant::now();
    for one in &traffic {
        one.left("web:1", LEFT_AFTER, completed).await?;
        let counts = one.counts_since(began);
        assert_eq!(counts.failed(), 0, "{counts}");
        assert!(counts.to("web:2") > 0, "{counts}");
        println!("{counts}");
    }
    stage.remove(NAME).await
}

mod with_tools {
    use pipeline_tests::on_both;

    use super::site_serves_through_rollout;

    on_both!(long: site_serves_through_rollout);
}
