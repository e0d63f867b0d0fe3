//! The life of a process: flags, logs, signals, tasks, exit code.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use clap::Parser;
use jiff::Timestamp;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Resource};
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use crate::args::CommonArgs;
pub use crate::tasks::Tasks;

use crate::error::{BoxError, Chain};
use crate::readiness::Readiness;
use crate::watch::Guarded;
use crate::{admin, client, metrics, telemetry, watch};

/// How long tasks may take to end once told to, and then again the last ones.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// What a program is made of while it starts.
pub struct Program {
    /// The program's name: its user agent, and the prefix of its metrics.
    pub name: &'static str,
    /// Where metrics are registered, already under the program's prefix.
    pub registry: Registry,
    /// What must have happened before the program may act.
    pub readiness: Readiness,
    /// Its tasks.
    pub tasks: Tasks,
    /// Cancelled when the program shall stop.
    pub stopping: CancellationToken,
    /// Routes the admin server has beside its own.
    pub routes: Router,
    /// Where the admin server listens.
    pub listen_address: SocketAddr,
    /// The system's clock, which may jump at any time: for what people read. Nothing is decided by it.
    pub clock: fn() -> Timestamp,
}

impl Program {
    /// A program without tasks yet.
    pub fn new(name: &'static str, listen_address: SocketAddr) -> Self {
        Self {
            name,
            registry: metrics::registry(name),
            readiness: Readiness::new(),
            tasks: Tasks::new(),
            stopping: CancellationToken::new(),
            routes: Router::new(),
            listen_address,
            clock: Timestamp::now,
        }
    }

    /// Serves the admin routes, and the program's own, until its other tasks have ended.
    ///
    /// # Errors
    /// When nothing can listen on the program's address.
    pub async fn serve(&mut self) -> Result<SocketAddr, StartError> {
        let address = self.listen_address;
        let listener = TcpListener::bind(address).await.map_err(|error| {
            StartError::Config(format!(
                "cannot listen on {address}: {error}; name another --listen-address"
            ))
        })?;
        let address = listener
            .local_addr()
            .map_err(|error| StartError::Failed(error.into()))?;
        let registry = std::mem::take(&mut self.registry);
        let own = std::mem::take(&mut self.routes);
        let routes = admin::routes(self.readiness.clone(), registry).merge(own);
        self.tasks
            .spawn_last("admin", |drained| admin::serve(listener, routes, drained));
        Ok(address)
    }

    /// Lives until it is `told` to stop or a task ends early, then waits for all tasks to end, unless
    /// it is `told` again. Says whether they all ended as they should. Dropped, it takes its tasks
    /// with it.
    pub async fn live(mut self, mut told: impl AsyncFnMut()) -> bool {
        let failed = tokio::select! {
            biased;
            () = self.tasks.ended_early() => true,
            () = told() => false,
        };
        tracing::info!("Stopping");
        self.stopping.cancel();
        let drained = tokio::select! {
            biased;
            drained = self.tasks.drain(DRAIN_LIMIT) => drained,
            () = told() => false,
        };
        drained && !failed
    }

    /// Watches objects of one kind, as a task and behind a gate of that name: `observe` is given
    /// every event, and the program may act once it was given a complete list.
    pub fn watch<K>(
        &mut self,
        name: &'static str,
        api: Api<Guarded<K>>,
        selected: Config,
        observe: impl FnMut(Event<Guarded<K>>) + Send + 'static,
    ) where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let gate = self.readiness.gate(name);
        let events = watch::events(api, selected);
        let task = watch::feed(events, gate, self.stopping.clone(), observe);
        self.tasks.spawn(name, task);
    }
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The user must change a flag or a file; exit code 2.
    #[error("{0}")]
    Config(String),
    /// Anything else; exit code 1.
    #[error(transparent)]
    Failed(#[from] BoxError),
}

impl From<client::Error> for StartError {
    fn from(error: client::Error) -> Self {
        Self::Config(Chain(&error).to_string())
    }
}

/// Runs a program from its flags to its exit code: 0 after a signal, 1 after a failure, 2 for bad
/// flags or files.
///
/// `start` validates, connects, spawns tasks and returns. The first SIGTERM or SIGINT stops the
/// tasks and waits for them; the second ends the process at once.
pub fn run<A, S>(name: &'static str, start: S) -> ExitCode
where
    A: Parser + AsRef<CommonArgs>,
    S: AsyncFnOnce(A, &mut Program) -> Result<(), StartError>,
{
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(answer) => return tell(&answer),
    };
    let common = args.as_ref().clone();
    telemetry::init(&common);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&StartError::Failed(error.into())),
    };
    let lived = runtime.block_on(live(name, &common, async |program| {
        start(args, program).await
    }));
    // A lookup of a name may hang for long, in a thread that nobody can end.
    runtime.shutdown_background();
    lived.unwrap_or_else(|error| fail(&error))
}

/// Shows what clap answers in place of flags: the help, the version, or one line that says what is
/// wrong with them.
#[expect(
    clippy::print_stderr,
    reason = "the user's answer to a bad flag or file is one plain line, not a log event"
)]
fn tell(answer: &clap::Error) -> ExitCode {
    if answer.use_stderr() {
        eprintln!("{}", first_paragraph(&answer.render().to_string()));
        return ExitCode::from(2);
    }
    match answer.print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What clap says before it goes on to usage and hints, on one line.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

#[expect(
    clippy::print_stderr,
    reason = "the user's answer to a bad flag or file is one plain line, not a log event"
)]
fn fail(error: &StartError) -> ExitCode {
    eprintln!("error: {}", Chain(error));
    match error {
        StartError::Config(_) => ExitCode::from(2),
        StartError::Failed(_) => ExitCode::FAILURE,
    }
}

async fn live(
    name: &'static str,
    common: &CommonArgs,
    start: impl AsyncFnOnce(&mut Program) -> Result<(), StartError>,
) -> Result<ExitCode, StartError> {
    // An error only says that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut signals = Signals::new().map_err(|error| StartError::Failed(error.into()))?;
    let mut program = Program::new(name, common.listen_address);
    tokio::select! {
        biased;
        () = signals.received() => return Ok(ExitCode::SUCCESS),
        started = start(&mut program) => started?,
    }
    let address = program.serve().await?;
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "Started");
    let clean = program.live(async || signals.received().await).await;
    Ok(if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[arg(long)]
        cluster_name: String,
        #[arg(long, value_parser = crate::args::duration, default_value = "5s")]
        period: Duration,
    }

    #[test]
    fn what_is_wrong_with_flags_is_one_line() {
        let cases: [(&[&str], &str); 3] = [
            (
                &[],
                "error: the following required arguments were not provided: --cluster-name <CLUSTER_NAME>",
            ),
            (
                &["--cluster-name=m", "--period=0s"],
                "error: invalid value '0s' for '--period <PERIOD>': must be longer than 0s",
            ),
            (
                &["--unheard-of"],
                "error: unexpected argument '--unheard-of' found",
            ),
        ];
        for (flags, line) in cases {
            let answer = Flags::try_parse_from([&["program"], flags].concat()).unwrap_err();
            assert_eq!(first_paragraph(&answer.render().to_string()), line);
        }
    }
}
