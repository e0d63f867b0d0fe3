//! The agents on a gateway's nodes: whether connections from there reach each member, and the consequences.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{Timestamp, ToSpan};
use karmada_api::{
    condition::{GATEWAY_REPORTER_READY, REACHABLE, REPORTER_READY, REPORTER_SILENT_REASON},
    execution_namespace,
};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    backend::HttpBackend,
    control_plane::ApiKind,
    fleet::{Fleet, GATEWAY_AGENT, GATEWAY_CLASS, HOST, Member, PROXY, on_failure_of},
    manifests, netns,
    programs::{Profile, Running},
    relay::Relay,
    traefik::Traefik,
    traffic::{LEFT_AFTER, Traffic, reaches},
};
use serde_json::json;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const NODES: [&str; 2] = ["g1", "g2"];
/// The account of a member's agents.
const AGENT: &str = "cluster-health-agent";

/// Traefik collects changes for so long (`providers.providersThrottleDuration`).
const TRAEFIK_DELAY: Duration = Duration::from_secs(2);
/// The allowance after the threshold and a period until a block is seen: 1 s for the round that completes it, and the rest for
/// a busy machine.
const ALLOWANCE: Duration = Duration::from_secs(20);

/// Two members behind a gateway of two nodes, and a Remedy that blocks unreachable members.
struct Stage {
    fleet: Fleet,
    agents: Vec<Running>,
    controllers: [Running; 2],
    backends: Vec<HttpBackend>,
}

fn address(node: usize) -> SocketAddr {
    let last = [101, 102][node];
    (Ipv4Addr::new(10, 244, 0, last), 8080).into()
}

impl Stage {
    async fn without_agents(server: ApiKind) -> Result<Self> {
        Fleet::lay_network(&MEMBERS)?;
        let fleet = Fleet::with_members(server, Profile::Debug, &MEMBERS).await?;
        manifests::apply(&fleet.karmada.client(), "karmada/gateway-agent.yaml").await?;
        manifests::apply(&fleet.gateway.client(), "gateway/reachability/rights.yaml").await?;
        let remedy = on_failure_of(REACHABLE);
        fleet.create_remedy("unreachable", remedy).await?;
        let mut backends = Vec::new();
        for member in MEMBERS {
            backends.push(HttpBackend::start(member.backend(), &member.name()).await?);
        }
        let grace = ["--reporter-grace-period=1s"];
        let controllers = [
            fleet.remedy_controller_with(&grace).await?,
            fleet
                .ingress_controller_with(&["--keep-blocked-endpoints"])
                .await?,
        ];
        fleet.serves(&MEMBERS).await?;
        Ok(Self {
            fleet,
            agents: Vec::new(),
            controllers,
            backends,
        })
    }

    /// Starts the agents of the gateway, with a kubeconfig or their own, and waits until they reach both members.
    async fn start_agents(&mut self, timing: ProbeTiming, kubeconfig: Option<&Path>) -> Result<()> {
        let fleet = &self.fleet;
        for (node, name) in NODES.into_iter().enumerate() {
            let own = address(node);
            netns::add_address(own.ip())?;
            let mut flags: Vec<String> = timing.flags().into();
            flags.push(format!("--peer={}", address(1 - node).ip()));
            let agent = match kubeconfig {
                Some(given) => {
                    let given = given.to_owned();
                    fleet.gateway_agent_with(name, own, given, &flags).await?
                }
                None => fleet.gateway_agent(name, own, &flags).await?,
            };
            self.agents.push(agent);
        }
        for member in MEMBERS {
            self.has(member, REACHABLE, "True", "").await?;
            self.has(member, GATEWAY_REPORTER_READY, "True", "").await?;
        }
        Ok(())
    }

    /// Has users send requests to both members through a real Traefik.
    async fn traffic(&self) -> Result<(Traefik, Traffic)> {
        let access = self.fleet.proxy_access().await?;
        let proxy = Traefik::start(PROXY.parse()?, &access, Some(GATEWAY_CLASS)).await?;
        reaches(proxy.address(), HOST, &MEMBERS.map(Member::name)).await?;
        let traffic = Traffic::start(proxy.address(), HOST);
        Ok((proxy, traffic))
    }

    /// Writes a kubeconfig for an account whose token ends soon, and returns its path.
    async fn short_lived_access(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let karmada = &self.fleet.karmada;
        let now = Timestamp::now();
        // The API server grants a minute beyond the end.
        let life = [now - 1.minutes(), now + 20.seconds()];
        let token = karmada.account_token(namespace, name, life).await?;
        let authority = karmada.authority().map(|it| BASE64_STANDARD.encode(it));
        let cluster = json!({ "server": karmada.url(), "certificate-authority-data": authority });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "k",
            "clusters": [{ "name": "k", "cluster": cluster }],
            "users": [{ "name": "k", "user": { "token": token } }],
            "contexts": [{ "name": "k", "context": { "cluster": "k", "user": "k" } }],
        });
        let path = karmada.kubeconfig_path();
        let path = path.with_file_name(format!("{namespace}-{name}.short-lived"));
        fs::write(&path, kubeconfig.to_string())?;
        Ok(path)
    }

    /// Checks that neither member is blocked, and that both have got requests since `since` of which none failed.
    async fn serves_on(&self, traffic: &Traffic, since: Instant) -> Result<()> {
        for member in MEMBERS {
            self.has(member, REACHABLE, "True", "").await?;
            self.fleet.has_actions(member, &[]).await?;
            traffic.first_to(&member.name(), Instant::now()).await?;
        }
        self.fleet.serves(&MEMBERS).await?;
        let all = traffic.counts_since(since);
        ensure!(all.failed() == 0, "requests failed: {all}");
        Ok(())
    }

    /// Waits until a condition of a member has this status, and this text in its reason or message.
    async fn has(&self, member: Member, kind: &str, status: &str, text: &str) -> Result<()> {
        let told = self.fleet.tells(member, kind, status, text);
        told.await.map(drop)
    }

    /// Takes the power of member1: its backend is gone, and its address with it.
    fn power_off(&mut self) -> Result<()> {
        self.backends.remove(0);
        netns::remove_address(Member(1).backend().ip())
    }

    async fn stop(self) -> Result<()> {
        for program in self.agents.into_iter().chain(self.controllers) {
            program.stop().await?;
        }
        Ok(())
    }
}

/// Case T4: at default thresholds, power fails in a member behind a real Traefik: 36 s and a write later, no request is sent there.
#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn powerless_member_gets_no_request(server: ApiKind) -> Result<()> {
    let timing = ProbeTiming::DEFAULT;
    let mut stage = Stage::without_agents(server).await?;
    stage.start_agents(timing, None).await?;
    let (_proxy, traffic) = stage.traffic().await?;
    let off = Instant::now();
    stage.power_off()?;
    stage.fleet.serves(&[Member(2)]).await?;
    let took = off.elapsed();
    println!("blocked {took:.1?} after the power failed");
    let limit = timing.threshold + timing.period + ALLOWANCE;
    ensure!(took <= limit, "blocked only after {took:?}");
    let gone = Instant::now() + TRAEFIK_DELAY;
    let after = traffic.next(LEFT_AFTER, gone).await?;
    let requests = (after.to("member1"), after.failed());
    ensure!(requests == (0, 0), "requests go to member1: {after}");
    stage.stop().await
}

/// Case T5: the link between the control plane and a member is cut, whose own agent lives and can report nothing: nobody is blocked, no
/// request fails, and with the link its report is back.
async fn cut_link_moves_no_request(server: ApiKind) -> Result<()> {
    let mut stage = Stage::without_agents(server).await?;
    stage.start_agents(ProbeTiming::DEFAULT, None).await?;
    let (_proxy, traffic) = stage.traffic().await?;
    let own = stage.fleet.dns(Member(1)).await?;
    let link = Relay::start(stage.fleet.karmada.address()).await?;
    let flags = ProbeTiming::DEFAULT.flags();
    let agent = stage.fleet.agent_through(&link, Member(1), &flags).await?;
    stage.has(Member(1), REPORTER_READY, "True", "").await?;
    let cut = Instant::now();
    link.set_silent(true);
    stage
        .has(Member(1), REPORTER_READY, "False", REPORTER_SILENT_REASON)
        .await?;
    stage.serves_on(&traffic, cut).await?;
    link.set_silent(false);
    stage.has(Member(1), REPORTER_READY, "True", "").await?;
    agent.stop().await?;
    drop(own);
    stage.stop().await
}

/// Case T6: the tokens of all agents end, those of the gateway and that of a member: all verdicts are stale and stand, and no request
/// fails.
async fn ended_tokens_move_no_request(server: ApiKind) -> Result<()> {
    let mut stage = Stage::without_agents(server).await?;
    let (_proxy, traffic) = stage.traffic().await?;
    let own = stage.fleet.dns(Member(1)).await?;
    let namespace = execution_namespace(&Member(1).name());
    let access = stage.short_lived_access(&namespace, AGENT).await?;
    let flags = ProbeTiming::SHORT.flags();
    let agent = stage.fleet.agent_with(Member(1), access, &flags).await?;
    stage.has(Member(1), REPORTER_READY, "True", "").await?;
    let access = stage
        .short_lived_access("karmada-system", GATEWAY_AGENT)
        .await?;
    stage
        .start_agents(ProbeTiming::SHORT, Some(&access))
        .await?;
    let alive = Instant::now();
    let silent = REPORTER_SILENT_REASON;
    stage
        .has(Member(1), REPORTER_READY, "False", silent)
        .await?;
    for member in MEMBERS {
        stage
            .has(member, GATEWAY_REPORTER_READY, "False", silent)
            .await?;
    }
    stage.serves_on(&traffic, alive).await?;
    // They cannot give their leases back.
    for agent in std::mem::take(&mut stage.agents).into_iter().chain([agent]) {
        agent.kill().await?;
    }
    drop(own);
    stage.stop().await
}

// On one API only: the embedded one has no tokens, and default thresholds take most of a minute.
mod with_tools {
    use pipeline_tests::{both, control_plane::ApiKind, test_name};

    #[test]
    #[ignore = "long"]
    fn powerless_member_gets_no_request() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::powerless_member_gets_no_request,
        );
    }

    #[test]
    #[ignore = "long"]
    fn cut_link_moves_no_request() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::cut_link_moves_no_request,
        );
    }

    #[test]
    #[ignore = "long"]
    fn ended_tokens_move_no_request() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::ended_tokens_move_no_request,
        );
    }
}
