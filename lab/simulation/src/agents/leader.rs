//! The agent that leads: the program as clusters run it.

use std::net::SocketAddr;
use std::ops::Sub;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lab_parts::memory;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::addresses::{address, name};
use super::apis::Apis;
use super::nodes;
use super::options::{Options, POLL, TIMEOUT};

const PREFIX: &str = "karmada_cluster_health_agent_";
/// The kernel's `USER_HZ`: ticks per second of the times in `/proc/PID/stat`.
const TICKS: f64 = 100.0;

/// A running agent, which is killed when dropped.
pub struct Leader {
    child: Child,
    admin: SocketAddr,
    http: Client<HttpConnector, Empty<Bytes>>,
}

/// The resources that a leader has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The CPU time, of user and system.
    pub cpu: Duration,
    /// The number of requests to peers.
    pub peer_requests: u64,
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            peer_requests: self.peer_requests.saturating_sub(before.peer_requests),
        }
    }
}

/// A metric of the leader.
pub struct Metric<'a> {
    leader: &'a Leader,
    name: &'a str,
}

impl Leader {
    /// Starts the agent of the first node.
    pub fn start(options: &Options, apis: &Apis, dns: SocketAddr, port: u16) -> Result<Self> {
        let admin = address(0, port);
        let child = Command::new(&options.binary)
            .args(nodes::flags(options, apis, dns, admin, &name(0)))
            .arg("--log-level=error")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", options.binary.display()))?;
        Ok(Self {
            child,
            admin,
            http: Client::builder(TokioExecutor::new()).build_http(),
        })
    }

    /// Returns the metric with this name, given without the agents' prefix.
    pub fn metric<'a>(&'a self, name: &'a str) -> Metric<'a> {
        Metric { leader: self, name }
    }

    /// Returns the resident memory, in KiB.
    pub fn memory(&self) -> Result<u64> {
        Ok(memory::resident(self.id()?)?)
    }

    /// Returns the anonymous memory, in KiB: without the binary and other mapped files.
    pub fn anonymous_memory(&self) -> Result<u64> {
        Ok(memory::anonymous(self.id()?)?)
    }

    /// Returns the usage since the start.
    pub async fn usage(&self) -> Result<Usage> {
        let peer_requests = self.metric("peer_requests_total").value().await?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of whole requests"
        )]
        Ok(Usage {
            cpu: self.cpu()?,
            peer_requests: peer_requests as u64,
        })
    }

    /// Returns the CPU time since the start.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = self.proc("stat")?;
        // Fields 14 and 15 of proc_pid_stat(5). Field 2 may contain spaces, and ends with the last
        // parenthesis.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let mut ticks = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse::<f64>);
        let (user, system) = (ticks.next(), ticks.next());
        let (Some(Ok(user)), Some(Ok(system))) = (user, system) else {
            anyhow::bail!("no CPU time of the leader");
        };
        Ok(Duration::from_secs_f64((user + system) / TICKS))
    }

    /// Stops the agent with SIGTERM and checks that it succeeds.
    pub(super) async fn stop(mut self) -> Result<()> {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        kill_process(id.context("the leader has ended")?, Signal::TERM)?;
        let status = timeout(TIMEOUT, self.child.wait()).await??;
        ensure!(status.success(), "the leader ended with {status}");
        Ok(())
    }

    fn id(&self) -> Result<u32> {
        self.child.id().context("the leader has ended")
    }

    fn proc(&self, file: &str) -> Result<String> {
        let id = self.id()?;
        Ok(std::fs::read_to_string(format!("/proc/{id}/{file}"))?)
    }

    async fn metrics(&self) -> Result<String> {
        let uri: Uri = format!("http://{}/metrics", self.admin).parse()?;
        let response = self.http.get(uri).await?;
        let body = response.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

impl Metric<'_> {
    /// Returns the sum of the samples.
    async fn value(&self) -> Result<f64> {
        let wanted = format!("{PREFIX}{}", self.name);
        let metrics = self.leader.metrics().await?;
        let samples = metrics.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let named = series == wanted || series.split('{').next() == Some(&wanted);
            named.then(|| value.parse::<f64>().ok())?
        });
        Ok(samples.sum())
    }

    /// Waits until the metric is at least `value`.
    pub async fn reaches(&self, value: f64) -> Result<()> {
        let looking = async {
            // An error only means that the agent does not listen yet.
            while !self.value().await.is_ok_and(|now| now >= value) {
                sleep(POLL).await;
            }
        };
        timeout(TIMEOUT, looking)
            .await
            .with_context(|| format!("{} of the leader does not reach {value}", self.name))
    }
}
