//! What an agent costs: memory and CPU time at rest, writes to either API, and what leading costs for
//! each node. Its limit is measured in the same run: a program that has an agent's parts, and does
//! nothing with them but hold a connection and ask DNS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use lab_parts::dns::DnsServer;
use lab_parts::port::ReservedPort;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::apis::{Apis, CLUSTER};
use super::leader::Leader;
use super::{Options, WORKING_DNS, address, limits, mebibytes, name, seconds};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The agent's binary.
    pub agent: PathBuf,
    /// The binary of the limit, the package `agent-baseline`.
    pub limit: PathBuf,
    /// For how long each figure is taken.
    pub window: Duration,
    /// The numbers of nodes that a leader is measured with.
    pub nodes: Vec<u16>,
}

/// A busy probe: so often that its CPU time can be told.
const BUSY_PERIOD: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_secs(5);
/// Of a leader that asks all others; they ask every second while anything turns, and so does it here.
const LEADING_PERIOD: Duration = Duration::from_secs(1);
const THRESHOLD: Duration = Duration::from_secs(5);
/// After the start, until memory no longer grows.
const WARM_UP: Duration = Duration::from_secs(15);

/// Measures, and gives each line of what comes out to `tell`.
///
/// # Errors
/// When something does not start, or what must happen does not.
pub async fn bench(bench: &Bench, mut tell: impl FnMut(&str)) -> Result<()> {
    limits::raise_open_files(bench.nodes.iter().copied().max().unwrap_or(1))?;
    // An error only says that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let dns = DnsServer::start(WORKING_DNS).await?;
    tell("| at rest, a round every 5 s | limit: its parts | agent |");
    tell("|---|---|---|");
    let limit = rest(bench, &bench.limit, &dns, PERIOD).await?;
    let agent = rest(bench, &bench.agent, &dns, PERIOD).await?;
    let busy = rest(bench, &bench.agent, &dns, BUSY_PERIOD).await?;
    let busy_limit = rest(bench, &bench.limit, &dns, BUSY_PERIOD).await?;
    tell(&format!(
        "| binary | {} MB | {} MB |",
        megabytes(&bench.limit)?,
        megabytes(&bench.agent)?
    ));
    tell(&format!(
        "| resident memory | {} MiB | {} MiB |",
        mebibytes(limit.resident),
        mebibytes(agent.resident)
    ));
    tell(&format!(
        "| of it anonymous | {} MiB | {} MiB |",
        mebibytes(limit.anonymous),
        mebibytes(agent.anonymous)
    ));
    tell(&format!(
        "| CPU time per 1,000 rounds, at ten rounds a second | {:.0} ms | {:.0} ms |",
        busy_limit.cpu_of_thousand_rounds(BUSY_PERIOD),
        busy.cpu_of_thousand_rounds(BUSY_PERIOD),
    ));
    tell(&format!(
        "| CPU time an hour | {:.1} s | {:.1} s |",
        limit.cpu_an_hour(),
        agent.cpu_an_hour()
    ));
    tell(&format!(
        "| writes an hour to Karmada's API, leases apart | {:.0} | {:.0} |",
        limit.an_hour(limit.karmada),
        agent.an_hour(agent.karmada)
    ));
    tell(&format!(
        "| lease renewals an hour | {:.0} | {:.0} |",
        limit.an_hour(limit.leases),
        agent.an_hour(agent.leases)
    ));
    tell(&format!(
        "| writes an hour to the member's API | {:.0} | {:.0} |",
        limit.an_hour(limit.member),
        agent.an_hour(agent.member)
    ));
    tell(&format!(
        "(counted over {}, and multiplied)",
        seconds(bench.window)
    ));
    lead_many(bench, &dns, &mut tell).await
}

/// What a process was seen to use within a window.
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
    fn cpu_of_thousand_rounds(&self, period: Duration) -> f64 {
        let rounds = self.window.as_secs_f64() / period.as_secs_f64();
        self.cpu.as_secs_f64() * 1e6 / rounds
    }

    fn cpu_an_hour(&self) -> f64 {
        self.cpu.as_secs_f64() * 3600.0 / self.window.as_secs_f64()
    }

    fn an_hour(&self, count: u64) -> f64 {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        f64::from(count) * 3600.0 / self.window.as_secs_f64()
    }
}

fn options(binary: &Path, nodes: u16, period: Duration) -> Options {
    Options {
        nodes,
        period,
        threshold: THRESHOLD.max(period),
        rest: Duration::ZERO,
        binary: binary.to_owned(),
    }
}

/// One agent that is alone in its cluster, at rest.
async fn rest(bench: &Bench, binary: &Path, dns: &DnsServer, period: Duration) -> Result<Used> {
    let reserved = ReservedPort::reserve()?;
    let port = reserved.address().port();
    let apis = Apis::start(1, port).await?;
    let options = options(binary, 1, period);
    let process = Leader::start(&options, &apis, dns.address(), port)?;
    sleep(WARM_UP).await;
    let before = (
        process.cpu()?,
        apis.karmada.figures(),
        apis.member.figures(),
    );
    sleep(bench.window).await;
    let cpu = process.cpu()?.saturating_sub(before.0);
    let karmada = apis.karmada.figures() - before.1;
    let member = apis.member.figures() - before.2;
    Ok(Used {
        window: bench.window,
        cpu,
        resident: process.memory()?,
        anonymous: process.anonymous_memory()?,
        leases: karmada.writes_of("leases"),
        karmada: karmada.writes() - karmada.writes_of("leases"),
        member: member.writes(),
    })
}

/// A leader with more and more others to ask.
async fn lead_many(bench: &Bench, dns: &DnsServer, tell: &mut impl FnMut(&str)) -> Result<()> {
    tell("");
    tell(
        "| leader that asks all nodes once a second: nodes | CPU time for each time that it asks all | resident memory |",
    );
    tell("|---|---|---|");
    let mut costs = Vec::new();
    for nodes in bench.nodes.iter().copied() {
        let reserved = ReservedPort::reserve()?;
        let port = reserved.address().port();
        let apis = Apis::start(1, port).await?;
        let _others = others(1..nodes, port).await?;
        let options = options(&bench.agent, nodes, LEADING_PERIOD);
        let leader = Leader::start(&options, &apis, dns.address(), port)?;
        leader.metric("lease_holder").reaches(1.0).await?;
        apis.list(1..nodes, port).await?;
        let healthy = leader.metric("nodes{answer=\"healthy\"}");
        healthy.reaches(f64::from(nodes)).await?;
        sleep(WARM_UP).await;
        let before = leader.usage().await?;
        sleep(bench.window).await;
        let used = leader.usage().await? - before;
        #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
        let asked = used.questions as f64 / f64::from(nodes.max(2) - 1);
        let each = used.cpu.as_secs_f64() * 1000.0 / asked;
        costs.push((f64::from(nodes), each));
        let memory = mebibytes(leader.memory()?);
        tell(&format!("| {nodes} | {each:.2} ms | {memory} MiB |"));
    }
    let (base, slope, share) = line(&costs);
    tell(&format!(
        "a line through these: {base:.2} ms + {:.3} ms for each 100 nodes; it explains {:.1}% of the differences",
        slope * 100.0,
        share * 100.0
    ));
    Ok(())
}

/// Nodes that say that all is well, on the addresses of agents.
async fn others(nodes: std::ops::Range<u16>, port: u16) -> Result<JoinSet<()>> {
    let mut serving = JoinSet::new();
    for node in nodes {
        let at: SocketAddr = address(node, port);
        let says = json!({ "cluster": CLUSTER, "node": name(node), "vote": "healthy" }).to_string();
        let listener = TcpListener::bind(at)
            .await
            .with_context(|| format!("cannot listen on {at}"))?;
        let answer = move || async move { ([("content-type", "application/json")], says) };
        let router = Router::new().route("/v1/observation", get(answer));
        // It ends with the benchmark.
        serving.spawn(async move { drop(axum::serve(listener, router).await) });
    }
    Ok(serving)
}

/// The line through `points` with the least squares: where it begins, how steep it is, and what share
/// of the differences it explains.
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

    #[test]
    fn a_line_is_found_with_what_it_explains() {
        let (base, slope, share) = line(&[(10.0, 7.0), (20.0, 12.0), (40.0, 22.0)]);
        for (found, wanted) in [(base, 2.0), (slope, 0.5), (share, 1.0)] {
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
        let (_, _, share) = line(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]);
        assert!(share < 0.1, "{share}");
    }
}
