//! `kubectl remedy drain` under load: a member of three is emptied and filled again while users send requests through a real
//! proxy.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use pipeline_tests::{
    backend::HttpBackend,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Fleet, GATEWAY_CLASS, HOST, Member, PROXY, proxy_access},
    kubectl::Kubectl,
    programs::Profile,
    rights::grant_file,
    served::Served,
    traefik::Traefik,
    traffic::{LEFT_AFTER, Load, Traffic, reaches},
};

use crate::placements::ingresses::Site;

const MEMBERS: [Member; 3] = [Member(1), Member(2), Member(3)];
const USER: &str = "operator";
const RATE: u32 = 500;
/// Connections beside those, whose requests take seconds.
const HELD: u32 = 8;
/// Requests that must all go elsewhere once member1 is drained: those of a second.
const WHILE_DRAINED: usize = 500;

/// The requests of users, and an operator.
struct Scene {
    traffic: Traffic,
    operator: Kubectl,
    _proxy: Traefik,
    _backends: Vec<HttpBackend>,
}

impl Scene {
    /// Starts the load once all members serve. The operator has no rights in `api` but those in files of this folder.
    async fn start(api: &ControlPlane, gateway: &ControlPlane, folder: &str) -> Result<Self> {
        let starting =
            MEMBERS.map(async |one| HttpBackend::start(one.backend(), &one.name()).await);
        let backends = try_join_all(starting).await?;
        let address: SocketAddr = PROXY.parse()?;
        let access = proxy_access(gateway).await?;
        let proxy = Traefik::start(address, &access, Some(GATEWAY_CLASS)).await?;
        reaches(address, HOST, &MEMBERS.map(Member::name)).await?;
        for file in ["kubectl-remedy", "kubectl-remedy-drain"] {
            grant_file(&api.client(), USER, &format!("{folder}/{file}")).await?;
        }
        let load = Load {
            hosts: vec![HOST.to_owned()],
            rate: RATE,
            held: HELD,
        };
        let scene = Self {
            traffic: Traffic::under(address, &load),
            operator: Kubectl::new(api.kubeconfig_for(USER)?)?,
            _proxy: proxy,
            _backends: backends,
        };
        // The authorizer has a watch of its own: repeat until it has seen the bindings.
        while scene.operate(&["uncordon"]).await? != Some(1) {}
        Ok(scene)
    }

    /// Runs a command about member1, and returns its exit code.
    #[expect(clippy::print_stdout, reason = "libtest captures it")]
    async fn operate(&self, command: &[&str]) -> Result<Option<i32>> {
        let line = [command, &["member1"]].concat();
        let finished = self.operator.remedy(&line, "").await?;
        println!("{}{}", finished.stdout, finished.stderr);
        Ok(finished.code)
    }

    /// Drains member1, which gets no request from then on.
    async fn drain(&self, served: &Served) -> Result<()> {
        let code = self
            .operate(&["drain", "--workloads", "--wait=90s"])
            .await?;
        ensure!(code == Some(0), "drain ended with {code:?}");
        let drained = Instant::now();
        served
            .becomes(&[Member(2), Member(3)].map(Member::backend))
            .await?;
        self.traffic.left("member1", LEFT_AFTER, drained).await?;
        let after = self.traffic.next(WHILE_DRAINED, Instant::now()).await?;
        ensure!(after.to("member1") == 0, "member1 is drained: {after}");
        Ok(())
    }

    async fn uncordon(&self) -> Result<()> {
        let code = self.operate(&["uncordon"]).await?;
        ensure!(code == Some(0), "uncordon ended with {code:?}");
        Ok(())
    }

    /// Checks that member1 gets requests again, and that none has failed.
    async fn ends_well(&self) -> Result<()> {
        self.traffic.first_to("member1", Instant::now()).await?;
        let all = self.traffic.counts();
        ensure!(all.failed() == 0, "requests failed: {all}");
        Ok(())
    }
}

/// Case T26: on a Karmada.
async fn karmada_drain_loses_no_request(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&MEMBERS)?;
    let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
    let remedies = fleet.remedy_controller().await?;
    let ingresses = fleet.ingress_controller().await?;
    let scene = Scene::start(&fleet.karmada, &fleet.gateway, "karmada").await?;
    scene.drain(&fleet.served).await?;
    scene.uncordon().await?;
    fleet.serves(&MEMBERS).await?;
    scene.ends_well().await?;
    remedies.stop().await?;
    ingresses.stop().await
}

/// Case T26: on a hub, where the placement leaves member1, too, and comes back.
async fn hub_drain_loses_no_request(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&MEMBERS)?;
    let site = Site::start(server, 3).await?;
    let scene = Scene::start(&site.stage.fleet.hub, &site.gateway, "placement").await?;
    scene.drain(&site.served).await?;
    site.has_left(Member(1)).await?;
    scene.uncordon().await?;
    site.run_pod(Member(1)).await?;
    site.serves_everywhere().await?;
    scene.ends_well().await?;
    site.stop().await
}

mod with_tools {
    use pipeline_tests::on_both;

    use super::{hub_drain_loses_no_request, karmada_drain_loses_no_request};

    on_both!(long: karmada_drain_loses_no_request, hub_drain_loses_no_request);
}
