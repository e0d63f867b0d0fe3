//! Five hundred requests a second to a hundred ingresses through real proxies, while a cluster is blocked and released.

use std::{
    convert::Infallible,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use pipeline_tests::{
    backend::HttpBackend,
    control_plane::ApiKind,
    fleet::{Fleet, GATEWAY_CLASS, INGRESS, Member, PROXY, isolated, maintenance},
    haproxy::Haproxy,
    programs::{Profile, Running},
    relay::Relay,
    traefik::Traefik,
    traffic::{Load, Traffic, reaches},
};
use tokio::time::sleep;
use tools::definitions;

use crate::gateway_api;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const INGRESSES: usize = 100;
/// The number of times that member1 is blocked and released.
const ROUNDS: usize = 20;
const RATE: u32 = 500;
/// Connections beside those, whose requests take seconds.
const HELD: u32 = 8;
/// Requests that must all go elsewhere once member1 is blocked: those of a second.
const WHILE_BLOCKED: usize = 500;
/// Requests that are sent in each round while the gateway's API is silent: those of three seconds, which is a minute in all.
const WHILE_SILENT: usize = 1_500;
/// The time that a controller lives, in milliseconds, where it is killed at random.
const LIFE: std::ops::Range<u64> = 500..5_000;

/// Traefik collects changes for two seconds (`providers.providersThrottleDuration`), and then makes the routers of all
/// ingresses anew, which takes it a part of a second on two cores.
const TRAEFIK_DELAY: Duration = Duration::from_secs(3);

/// The `--provider` of the controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Provider {
    Kubernetes,
    /// The same, where the proxy reaches no pod: `--backend-addresses=load-balancers`.
    LoadBalancers,
    GatewayApi,
    Haproxy,
}

/// A proxy, and how the controller leads it.
enum Proxy {
    Ingress { _process: Traefik },
    GatewayApi { _process: Traefik },
    Haproxy(Haproxy),
}

impl Proxy {
    async fn start(provider: Provider, fleet: &Fleet, ingresses: &[String]) -> Result<Self> {
        let address: SocketAddr = PROXY.parse()?;
        Ok(match provider {
            Provider::Kubernetes | Provider::LoadBalancers => {
                let access = fleet.proxy_access().await?;
                Self::Ingress {
                    _process: Traefik::start(address, &access, Some(GATEWAY_CLASS)).await?,
                }
            }
            Provider::GatewayApi => {
                gateway_api::write_gateway(fleet.gateway.client(), "All").await?;
                Self::GatewayApi {
                    _process: gateway_api::traefik(fleet).await?,
                }
            }
            Provider::Haproxy => Self::Haproxy(Haproxy::start(address, ingresses)?),
        })
    }
}

/// A fault on the way from the verdict to the proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The controller is killed at random, and started again.
    ControllerKilled,
    /// The gateway's API answers the controller nothing for a while, as each block begins.
    GatewaySilent,
    /// HAProxy is reloaded while member1 is blocked, and has lost its servers.
    ProxyReloaded,
}

/// The proxy of the requests.
struct Stage {
    fleet: Fleet,
    provider: Provider,
    proxy: Proxy,
    /// Before the gateway's API.
    relay: Relay,
    ingresses: Vec<String>,
    _remedies: Running,
    _backends: Vec<HttpBackend>,
}

impl Stage {
    /// Starts everything but the ingress controller.
    async fn start(fleet: Fleet, provider: Provider) -> Result<Self> {
        Fleet::lay_network(&MEMBERS)?;
        let mut backends = Vec::new();
        for member in MEMBERS {
            let mut address = member.backend();
            if provider == Provider::LoadBalancers {
                // A load balancer serves at the Service's port.
                address.set_port(80);
            }
            backends.push(HttpBackend::start(address, &member.name()).await?);
        }
        if provider == Provider::LoadBalancers {
            fleet.report_load_balancers(&MEMBERS).await?;
        }
        let mut ingresses = vec![INGRESS.to_owned()];
        for nth in 1..INGRESSES {
            let name = format!("shop{nth}");
            let host = host(&name);
            fleet.create_ingress_for(&name, "karmada-rs", &host).await?;
            ingresses.push(name);
        }
        Ok(Self {
            provider,
            proxy: Proxy::start(provider, &fleet, &ingresses).await?,
            relay: Relay::start(fleet.gateway.address()).await?,
            _remedies: fleet.remedy_controller().await?,
            _backends: backends,
            fleet,
            ingresses,
        })
    }

    async fn controller(&self, flags: &[&str]) -> Result<Running> {
        let fleet = &self.fleet;
        match &self.proxy {
            Proxy::Ingress { .. } if self.provider == Provider::LoadBalancers => {
                let addresses = ["--backend-addresses=load-balancers"];
                let flags = [&addresses, flags].concat();
                fleet.ingress_controller_with(&flags).await
            }
            Proxy::Ingress { .. } => fleet.ingress_controller_with(flags).await,
            Proxy::GatewayApi { .. } => fleet.ingress_controller_at_gateway(flags).await,
            Proxy::Haproxy(haproxy) => {
                let grace = ["--haproxy-drain-grace=1s"];
                let flags = [&grace, flags].concat();
                fleet
                    .ingress_controller_at_haproxy(&haproxy.socket(), &flags)
                    .await
            }
        }
    }

    /// Starts the controller again and again, and kills it at any time.
    async fn killed_at_random(&self) -> Result<Infallible> {
        loop {
            // A lease would be waited for by nobody but the next one.
            let controller = self.controller(&["--leader-elect=false"]).await?;
            sleep(Duration::from_millis(fastrand::u64(LIFE))).await;
            controller.kill().await?;
        }
    }

    /// Waits until the proxy has acknowledged that it is to send requests to these members, and to no other.
    async fn acknowledged(&self, members: &[Member]) -> Result<()> {
        match &self.proxy {
            Proxy::Ingress { .. } | Proxy::GatewayApi { .. } => self.fleet.serves(members).await,
            Proxy::Haproxy(haproxy) => {
                let addresses = members.iter().map(|member| member.backend());
                haproxy.becomes(&addresses.collect::<Vec<_>>()).await
            }
        }
    }

    /// Returns the time after the acknowledgement from which a proxy follows it, by its own documentation.
    fn delay(&self) -> Duration {
        match &self.proxy {
            Proxy::Ingress { .. } | Proxy::GatewayApi { .. } => TRAEFIK_DELAY,
            // Its Runtime API answers once the servers are changed.
            Proxy::Haproxy(_) => Duration::ZERO,
        }
    }

    /// Blocks and releases member1 again and again under load.
    #[expect(clippy::print_stdout, reason = "libtest captures it")]
    async fn rounds(&self, fault: Fault) -> Result<()> {
        let address: SocketAddr = PROXY.parse()?;
        let hosts: Vec<String> = self.ingresses.iter().map(|name| host(name)).collect();
        for host in &hosts {
            reaches(address, host, &MEMBERS.map(Member::name)).await?;
        }
        let load = Load {
            hosts,
            rate: RATE,
            held: HELD,
        };
        let traffic = Traffic::under(address, &load);
        let mut blocks = Vec::new();
        for round in 1..=ROUNDS {
            let blocked = self.round(&traffic, fault).await;
            blocks
                .push(blocked.with_context(|| format!("in round {round}: {}", traffic.counts()))?);
        }
        let all = traffic.counts();
        ensure!(all.failed() == 0, "requests failed: {all}");
        let finished = blocks.iter().map(|at| traffic.held_at(*at).to("member1"));
        let finished: u64 = finished.sum();
        ensure!(finished > 0, "no long request was under way at a block");
        println!("{all}; long requests to member1 at a block: {finished}");
        Ok(())
    }

    /// Blocks member1, and releases it. Returns the time of the acknowledgement.
    async fn round(&self, traffic: &Traffic, fault: Fault) -> Result<Instant> {
        let block = maintenance(Member(1));
        self.relay.set_silent(fault == Fault::GatewaySilent);
        self.fleet.create_remedy("maintenance", block).await?;
        if fault == Fault::GatewaySilent {
            traffic.next(WHILE_SILENT, Instant::now()).await?;
            self.relay.set_silent(false);
        }
        self.acknowledged(&[Member(2)]).await?;
        let blocked = Instant::now();
        if let (Proxy::Haproxy(haproxy), Fault::ProxyReloaded) = (&self.proxy, fault) {
            haproxy.reload()?;
            self.acknowledged(&[Member(2)]).await?;
        }
        let gone = Instant::now() + self.delay();
        let after = traffic.next(WHILE_BLOCKED, gone).await?;
        ensure!(after.to("member1") == 0, "member1 is blocked: {after}");
        let released = Instant::now();
        self.fleet.delete_remedy("maintenance").await?;
        traffic.first_to("member1", released).await?;
        Ok(blocked)
    }

    /// Tells the story under a fault.
    async fn tell(&self, fault: Fault) -> Result<()> {
        if fault == Fault::ControllerKilled {
            return tokio::select! {
                ended = self.killed_at_random() => match ended? {},
                told = self.rounds(fault) => told,
            };
        }
        let controller = if fault == Fault::GatewaySilent {
            self.fleet.ingress_controller_through(&self.relay).await?
        } else {
            self.controller(&[]).await?
        };
        self.rounds(fault).await?;
        controller.stop().await
    }
}

fn host(ingress: &str) -> String {
    format!("{ingress}.example.com")
}

/// Tells the story on real APIs, in a namespace of its own.
fn run(name: &str, provider: Provider, fault: Fault) {
    // They are downloaded outside, where there is a network.
    let definitions = match provider {
        Provider::GatewayApi => Some(definitions::gateway_api()),
        Provider::Kubernetes | Provider::LoadBalancers | Provider::Haproxy => None,
    };
    isolated(name, async move || {
        let fleet = match definitions {
            Some(definitions) => gateway_api::fleet(ApiKind::Real, &definitions?).await?,
            None => Fleet::with_members(ApiKind::Real, Profile::Debug, &MEMBERS).await?,
        };
        Stage::start(fleet, provider).await?.tell(fault).await
    });
}

/// In each: no request arrives at member1 once the proxy has acknowledged its block and had its own delay; over all rounds
/// none fails, and those that take seconds and are under way at a block are answered.
mod with_tools {
    use pipeline_tests::test_name;

    use super::{Fault, Provider, run};

    /// Case T1: Traefik, by Ingresses.
    #[test]
    #[ignore = "long"]
    fn blocked_ingresses_lose_nothing() {
        run(test_name!(), Provider::Kubernetes, Fault::None);
    }

    /// Case T1: Traefik, to the load balancers of members whose pods it does not reach.
    #[test]
    #[ignore = "long"]
    fn blocked_load_balancers_lose_nothing() {
        run(test_name!(), Provider::LoadBalancers, Fault::None);
    }

    /// Case T1: Traefik, by routes of the Gateway API.
    #[test]
    #[ignore = "long"]
    fn blocked_routes_lose_nothing() {
        run(test_name!(), Provider::GatewayApi, Fault::None);
    }

    /// Case T2: the controller is killed at random meanwhile. Its objects in a gateway cluster are the same for routes.
    #[test]
    #[ignore = "long"]
    fn kills_lose_no_ingress() {
        run(test_name!(), Provider::Kubernetes, Fault::ControllerKilled);
    }

    /// Case T2: the gateway's API is silent as each block begins, for a minute in all.
    #[test]
    #[ignore = "long"]
    fn silence_loses_no_ingress() {
        run(test_name!(), Provider::Kubernetes, Fault::GatewaySilent);
    }

    mod with_haproxy {
        use pipeline_tests::test_name;

        use super::{Fault, Provider, run};

        /// Case T1: HAProxy, by its Runtime API.
        #[test]
        #[ignore = "long"]
        fn drained_servers_lose_nothing() {
            run(test_name!(), Provider::Haproxy, Fault::None);
        }

        /// Case T2: the controller is killed at random meanwhile.
        #[test]
        #[ignore = "long"]
        fn kills_lose_no_server() {
            run(test_name!(), Provider::Haproxy, Fault::ControllerKilled);
        }

        /// Case T3: HAProxy is reloaded under each block, and has to be given all servers again.
        #[test]
        #[ignore = "long"]
        fn reloads_lose_nothing() {
            run(test_name!(), Provider::Haproxy, Fault::ProxyReloaded);
        }
    }
}
