//! Our programs, but the agents of nodes: each with its own flags, in this process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use clap::Parser;
use karmada_api::condition::{DNS_READY, FALSE};
use karmada_runtime::program::{Identity, Program, StartError};
use lab_parts::dns::KUBERNETES;
use lab_parts::port::ReservedPort;
use lab_parts::thresholds::ProbeTiming;
use tracing::Instrument;

use crate::apis::HUB;
use crate::network::{HEALTHZ, Pod};

/// Starts those of the control plane. `karmada` and `gateway` are kubeconfigs.
pub(crate) async fn start(karmada: &Path, gateway: &Path) -> Result<[Program; 6]> {
    let served = [
        flag("--provider", "kubernetes"),
        flag("--gateway-kubeconfig", gateway),
    ];
    let remedy = own_flags(remedy_controller::NAME, karmada);
    let remedy = remedy_controller::Args::try_parse_from(remedy)?;
    let ingress = own_flags(ingress_controller::NAME, karmada).chain(served);
    let ingress = ingress_controller::Args::try_parse_from(ingress)?;
    let propagation = own_flags(propagation_controller::NAME, karmada);
    let propagation = propagation_controller::Args::try_parse_from(propagation)?;
    let schedule = own_flags(scheduler::NAME, karmada).chain(["--evict-untolerated".into()]);
    let schedule = scheduler::Args::try_parse_from(schedule)?;
    let execution = own_flags(execution_controller::NAME, karmada);
    let execution = execution_controller::Args::try_parse_from(execution)?;
    let taints = ["NoSchedule", "NoExecute"].map(|effect| {
        let taint = format!("{DNS_READY}={FALSE}:{effect}");
        flag("--taint-on-condition", taint)
    });
    let clusters = own_flags(cluster_controller::NAME, karmada).chain(taints);
    let clusters = cluster_controller::Args::try_parse_from(clusters)?;
    Ok([
        started(remedy_controller::IDENTITY, async |program| {
            remedy_controller::start(remedy, program).await
        })
        .await?,
        started(ingress_controller::IDENTITY, async |program| {
            ingress_controller::start(ingress, program).await
        })
        .await?,
        started(propagation_controller::IDENTITY, async |program| {
            propagation_controller::start(propagation, program).await
        })
        .await?,
        started(scheduler::IDENTITY, async |program| {
            scheduler::start(schedule, program).await
        })
        .await?,
        started(execution_controller::IDENTITY, async |program| {
            execution_controller::start(execution, program).await
        })
        .await?,
        started(cluster_controller::IDENTITY, async |program| {
            cluster_controller::start(clusters, program).await
        })
        .await?,
    ])
}

/// The time after which a placed object that is not available has failed: that of the store's Deployment.
const PROGRESS_DEADLINE: &str = "5s";

/// Starts those that place the hub's objects. The contexts of `kubeconfig` are the hub and the members.
pub(crate) async fn start_placement<'a>(
    kubeconfig: &Path,
    members: impl Iterator<Item = &'a String>,
) -> Result<Vec<Program>> {
    let controller = own_flags(placement_controller::NAME, kubeconfig);
    let controller = controller.chain([
        flag("--context", HUB),
        flag(
            "--taint-on-condition",
            format!("{DNS_READY}={FALSE}:NoSchedule"),
        ),
        flag("--progress-deadline", PROGRESS_DEADLINE),
    ]);
    let controller = placement_controller::Args::try_parse_from(controller)?;
    let mut programs = vec![
        started(placement_controller::IDENTITY, async |program| {
            placement_controller::start(controller, program).await
        })
        .await?,
    ];
    for member in members {
        let agent = own_flags(placement_agent::NAME, kubeconfig).chain([
            flag("--context", member),
            flag("--cluster-name", member),
            flag("--hub-kubeconfig", kubeconfig),
            flag("--hub-context", HUB),
        ]);
        let agent = placement_agent::Args::try_parse_from(agent)?;
        let agent = started(placement_agent::IDENTITY, async |program| {
            placement_agent::start(agent, program).await
        });
        programs.push(agent.await?);
    }
    Ok(programs)
}

/// Starts an agent that reports the health of a member to the hub; the agents of its nodes report to Karmada.
pub(crate) async fn start_reporter(
    kubeconfig: &Path,
    member: &str,
    nameserver: SocketAddr,
    thresholds: ProbeTiming,
) -> Result<Program> {
    let flags = [
        cluster_health_agent::NAME.into(),
        flag("--karmada-kubeconfig", kubeconfig),
        flag("--karmada-context", HUB),
        flag("--cluster-name", member),
        flag("--cluster-kind", "MemberCluster"),
        flag("--host-name", format!("{member}-node1")),
        flag("--listen-address", "127.0.0.1:0"),
        flag("--nameserver", nameserver.to_string()),
        flag("--probe-name", KUBERNETES),
        flag("--leader-elect", "false"),
    ];
    let flags = flags
        .into_iter()
        .chain(thresholds.flags().map(OsString::from));
    let args = cluster_health_agent::Args::try_parse_from(flags)?;
    started(cluster_health_agent::IDENTITY, async |program| {
        cluster_health_agent::start(args, program).await
    })
    .await
}

/// Starts the agents on the two nodes of the gateway, which request the health check of each member's pod. Each listens on
/// the port beside it.
pub(crate) async fn start_gateway_agents(
    kubeconfig: &Path,
    pods: &[Pod],
    thresholds: ProbeTiming,
) -> Result<Vec<(Program, ReservedPort)>> {
    let ports = [ReservedPort::reserve()?, ReservedPort::reserve()?];
    let addresses = ports.each_ref().map(ReservedPort::address);
    let mut agents = Vec::new();
    for (nth, port) in ports.into_iter().enumerate() {
        let own = port.address();
        let mut flags = vec![
            cluster_health_agent::NAME.into(),
            flag("--karmada-kubeconfig", kubeconfig),
            "--detectors=reachability".into(),
            flag("--reachability-http", format!("shop.example.com{HEALTHZ}")),
            flag("--host-name", format!("gateway-node{}", nth + 1)),
            flag("--listen-address", own.to_string()),
        ];
        let peers = addresses.iter().filter(|peer| **peer != own);
        flags.extend(peers.map(|peer| flag("--peer", peer.to_string())));
        flags.extend(pods.iter().map(|Pod { cluster, socket }| {
            flag("--reachability-address", format!("{cluster}={socket}"))
        }));
        flags.extend(thresholds.flags().map(OsString::from));
        let args = cluster_health_agent::Args::try_parse_from(flags)?;
        let agent = started_at(own, cluster_health_agent::IDENTITY, async |program| {
            cluster_health_agent::start(args, program).await
        });
        agents.push((agent.await?, port));
    }
    Ok(agents)
}

/// Returns the name and the flags that every program has.
fn own_flags(name: &str, kubeconfig: &Path) -> impl Iterator<Item = OsString> + use<> {
    let flags = [
        flag("--kubeconfig", kubeconfig),
        flag("--listen-address", "127.0.0.1:0"),
    ];
    [name.into()].into_iter().chain(flags)
}

async fn started(
    identity: Identity,
    start: impl AsyncFnOnce(&mut Program) -> Result<(), StartError>,
) -> Result<Program> {
    started_at(([127, 0, 0, 1], 0).into(), identity, start).await
}

async fn started_at(
    address: SocketAddr,
    identity: Identity,
    start: impl AsyncFnOnce(&mut Program) -> Result<(), StartError>,
) -> Result<Program> {
    let mut program = Program::new(identity, address);
    let span = tracing::error_span!("controller", name = identity.name);
    async {
        start(&mut program).await?;
        let address = program.serve()?;
        tracing::info!(%address, "Started");
        Ok::<_, StartError>(())
    }
    .instrument(span)
    .await?;
    Ok(program)
}

/// Runs a program until it ends.
pub(crate) async fn live(program: Program) {
    let name = program.identity.name;
    let clean = program
        .run_until(async || std::future::pending().await)
        .await;
    tracing::error!(name, clean, "A program ended unexpectedly");
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(value);
    flag
}
