//! The cost of an agent: memory and CPU time at rest, writes to either API, and the cost of leading for
//! each node. The limit is measured in the same run, in turns with the agent: a program with an agent's parts
//! that only holds a connection and queries DNS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use lab_parts::dns::DnsServer;
use lab_parts::port::ReservedPort;
use serde_json::json;
use simulation::agents::addresses::{address, name};
use simulation::agents::apis::{Apis, CLUSTER};
use simulation::agents::figures::seconds;
use simulation::agents::leader::Leader;
use simulation::agents::{self, WORKING_DNS, limits, mebibytes};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{ROUNDS, median};

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct AgentBench {
    /// The agent's binary.
    pub agent: PathBuf,
    /// The binary of the limit, the package `agent-baseline`.
    pub limit: PathBuf,
    /// The time for which each figure is taken.
    pub window: Duration,
    /// The numbers of nodes with which a leader is measured.
    pub nodes: Vec<u16>,
}

/// The period of a busy probe, whose CPU time can be measured in ticks.
const BUSY_PERIOD: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_secs(5);
/// The period of a leader: it polls its peers every second while a vote contradicts the verdict.
const LEADING_PERIOD: Duration = Duration::from_secs(1);
const THRESHOLD: Duration = Duration::from_secs(5);
/// The time after a start until memory no longer grows.
const WARM_UP: Duration = Duration::from_secs(15);

/// Runs the benchmark and passes each line of its results to `print`.
///
/// # Errors
/// A part does not start, or an expected change does not arrive in time.
pub async fn bench(options: &AgentBench, mut print: impl FnMut(&str)) -> Result<()> {
    limits::raise_open_files(options.nodes.iter().copied().max().unwrap_or(1))?;
    // Installing fails only if the process has a provider already, which then serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let dns = DnsServer::start(WORKING_DNS).await?;
    print("| at rest, a round every 5 s | limit: its parts | agent |");
    print("|---|---|---|");
    let programs = [&options.limit, &options.agent];
    let mut at_rest = [Vec::new(), Vec::new()];
    let mut busy = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (rounds, period) in [(&mut at_rest, PERIOD), (&mut busy, BUSY_PERIOD)] {
            for (rounds, binary) in rounds.iter_mut().zip(programs) {
                rounds.push(rest(options, binary, &dns, period).await?);
            }
        }
    }
    print(&format!(
        "| binary | {} MB | {} MB |",
        megabytes(&options.limit)?,
        megabytes(&options.agent)?
    ));
    print_medians(&at_rest, &busy, &mut print);
    print(&format!(
        "(medians of {ROUNDS} rounds, each extrapolated from {})",
        seconds(options.window)
    ));
    lead_many(options, &dns, &mut print).await
}

/// The name of a figure, and where it is.
type Figure = (&'static str, fn(&Used) -> u64);

/// Prints each figure of the limit and of the agent.
fn print_medians(at_rest: &[Vec<Used>; 2], busy: &[Vec<Used>; 2], print: &mut impl FnMut(&str)) {
    let memory: [Figure; 2] = [
        ("resident memory", |used| used.resident),
        ("anonymous memory", |used| used.anonymous),
    ];
    for (figure, of) in memory {
        let [limit, agent] = medians(at_rest, of).map(mebibytes);
        print(&format!("| {figure} | {limit} MiB | {agent} MiB |"));
    }
    let [limit, agent] = medians(busy, |used| used.cpu_of_thousand_rounds(BUSY_PERIOD));
    print(&format!(
        "| CPU time per 1,000 rounds, at 10 rounds per second | {limit:.0} ms | {agent:.0} ms |"
    ));
    let [limit, agent] = medians(at_rest, Used::cpu_per_hour);
    print(&format!(
        "| CPU time per hour | {limit:.1} s | {agent:.1} s |"
    ));
    let writes: [Figure; 3] = [
        ("writes per hour to Karmada's API, without leases", |used| {
            used.karmada
        }),
        ("lease renewals per hour", |used| used.leases),
        ("writes per hour to the member's API", |used| used.member),
    ];
    for (figure, of) in writes {
        let [limit, agent] = medians(at_rest, |used| used.per_hour(of(used)));
        print(&format!("| {figure} | {limit:.0} | {agent:.0} |"));
    }
}

/// Returns the median of a figure for each program.
fn medians<T: Copy + Default + PartialOrd>(
    programs: &[Vec<Used>; 2],
    figure: impl Fn(&Used) -> T,
) -> [T; 2] {
    programs
        .each_ref()
        .map(|rounds| median(rounds.iter().map(&figure).collect()))
}

/// The resources that a process used within a window; memory in KiB, at its end.
struct Used {
    window: Duration,
    cpu: Duration,
    resident: u64,
    anonymous: u64,
    karmada: u64,
    leases: u64,
    member: u64,
}

impl Used {
    /// Returns the CPU time of 1,000 rounds, in milliseconds.
    fn cpu_of_thousand_rounds(&self, period: Duration) -> f64 {
        let rounds = self.window.as_secs_f64() / period.as_secs_f64();
        self.cpu.as_secs_f64() * 1e6 / rounds
    }

    fn cpu_per_hour(&self) -> f64 {
        self.cpu.as_secs_f64() * 3600.0 / self.window.as_secs_f64()
    }

    fn per_hour(&self, count: u64) -> f64 {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        f64::from(count) * 3600.0 / self.window.as_secs_f64()
    }
}

fn agent_options(binary: &Path, nodes: u16, period: Duration) -> agents::Options {
    agents::Options {
        nodes,
        period,
        threshold: THRESHOLD.max(period),
        rest: Duration::ZERO,
        binary: binary.to_owned(),
    }
}

/// Measures the only agent of a cluster at rest.
async fn rest(
    options: &AgentBench,
    binary: &Path,
    dns: &DnsServer,
    period: Duration,
) -> Result<Used> {
    let reserved = ReservedPort::reserve()?;
    let port = reserved.address().port();
    let apis = Apis::start(1, port).await?;
    let process = Leader::start(
        &agent_options(binary, 1, period),
        &apis,
        dns.address(),
        port,
    )?;
    sleep(WARM_UP).await;
    let before = (
        process.cpu()?,
        apis.karmada.figures(),
        apis.member.figures(),
    );
    sleep(options.window).await;
    let cpu = process.cpu()?.saturating_sub(before.0);
    let karmada = apis.karmada.figures() - before.1;
    let member = apis.member.figures() - before.2;
    Ok(Used {
        window: options.window,
        cpu,
        resident: process.memory()?,
        anonymous: process.anonymous_memory()?,
        leases: karmada.writes_of("leases"),
        karmada: karmada.writes() - karmada.writes_of("leases"),
        member: member.writes(),
    })
}

/// Measures a leader with an increasing number of peers.
async fn lead_many(
    options: &AgentBench,
    dns: &DnsServer,
    print: &mut impl FnMut(&str),
) -> Result<()> {
    print("");
    print(
        "| nodes, which the leader polls once a second | CPU time per poll of all nodes | resident memory |",
    );
    print("|---|---|---|");
    let mut costs = Vec::new();
    for nodes in options.nodes.iter().copied() {
        let reserved = ReservedPort::reserve()?;
        let port = reserved.address().port();
        let apis = Apis::start(1, port).await?;
        let _peers = serve_peers(1..nodes, port).await?;
        let flags = agent_options(&options.agent, nodes, LEADING_PERIOD);
        let leader = Leader::start(&flags, &apis, dns.address(), port)?;
        leader.metric("lease_holder").reaches(1.0).await?;
        // The peers are listed only now: an agent that knows many waits longer before it campaigns.
        apis.list(1..nodes, port).await?;
        let healthy = leader.metric("nodes{answer=\"healthy\"}");
        healthy.reaches(f64::from(nodes)).await?;
        sleep(WARM_UP).await;
        let before = leader.usage().await?;
        sleep(options.window).await;
        let used = leader.usage().await? - before;
        // The leader does not poll itself.
        #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
        let polls = used.peer_requests as f64 / f64::from(nodes.max(2) - 1);
        let each = used.cpu.as_secs_f64() * 1000.0 / polls;
        costs.push((f64::from(nodes), each));
        let memory = mebibytes(leader.memory()?);
        print(&format!("| {nodes} | {each:.2} ms | {memory} MiB |"));
    }
    let (base, slope, share) = line(&costs);
    print(&format!(
        "linear fit: {base:.2} ms + {:.3} ms per 100 nodes; it explains {:.1}% of the variance",
        slope * 100.0,
        share * 100.0
    ));
    Ok(())
}

/// Serves healthy votes on the addresses of the peers `nodes`.
async fn serve_peers(nodes: std::ops::Range<u16>, port: u16) -> Result<JoinSet<()>> {
    let mut serving = JoinSet::new();
    for node in nodes {
        let at: SocketAddr = address(node, port);
        let id = format!("00000000-0000-0000-0000-{node:012}");
        let vote =
            json!({ "cluster": CLUSTER, "node": name(node), "agent": id, "vote": "healthy" });
        let vote = vote.to_string();
        let listener = TcpListener::bind(at)
            .await
            .with_context(|| format!("cannot listen on {at}"))?;
        let respond = move || async move { ([("content-type", "application/json")], vote) };
        let router = Router::new().route("/v1/observation", get(respond));
        // The server runs until the benchmark drops it.
        serving.spawn(async move { drop(axum::serve(listener, router).await) });
    }
    Ok(serving)
}

/// Fits a line to `points` by least squares. Returns its offset, its slope, and R², the share of the
/// variance that it explains.
fn line(points: &[(f64, f64)]) -> (f64, f64, f64) {
    let count: f64 = points.iter().map(|_| 1.0).sum();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points
            .iter()
            .map(|point| of(point.0 - x, point.1 - y))
            .sum()
    };
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    let slope = xy / xx;
    (y - slope * x, slope, xy * xy / (xx * yy))
}

fn megabytes(binary: &Path) -> Result<String> {
    let size = std::fs::metadata(binary)
        .with_context(|| format!("cannot find {}", binary.display()))?
        .len();
    Ok(format!(
        "{}.{:02}",
        size / 1_000_000,
        size % 1_000_000 / 10_000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line is fitted with its share of the variance.
    #[test]
    fn line_explains_its_variance() {
        let (base, slope, share) = line(&[(10.0, 7.0), (20.0, 12.0), (40.0, 22.0)]);
        for (found, wanted) in [(base, 2.0), (slope, 0.5), (share, 1.0)] {
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
        let (_, _, share) = line(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]);
        assert!(share < 0.1, "{share}");
    }
}
