//! Our own programs: how they are built and started.

use std::{
    env,
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rustix::process::Signal;
use tokio::time::{sleep, timeout};
use tools::cargo::{self, PROGRAMS_BUILT};

use crate::{process::Process, scratch};

/// The interval between two looks at something that cannot be watched.
const POLL: Duration = Duration::from_millis(50);

const METRIC_WITHIN: Duration = Duration::from_mins(5);

/// The limit until a program is ready, for which it lists a few objects.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The limit until a program has finished its writes, released its lease and ended.
const STOPPED_WITHIN: Duration = Duration::from_secs(25);

/// The folder of programs of an earlier commit, below the target folder.
const EARLIER: &str = "earlier";

/// One of our programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `cluster-health-agent`
    Agent,
    /// `remedy-controller`
    RemedyController,
    /// `ingress-controller`
    IngressController,
    /// `propagation-controller`
    PropagationController,
    /// `scheduler`
    Scheduler,
    /// `execution-controller`
    ExecutionController,
    /// `cluster-controller`
    ClusterController,
    /// `placement-controller`
    PlacementController,
    /// `placement-agent`
    PlacementAgent,
    /// `kubectl-remedy`
    KubectlRemedy,
    /// `sandbox`
    Sandbox,
}

impl Binary {
    /// All programs.
    pub const ALL: [Self; 11] = [
        Self::Agent,
        Self::RemedyController,
        Self::IngressController,
        Self::PropagationController,
        Self::Scheduler,
        Self::ExecutionController,
        Self::ClusterController,
        Self::PlacementController,
        Self::PlacementAgent,
        Self::KubectlRemedy,
        Self::Sandbox,
    ];

    /// Returns the name of its package and binary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "cluster-health-agent",
            Self::RemedyController => "remedy-controller",
            Self::IngressController => "ingress-controller",
            Self::PropagationController => "propagation-controller",
            Self::Scheduler => "scheduler",
            Self::ExecutionController => "execution-controller",
            Self::ClusterController => "cluster-controller",
            Self::PlacementController => "placement-controller",
            Self::PlacementAgent => "placement-agent",
            Self::KubectlRemedy => "kubectl-remedy",
            Self::Sandbox => "sandbox",
        }
    }
}

/// The purpose for which programs are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Tests, for which the build is quick.
    #[default]
    Debug,
    /// Clusters.
    Dist,
    /// Tests, from an earlier commit: [`build_earlier`].
    Earlier,
}

impl Profile {
    /// Returns the folder that cargo builds into, below its target folder.
    const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Dist => cargo::DIST,
            Self::Earlier => EARLIER,
        }
    }
}

/// Builds the programs for tests, once in a process, unless [`PROGRAMS_BUILT`] is set.
///
/// Every test calls it, so that a plain `cargo test` runs current binaries.
pub fn build_for_tests() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| {
        if env::var_os(PROGRAMS_BUILT).is_some() {
            return Ok(());
        }
        build(Profile::Debug).map_err(|error| format!("{error:#}"))
    })
    .clone()
    .map_err(anyhow::Error::msg)
}

/// Builds all programs; if they are up to date, that takes a fraction of a second.
pub fn build(profile: Profile) -> Result<()> {
    if profile == Profile::Dist {
        // The agent has not the features that only controllers need.
        cargo::build_dist(&[Binary::Agent.name()])?;
        build_controllers()?;
        build_propagation()?;
        return build_placement();
    }
    // With the whole workspace, dependencies have the same features as in a build of all tests, and
    // are not built twice.
    let programs = Binary::ALL.map(|program| ["--bin", program.name()]);
    let status = cargo::command()
        .args(["build", "--quiet", "--locked", "--workspace"])
        .args(programs.as_flattened())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cannot build the programs ({status})");
    Ok(())
}

/// Builds the programs of a fleet as they were at `commit`, for tests.
///
/// # Errors
/// There is no such commit, or it cannot be built.
pub fn build_earlier(commit: &str) -> Result<()> {
    let folder = cargo::built(EARLIER)?;
    let source = folder.join("source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(&source)?;
    // Cargo builds the files that are newer than its last build: every file is new here.
    let unpacked = std::process::Command::new("sh")
        .args(["-ec", r#"git archive "$1" > "$2/../tar"; tar --extract --touch --file "$2/../tar" --directory "$2""#, "sh", commit])
        .arg(&source)
        .current_dir(cargo::root())
        .status()?;
    ensure!(unpacked.success(), "cannot read the commit {commit}");
    let programs = [
        Binary::PropagationController,
        Binary::Scheduler,
        Binary::ExecutionController,
    ]
    .map(Binary::name);
    let bins = programs.map(|program| ["--package", program]);
    let status = cargo::command()
        .args(["build", "--locked"])
        .args(bins.as_flattened())
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cannot build {commit} ({status})");
    for program in programs {
        fs::copy(
            folder.join("target/debug").join(program),
            folder.join(program),
        )?;
    }
    Ok(())
}

/// Builds both controllers as clusters run them.
pub fn build_controllers() -> Result<()> {
    cargo::build_dist(&[Binary::RemedyController, Binary::IngressController].map(Binary::name))
}

/// Builds the programs that propagate as clusters run them.
pub fn build_propagation() -> Result<()> {
    let programs = [
        Binary::PropagationController,
        Binary::Scheduler,
        Binary::ExecutionController,
    ];
    cargo::build_dist(&programs.map(Binary::name))
}

/// Builds the programs of a fleet without a gateway as clusters run them.
pub fn build_fleet() -> Result<()> {
    let others = [Binary::ClusterController, Binary::RemedyController];
    cargo::build_dist(&others.map(Binary::name))?;
    build_propagation()
}

/// Builds the programs that place as clusters run them.
pub fn build_placement() -> Result<()> {
    let programs = [Binary::PlacementController, Binary::PlacementAgent];
    cargo::build_dist(&programs.map(Binary::name))
}

/// Returns the built binary of a program, in the target folder of this executable.
pub fn path(program: Binary, profile: Profile) -> Result<PathBuf> {
    Ok(cargo::built(profile.folder())?.join(program.name()))
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
        program: Binary,
        profile: Profile,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let mut running = Self::start_unready(program, profile, arguments).await?;
        let admin = running.admin;
        running
            .process
            .ready(READY_WITHIN, async || get(admin, "/readyz").await.is_ok())
            .await?;
        Ok(running)
    }

    /// Starts a program with these flags; it need not become ready.
    pub async fn start_unready(
        program: Binary,
        profile: Profile,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        Self::start_at(program, profile, any, arguments).await
    }

    /// Starts a program with these flags and its admin server at this address, and waits until it has
    /// logged its start: from then on it handles signals.
    pub async fn start_at(
        program: Binary,
        profile: Profile,
        admin: SocketAddr,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let mut command = tokio::process::Command::new(path(program, profile)?);
        command.args(arguments.into_iter().map(Into::into));
        Self::spawn(program, command, admin).await
    }

    /// Starts a program with these variables in its environment, and these flags; it need not become ready.
    pub async fn start_in(
        environment: impl IntoIterator<Item = (String, String)>,
        program: Binary,
        profile: Profile,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self> {
        let mut command = tokio::process::Command::new(path(program, profile)?);
        command
            .envs(environment)
            .args(arguments.into_iter().map(Into::into));
        Self::spawn(program, command, (Ipv4Addr::LOCALHOST, 0).into()).await
    }

    async fn spawn(
        program: Binary,
        mut command: tokio::process::Command,
        admin: SocketAddr,
    ) -> Result<Self> {
        command.arg(format!("--listen-address={admin}"));
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

    /// Checks that it is ready. The error names the parts that it waits for.
    pub async fn readiness(&self) -> Result<()> {
        get(self.admin, "/readyz").await.map(drop)
    }

    /// Waits until it has written `text`.
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

    /// Requests an agent's vote, as another one that leads `cluster` does.
    pub async fn vote_for(&self, cluster: &str) -> Result<String> {
        let query = format!("cluster={cluster}&agent=other&standby=false");
        get(self.admin, &format!("/v1/observation?{query}")).await
    }

    /// Reads its metrics in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String> {
        get(self.admin, "/metrics").await
    }

    /// Returns the sum of a metric's samples, or of those with the labels in `name`.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let metrics = self.metrics().await?;
        let samples = metrics.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let wanted = series == name || series.split('{').next() == Some(name);
            wanted.then(|| value.parse::<f64>().ok())?
        });
        Ok(samples.sum())
    }

    /// Waits until `is` returns `true` for a metric.
    pub async fn until_metric(&self, name: &str, is: impl Fn(f64) -> bool) -> Result<()> {
        let polling = async {
            while !is(self.metric(name).await?) {
                sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(METRIC_WITHIN, polling)
            .await
            .with_context(|| format!("{name} has another value after {METRIC_WITHIN:?}"))?
    }

    /// Waits until it has nothing left to do and no Event to write. Its metrics begin with `prefix`.
    pub async fn rests(&self, prefix: &str) -> Result<()> {
        for left in ["queue_length", "events_waiting"] {
            let metric = format!("{prefix}_{left}");
            self.until_metric(&metric, |left| left == 0.0).await?;
        }
        Ok(())
    }

    /// Its resident memory, in KiB.
    pub fn memory(&self) -> Result<u64> {
        let id = self.process.id().context("it has ended")?;
        Ok(lab_parts::memory::resident(id)?)
    }

    /// The most memory that it has had resident, in KiB.
    pub fn peak_memory(&self) -> Result<u64> {
        let id = self.process.id().context("it has ended")?;
        Ok(lab_parts::memory::peak(id)?)
    }

    /// Returns the number of its open descriptors.
    pub fn descriptors(&self) -> Result<usize> {
        let id = self.process.id().context("it has ended")?;
        Ok(fs::read_dir(format!("/proc/{id}/fd"))?.count())
    }

    /// Returns its output so far.
    pub fn output(&self) -> Result<String> {
        self.process.output()
    }

    /// Stops it with SIGSTOP until it is [resumed](Self::resume).
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Resumes it with SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Ends it with SIGTERM.
    ///
    /// # Errors
    /// It does not end in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop(STOPPED_WITHIN).await?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    /// Kills it.
    pub async fn kill(self) -> Result<()> {
        self.process.kill().await
    }
}

pub(crate) async fn get(server: SocketAddr, path: &str) -> Result<String> {
    let client: Client<_, Empty<&'static [u8]>> =
        Client::builder(TokioExecutor::new()).build_http();
    let request = Request::get(format!("http://{server}{path}")).body(Empty::new())?;
    let response = client.request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    ensure!(status == StatusCode::OK, "{path}: {status}: {body}");
    Ok(body)
}
