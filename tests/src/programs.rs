//! Our own programs, built and started like any other part.

use std::{
    env,
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rustix::process::Signal;

use tokio::time::{sleep, timeout};

use crate::{process::Process, scratch};

/// Between two looks at something that cannot be watched.
const POLL: Duration = Duration::from_millis(50);

const METRIC_WITHIN: Duration = Duration::from_mins(1);

/// A program lists a few objects before it is ready.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// It finishes its writes and gives its lease back before it ends.
const STOPPED_WITHIN: Duration = Duration::from_secs(25);

/// One of our programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `cluster-health-agent`
    Agent,
    /// `remedy-controller`
    RemedyController,
    /// `ingress-controller`
    IngressController,
    /// `sandbox`
    Sandbox,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Agent,
        Self::RemedyController,
        Self::IngressController,
        Self::Sandbox,
    ];

    /// The name of its package and binary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "cluster-health-agent",
            Self::RemedyController => "remedy-controller",
            Self::IngressController => "ingress-controller",
            Self::Sandbox => "sandbox",
        }
    }
}

/// How the programs are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Quickly, for tests.
    #[default]
    Debug,
    /// As clusters run them.
    Dist,
}

impl Profile {
    /// What tells cargo to build so.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Debug => "--profile=dev",
            Self::Dist => "--profile=dist",
        }
    }
}

/// Builds all programs; those up to date already take a fraction of a second.
pub fn build(profile: Profile) -> Result<()> {
    // Of the whole workspace, so that dependencies have the features its tests are built with.
    let programs = Program::ALL.map(|program| ["--bin", program.name()]);
    cargo_build(
        profile,
        ["--workspace"].into_iter().chain(programs.concat()),
    )
}

/// Builds these packages without the rest of the workspace, with no features but those they need:
/// as clusters run them.
pub fn build_alone(packages: &[&str]) -> Result<()> {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    cargo_build(Profile::Dist, packages)
}

fn cargo_build<'a>(profile: Profile, what: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--locked", profile.flag()])
        .args(what)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cannot build the programs ({status})");
    Ok(())
}

/// The built binary of a program, in the target folder that this executable was built into.
pub fn path(program: Program, profile: Profile) -> Result<PathBuf> {
    let own = env::current_exe()?;
    let folder = own
        .ancestors()
        .find(|folder| {
            ["debug", "dist", "release"]
                .iter()
                .any(|profile| folder.ends_with(profile))
        })
        .and_then(Path::parent)
        .with_context(|| format!("{} is in no target folder of cargo", own.display()))?;
    let profile = match profile {
        Profile::Debug => "debug",
        Profile::Dist => "dist",
    };
    Ok(folder.join(profile).join(program.name()))
}

/// A started program. Dropping it kills it.
#[derive(Debug)]
#[must_use = "it is killed when dropped"]
pub struct Running {
    process: Process,
    admin: SocketAddr,
}

impl Running {
    /// Starts a program with these flags and waits until it is ready.
    pub async fn start(
        program: Program,
        profile: Profile,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let mut running = Self::start_unready(program, profile, arguments).await?;
        let admin = running.admin;
        let ready = async || get(admin, "/readyz").await.is_ok();
        running.process.ready(READY_WITHIN, ready).await?;
        Ok(running)
    }

    /// Starts a program with these flags; it need not become ready.
    pub async fn start_unready(
        program: Program,
        profile: Profile,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        Self::start_at(program, profile, any, arguments).await
    }

    /// Starts a program with these flags, its admin server at this address, and waits until it says
    /// that it has started: from then on it can be told to end.
    pub async fn start_at(
        program: Program,
        profile: Profile,
        admin: SocketAddr,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let mut command = tokio::process::Command::new(path(program, profile)?);
        command
            .args(arguments.into_iter().map(Into::into))
            .arg(format!("--listen-address={admin}"));
        let folder = scratch::folder(program.name())?;
        let mut process = Process::start(program.name(), command, folder.path())?;
        let admin = process.until_written(READY_WITHIN, |output| {
            let (_, address) = output.split_once("Started address=")?;
            address.split_once(' ')?.0.parse().ok()
        });
        Ok(Self {
            admin: admin.await?,
            process,
        })
    }

    /// Whether it says that it is ready; the error is what it waits for.
    pub async fn readiness(&self) -> Result<()> {
        get(self.admin, "/readyz").await.map(drop)
    }

    /// Waits until it has written `text`; a log file has to be looked at again and again.
    pub async fn until_output(&self, text: &str) -> Result<()> {
        let looking = async {
            while !self.output()?.contains(text) {
                sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(METRIC_WITHIN, looking)
            .await
            .with_context(|| format!("it never wrote {text:?}"))?
    }

    /// What it says of itself in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String> {
        get(self.admin, "/metrics").await
    }

    /// The sum of a metric's samples, or of those with the labels given.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let metrics = self.metrics().await?;
        let samples = metrics.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let wanted = series == name || series.split('{').next() == Some(name);
            wanted.then(|| value.parse::<f64>().ok())?
        });
        Ok(samples.sum())
    }

    /// Waits until a metric is as `is` says. It has to be asked for again and again, for it cannot
    /// be watched.
    pub async fn until_metric(&self, name: &str, is: impl Fn(f64) -> bool) -> Result<()> {
        let asking = async {
            while !is(self.metric(name).await?) {
                sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(METRIC_WITHIN, asking)
            .await
            .with_context(|| format!("{name} is not so after {METRIC_WITHIN:?}"))?
    }

    /// Its resident memory, in KiB.
    pub fn memory(&self) -> Result<u64> {
        let id = self.process.id().context("it has ended")?;
        Ok(lab_parts::memory::resident(id)?)
    }

    /// All it has written so far.
    pub fn output(&self) -> Result<String> {
        self.process.output()
    }

    /// Stops it as a debugger would, until it is [resumed](Self::resume).
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Ends it with SIGTERM.
    ///
    /// # Errors
    /// When it does not end in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop(STOPPED_WITHIN).await?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    /// Ends it as a crash would.
    pub async fn kill(self) -> Result<()> {
        self.process.kill().await
    }
}

async fn get(server: SocketAddr, path: &str) -> Result<String> {
    let client: Client<_, Empty<&'static [u8]>> =
        Client::builder(TokioExecutor::new()).build_http();
    let request = Request::get(format!("http://{server}{path}")).body(Empty::new())?;
    let answer = client.request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    ensure!(status == StatusCode::OK, "{path}: {status}: {body}");
    Ok(body)
}
