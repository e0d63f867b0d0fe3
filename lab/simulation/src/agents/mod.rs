//! A thousand agents of one cluster: real ones, on loopback addresses of their own, with a DNS server
//! of the simulation and a Karmada API in memory. The leader is the program as clusters run it, in a
//! process of its own, so that its memory and CPU time can be measured.
//!
//! The results depend on this machine and its load, and none of them is checked.

pub mod addresses;
pub mod apis;
pub mod figures;
pub mod leader;
pub mod limits;
mod nodes;
mod options;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab_parts::dns::{DnsServer, KUBERNETES_IP, Response};
use lab_parts::port::ReservedPort;
use tokio::time::{Instant, sleep, timeout};

use self::apis::Apis;
use self::figures::{Figures, millis, seconds};
use self::leader::Leader;
use self::nodes::Nodes;
pub use self::options::Options;
use self::options::{POLL, TIMEOUT};

/// The response of the cluster's DNS server while it works.
pub const WORKING_DNS: Response = Response::Ipv4(KUBERNETES_IP);

/// Runs the simulation and passes each line of its results to `print`.
///
/// # Errors
/// A part does not start, or an expected change does not arrive in time.
pub async fn run(options: &Options, mut print: impl FnMut(&str)) -> Result<()> {
    ensure!(options.nodes >= 2, "--nodes must be at least 2");
    limits::raise_open_files(options.nodes)?;
    // Installing fails only if the process has a provider already, which then serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let dns = DnsServer::start(WORKING_DNS).await?;
    // The port is reserved on 127.0.0.1, and so most likely free on the agents' loopback addresses.
    let reserved = ReservedPort::reserve()?;
    let port = reserved.address().port();
    print(&format!(
        "{} nodes, a round every {}, thresholds of {}, {} cores; measured, not checked",
        options.nodes,
        seconds(options.period),
        seconds(options.threshold),
        std::thread::available_parallelism().map_or(1, usize::from),
    ));
    start_at_once(options, &dns, port, &mut print).await?;
    lead(options, &dns, port, &mut print).await
}

/// Starts all agents at once and waits for the first verdict.
async fn start_at_once(
    options: &Options,
    dns: &DnsServer,
    port: u16,
    print: &mut impl FnMut(&str),
) -> Result<()> {
    let apis = Apis::start(options.nodes, port).await?;
    let begun = Instant::now();
    let nodes = Nodes::start(options, &apis, dns.address(), port, 0..options.nodes)?;
    let started = begun.elapsed();
    apis.verdict(true, TIMEOUT).await?;
    let verdict = begun.elapsed();
    sleep(options.rest).await;
    let karmada = apis.karmada.figures();
    print(&format!(
        "all agents started at once (in {}): verdict True after {}; Karmada API within {}: {karmada}",
        seconds(started),
        seconds(verdict),
        seconds(begun.elapsed()),
    ));
    nodes.stop().await;
    Ok(())
}

/// Starts a leader and then all other agents, breaks and repairs DNS, and stops the leader.
async fn lead(
    options: &Options,
    dns: &DnsServer,
    port: u16,
    print: &mut impl FnMut(&str),
) -> Result<()> {
    // The leader starts alone: an agent that knows many peers waits longer before it campaigns.
    let apis = Apis::start(1, port).await?;
    let leader = Leader::start(options, &apis, dns.address(), port)?;
    leader.metric("lease_holder").reaches(1.0).await?;
    let alone = leader.memory()?;
    apis.list(1..options.nodes, port).await?;
    let nodes = Nodes::start(options, &apis, dns.address(), port, 1..options.nodes)?;
    let all = f64::from(options.nodes);
    leader
        .metric("nodes{answer=\"healthy\"}")
        .reaches(all)
        .await?;
    apis.verdict(true, TIMEOUT + options.threshold).await?;
    // Votes are final one threshold after the agents' first responses.
    sleep(options.threshold + options.period).await;

    at_rest(options, &apis, &leader, alone, print).await?;

    for (works, turn) in [(false, "breaks"), (true, "heals")] {
        let before = (leader.usage().await?, apis.karmada.figures());
        let turned = Instant::now();
        dns.set(if works { WORKING_DNS } else { Response::Drop });
        apis.verdict(works, TIMEOUT + options.threshold).await?;
        let took = turned.elapsed();
        let after = (leader.usage().await?, apis.karmada.figures());
        let used = after.0 - before.0;
        let bound = options.threshold + options.period + Duration::from_secs(1);
        print(&format!(
            "DNS {turn}: verdict {} after {} (threshold + period + 1 s = {}); leader: {} of CPU time, {} requests to peers; Karmada API: {}",
            if works { "True" } else { "False" },
            seconds(took),
            seconds(bound),
            millis(used.cpu),
            used.peer_requests,
            after.1 - before.1,
        ));
    }

    hand_over(&apis, leader, print).await?;
    print(&format!("member API, in total: {}", apis.member.figures()));
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        // Other load on the machine makes every figure worse.
        print(&format!("load average of this machine: {}", load.trim()));
    }
    nodes.stop().await;
    Ok(())
}

/// Stops the leader and waits for its successor.
async fn hand_over(apis: &Apis, leader: Leader, print: &mut impl FnMut(&str)) -> Result<()> {
    let memory = leader.memory()?;
    let before = apis.karmada.figures();
    let stopped = Instant::now();
    let holder = apis.holder().await?;
    leader.stop().await?;
    let ended = stopped.elapsed();
    let handed = async {
        while apis.holder().await? == holder || apis.holder().await?.is_empty() {
            sleep(POLL).await;
        }
        anyhow::Ok(())
    };
    timeout(TIMEOUT, handed)
        .await
        .context("no agent took over the lease")??;
    print(&format!(
        "leader stopped ({} MiB at the end): exited after {}, succeeded after {}; Karmada API: {}",
        mebibytes(memory),
        seconds(ended),
        seconds(stopped.elapsed()),
        apis.karmada.figures() - before,
    ));
    Ok(())
}

/// Measures the leader and the Karmada API while nothing changes.
async fn at_rest(
    options: &Options,
    apis: &Apis,
    leader: &Leader,
    alone: u64,
    print: &mut impl FnMut(&str),
) -> Result<()> {
    let before = (leader.usage().await?, apis.karmada.figures());
    let begun = Instant::now();
    sleep(options.rest).await;
    let used = leader.usage().await? - before.0;
    let took = begun.elapsed();
    let periods = took.as_secs_f64() / options.period.as_secs_f64();
    let each = used.cpu.div_f64(periods);
    print(&format!(
        "at rest for {}: leader: {} of CPU time per period ({} per 100 nodes), {} MiB resident ({} MiB without peers), {} requests to peers",
        seconds(took),
        millis(each),
        millis(each.mul_f64(100.0 / f64::from(options.nodes))),
        mebibytes(leader.memory()?),
        mebibytes(alone),
        used.peer_requests,
    ));
    let karmada: Figures = apis.karmada.figures() - before.1;
    print(&format!("at rest: Karmada API: {karmada}"));
    Ok(())
}

/// Formats a size in KiB as MiB with one decimal.
pub fn mebibytes(kibibytes: u64) -> String {
    let (whole, rest) = (kibibytes / 1024, kibibytes % 1024);
    format!("{whole}.{}", rest * 10 / 1024)
}
