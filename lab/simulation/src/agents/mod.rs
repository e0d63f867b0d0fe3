//! A thousand agents of one cluster: all of them real, on loopback addresses of their own, asking a
//! DNS server of the simulation's and a Karmada API in memory. The one that leads is the program as
//! users run it, in a process of its own, so that its memory and CPU time are its own.
//!
//! What comes out are figures, on the machine and in the company they were measured in. None is checked.

mod apis;
mod bench;
mod figures;
mod leader;
mod limits;
mod nodes;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab_parts::dns::{DnsServer, KUBERNETES, KUBERNETES_IP, Response};
use lab_parts::port::ReservedPort;
use lab_parts::thresholds::Thresholds;
use tokio::time::{Instant, sleep, timeout};

use self::apis::{Apis, CLUSTER};
pub use self::bench::{Bench, bench};
use self::figures::{Figures, millis, seconds};
use self::leader::Leader;
use self::nodes::Nodes;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many nodes the cluster has.
    pub nodes: u16,
    /// How often each asks DNS.
    pub period: Duration,
    /// How long DNS must fail, or work again, until a node votes so.
    pub threshold: Duration,
    /// For how long to watch the cluster at rest.
    pub rest: Duration,
    /// The agent's binary that is to lead.
    pub binary: PathBuf,
}

/// Nothing takes longer than this beyond what the thresholds take.
const PATIENCE: Duration = Duration::from_mins(2);
/// How every [`pod_ip`] begins in JSON.
const PODS: &str = "\"10.77.";
/// How every [`address`] begins in JSON.
const LISTENING: &str = "\"127.77.";
/// The cluster's DNS while it works.
const WORKING_DNS: Response = Response::Ipv4(KUBERNETES_IP);
/// Between two looks at something that cannot be watched.
const POLL: Duration = Duration::from_millis(20);

impl Options {
    /// The flags that every agent has.
    fn flags(&self, dns: SocketAddr) -> Vec<String> {
        let thresholds = Thresholds {
            period: self.period,
            threshold: self.threshold,
        };
        let mut flags = vec![
            format!("--cluster-name={CLUSTER}"),
            format!("--nameserver={dns}"),
            // A full name: the search list of this machine does not matter.
            format!("--probe-name={KUBERNETES}"),
        ];
        flags.extend(thresholds.flags());
        flags
    }
}

/// Runs the simulation, and gives each line of what comes out to `tell`. It ends by itself.
///
/// # Errors
/// When something does not start, or what must happen does not.
pub async fn run(options: &Options, mut tell: impl FnMut(&str)) -> Result<()> {
    ensure!(options.nodes >= 2, "--nodes must be at least 2");
    limits::raise_open_files(options.nodes)?;
    // An error only says that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let dns = DnsServer::start(WORKING_DNS).await?;
    // Reserved on 127.0.0.1, and so likely free on the agents' loopback addresses.
    let reserved = ReservedPort::reserve()?;
    let port = reserved.address().port();
    tell(&format!(
        "{} nodes, a round every {}, thresholds {}; {} cores; figures, not limits",
        options.nodes,
        seconds(options.period),
        seconds(options.threshold),
        std::thread::available_parallelism().map_or(1, usize::from),
    ));
    start_at_once(options, &dns, port, &mut tell).await?;
    lead(options, &dns, port, &mut tell).await
}

/// All agents start in the same moment, and nobody leads.
async fn start_at_once(
    options: &Options,
    dns: &DnsServer,
    port: u16,
    tell: &mut impl FnMut(&str),
) -> Result<()> {
    let apis = Apis::start(options.nodes, port).await?;
    let begun = Instant::now();
    let nodes = Nodes::start(options, &apis, dns.address(), port, 0..options.nodes).await?;
    let started = begun.elapsed();
    apis.verdict(true, PATIENCE).await?;
    let verdict = begun.elapsed();
    sleep(options.rest).await;
    let karmada = apis.karmada.figures();
    tell(&format!(
        "all agents start at once (in {}): verdict True after {}; Karmada API in {}: {karmada}",
        seconds(started),
        seconds(verdict),
        seconds(begun.elapsed()),
    ));
    nodes.stop().await;
    Ok(())
}

/// One agent leads, all others are there; DNS breaks and heals, then the leader leaves.
async fn lead(
    options: &Options,
    dns: &DnsServer,
    port: u16,
    tell: &mut impl FnMut(&str),
) -> Result<()> {
    // One that knows of many others would let them go first.
    let apis = Apis::start(1, port).await?;
    let leader = Leader::start(options, &apis, dns.address(), port)?;
    leader.metric("lease_holder").reaches(1.0).await?;
    let alone = leader.memory()?;
    apis.list(1..options.nodes, port).await?;
    let nodes = Nodes::start(options, &apis, dns.address(), port, 1..options.nodes).await?;
    let all = f64::from(options.nodes);
    leader
        .metric("nodes{answer=\"healthy\"}")
        .reaches(all)
        .await?;
    apis.verdict(true, PATIENCE + options.threshold).await?;
    // The agents' votes settle a threshold after their first answers.
    sleep(options.threshold + options.period).await;

    at_rest(options, &apis, &leader, alone, tell).await?;

    for (works, turn) in [(false, "breaks"), (true, "heals")] {
        let before = (leader.usage().await?, apis.karmada.figures());
        let turned = Instant::now();
        dns.set(if works { WORKING_DNS } else { Response::Drop });
        apis.verdict(works, PATIENCE + options.threshold).await?;
        let took = turned.elapsed();
        let after = (leader.usage().await?, apis.karmada.figures());
        let used = after.0 - before.0;
        let bound = options.threshold + options.period + Duration::from_secs(1);
        tell(&format!(
            "DNS {turn}: verdict {} after {} (threshold + period + 1 s = {}); leader: {} CPU, {} questions to peers; Karmada API: {}",
            if works { "True" } else { "False" },
            seconds(took),
            seconds(bound),
            millis(used.cpu),
            used.questions,
            after.1 - before.1,
        ));
    }

    hand_over(&apis, leader, tell).await?;
    tell(&format!("member API, over all: {}", apis.member.figures()));
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        // Others on the machine make every figure worse.
        tell(&format!("load averages of this machine: {}", load.trim()));
    }
    nodes.stop().await;
    Ok(())
}

/// The leader leaves, and another takes its place.
async fn hand_over(apis: &Apis, leader: Leader, tell: &mut impl FnMut(&str)) -> Result<()> {
    let memory = leader.memory()?;
    let before = apis.karmada.figures();
    let told = Instant::now();
    let holder = apis.holder().await?;
    leader.stop().await?;
    let ended = told.elapsed();
    let handed = async {
        while apis.holder().await? == holder || apis.holder().await?.is_empty() {
            sleep(POLL).await;
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, handed)
        .await
        .context("nobody took the lease over")??;
    tell(&format!(
        "leader stops ({} MiB at the end): gone after {}, another leads after {}; Karmada API: {}",
        mebibytes(memory),
        seconds(ended),
        seconds(told.elapsed()),
        apis.karmada.figures() - before,
    ));
    Ok(())
}

async fn at_rest(
    options: &Options,
    apis: &Apis,
    leader: &Leader,
    alone: u64,
    tell: &mut impl FnMut(&str),
) -> Result<()> {
    let before = (leader.usage().await?, apis.karmada.figures());
    let begun = Instant::now();
    sleep(options.rest).await;
    let used = leader.usage().await? - before.0;
    let took = begun.elapsed();
    let periods = took.as_secs_f64() / options.period.as_secs_f64();
    let each = used.cpu.div_f64(periods);
    tell(&format!(
        "at rest for {}: leader {} CPU a period ({} per 100 nodes), {} MiB resident ({} MiB before it had peers), {} questions to peers",
        seconds(took),
        millis(each),
        millis(each.mul_f64(100.0 / f64::from(options.nodes))),
        mebibytes(leader.memory()?),
        mebibytes(alone),
        used.questions,
    ));
    let karmada: Figures = apis.karmada.figures() - before.1;
    tell(&format!("at rest: Karmada API: {karmada}"));
    Ok(())
}

fn mebibytes(kibibytes: u64) -> String {
    let (whole, rest) = (kibibytes / 1024, kibibytes % 1024);
    format!("{whole}.{}", rest * 10 / 1024)
}

/// Where the agent of a node listens: on loopback, which an API server takes for no endpoint. So the API
/// knows the agent by [`pod_ip`], and its answers are made to say [`LISTENING`] in place of [`PODS`].
fn address(node: u16, port: u16) -> SocketAddr {
    let [high, low] = node.to_be_bytes();
    (Ipv4Addr::new(127, 77, high, low), port).into()
}

/// The address of a node's agent, as the API knows it.
fn pod_ip(node: u16) -> Ipv4Addr {
    let [high, low] = node.to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// The name of a node.
fn name(node: u16) -> String {
    format!("n{node:04}")
}
