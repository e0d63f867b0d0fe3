//! The life of a process: flags, logs, signals, tasks, exit code.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use crate::metrics::Registry;
use axum::Router;
use clap::{FromArgMatches, Parser};
use jiff::Timestamp;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use crate::args::CommonArgs;
pub use crate::identity::Identity;
pub use crate::tasks::Tasks;

use crate::activity::Activity;
use crate::cache::Undecoded;
use crate::client::{Addresses, ClientError};
use crate::contention::CONTESTED;
use crate::delivery::{Source, deliver};
use crate::error::{BoxError, Chain};
use crate::metrics::{LoopMetrics, SharedMetrics};
use crate::panics::PANICS;
use crate::readiness::Readiness;
use crate::watch::{Decoded, decoded};
use crate::{admin, client, metrics, open_files, telemetry};

/// The longest that ordinary tasks, and then the last ones, may take to end.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// The exit code of a shell for a command that a closed pipe ends, by SIGPIPE.
const BROKEN_PIPE: u8 = 128 + 13;

/// A program that starts or runs.
pub struct Program {
    /// The names by which it is known.
    pub identity: Identity,
    /// The metrics, under the program's prefix.
    pub registry: Registry,
    /// The gates that must open before the program acts.
    pub readiness: Readiness,
    /// The gates of the watches in an API that has not the lease. Only the loops that need that API wait
    /// for them, and `/readyz` does not: without it, the program still does everything else.
    pub elsewhere: Readiness,
    /// The running tasks.
    pub tasks: Tasks,
    /// Cancelled at shutdown.
    pub stopping: CancellationToken,
    /// Routes that the admin server has in addition to its own.
    pub routes: Router,
    /// The address of the admin server.
    pub listen_address: SocketAddr,
    /// The system clock, which may jump at any time: for timestamps shown to users, and for the times that
    /// users name, never for durations.
    pub clock: fn() -> Timestamp,
    /// Looks up the servers that kubeconfigs name. By default the system's resolver does.
    pub addresses: Addresses,
    pub(crate) activity: Activity,
    shared_metrics: SharedMetrics,
    credentials: Option<client::CredentialMetrics>,
}

impl Program {
    /// Creates a program without tasks.
    pub fn new(identity: Identity, listen_address: SocketAddr) -> Self {
        Self {
            identity,
            registry: registry(&identity),
            readiness: Readiness::default(),
            elsewhere: Readiness::default(),
            tasks: Tasks::new(),
            stopping: CancellationToken::new(),
            routes: Router::new(),
            listen_address,
            clock: Timestamp::now,
            addresses: Addresses::by_system(),
            activity: Activity::new(),
            shared_metrics: SharedMetrics::default(),
            credentials: None,
        }
    }

    /// Serves the admin routes and the program's own until its other tasks have ended, and returns
    /// the bound address.
    ///
    /// # Errors
    /// Fails if the listen address cannot be bound.
    pub fn serve(&mut self) -> Result<SocketAddr, StartError> {
        let address = self.listen_address;
        let listener = admin::listen(address).map_err(|error| {
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

    /// Runs until `stop` returns or a task ends early, then drains the tasks unless `stop` returns
    /// again. Returns `true` for a clean shutdown. Dropping the future aborts the tasks.
    pub async fn run_until(mut self, mut stop: impl AsyncFnMut()) -> bool {
        let failed = tokio::select! {
            // A task that failed decides the exit code even when a signal arrives with it.
            biased;
            () = self.tasks.ended_early() => true,
            () = stop() => false,
        };
        tracing::info!("Stopping");
        self.stopping.cancel();
        let drained = tokio::select! {
            biased;
            drained = self.tasks.drain(DRAIN_LIMIT) => drained,
            () = stop() => false,
        };
        drained && !failed
    }

    /// Connects to an API, which `api` names in logs and metrics. The kubeconfig is read again when it or
    /// a file that it names changes, and the end of its credentials is a metric, and near it a warning.
    pub async fn connect(
        &mut self,
        api: &'static str,
        source: &client::Source,
    ) -> Result<Client, ClientError> {
        let metrics = (self.credentials)
            .get_or_insert_with(|| client::CredentialMetrics::register(&mut self.registry))
            .clone();
        let addresses = self.addresses.clone();
        let renewal = client::Renewal::start(
            source,
            self.identity.name,
            addresses,
            api,
            metrics,
            self.clock,
        )
        .await?;
        let client = renewal.client();
        let task = renewal.run(self.stopping.clone());
        self.tasks.spawn("credentials", task);
        Ok(client)
    }

    /// Runs a future that does not end by itself, such as a watch, in a task called `name` until the program stops.
    pub fn run_until_stopped(
        &mut self,
        name: &'static str,
        running: impl Future<Output = ()> + Send + 'static,
    ) {
        let stopping = self.stopping.clone().cancelled_owned();
        self.tasks.spawn(name, async move {
            tokio::select! {
                biased;
                () = stopping => {}
                () = running => {}
            }
            Ok(())
        });
    }

    /// Watches the objects that `api` and `selected` cover, in a task called `name`, and passes every
    /// event to `observe`. A readiness gate of the same name opens after the first complete list, and a
    /// replica whose requests then fail for half a minute gives its lease back.
    pub fn watch<K>(
        &mut self,
        name: &'static str,
        api: Api<Decoded<K>>,
        selected: Config,
        observe: impl FnMut(Event<Decoded<K>>) + Send + 'static,
    ) where
        K: Resource<DynamicType: Default> + DeserializeOwned,
    {
        let kind = K::DynamicType::default();
        self.watch_kind(name, (api, &kind), selected, observe);
    }

    /// Watches like [`Self::watch`] a kind that its type leaves open.
    pub fn watch_kind<K>(
        &mut self,
        name: &'static str,
        objects: (Api<Decoded<K>>, &K::DynamicType),
        selected: Config,
        observe: impl FnMut(Event<Decoded<K>>) + Send + 'static,
    ) where
        K: Resource + DeserializeOwned,
    {
        self.spawn_watch(name, Source::new(objects, selected), observe);
    }

    /// Watches like [`Self::watch`] a kind that the API may not serve, as one that is newer than the API
    /// itself: there are no objects then, and they are listed once it does.
    pub fn watch_if_served<K>(
        &mut self,
        name: &'static str,
        objects: (Api<Decoded<K>>, &K::DynamicType),
        selected: Config,
        observe: impl FnMut(Event<Decoded<K>>) + Send + 'static,
    ) where
        K: Resource + DeserializeOwned,
    {
        let source = Source {
            may_be_unserved: true,
            ..Source::new(objects, selected)
        };
        self.spawn_watch(name, source, observe);
    }

    /// Watches like [`Self::watch`], but in an API that has not the lease, with a gate in
    /// [`Self::elsewhere`]. Trouble in reading it neither delays nor ends leadership: if no replica can
    /// read it, one must still do the work that needs the other API only.
    pub fn watch_elsewhere<K>(
        &mut self,
        name: &'static str,
        api: Api<Decoded<K>>,
        selected: Config,
        observe: impl FnMut(Event<Decoded<K>>) + Send + 'static,
    ) where
        K: Resource<DynamicType: Default> + DeserializeOwned,
    {
        let source = Source {
            needed_to_lead: false,
            ..Source::new((api, &K::DynamicType::default()), selected)
        };
        self.spawn_watch(name, source, observe);
    }

    fn spawn_watch<K: Resource + DeserializeOwned>(
        &mut self,
        name: &'static str,
        source: Source,
        mut observe: impl FnMut(Event<Decoded<K>>) + Send + 'static,
    ) {
        let gate = if source.needed_to_lead {
            self.shared_metrics
                .watch(&mut self.registry, name, &self.readiness);
            self.readiness.gate(name)
        } else {
            self.elsewhere.gate(name)
        };
        let observe = Box::new(move |event| observe(decoded(event)));
        let task = deliver(source, gate, self.stopping.clone(), observe);
        self.tasks.spawn(name, task);
    }

    /// Exposes `unread_objects{kind}` and `stale_objects{kind}`: `count` returns the number of objects of
    /// each kind whose newest version does not decode, and is called at each scrape.
    pub fn report_undecoded<L: Into<Cow<'static, str>>>(
        &mut self,
        count: impl Fn() -> Vec<(L, Undecoded)> + Send + Sync + 'static,
    ) {
        self.shared_metrics.undecoded(&mut self.registry, count);
    }

    /// Returns the metrics of the loop `controller`, whose queue has as many keys as `length` returns.
    pub(crate) fn loop_metrics(
        &mut self,
        controller: &'static str,
        length: impl Fn() -> usize + Send + Sync + 'static,
    ) -> LoopMetrics {
        self.shared_metrics
            .controller(&mut self.registry, controller, length)
    }
}

/// Errors that keep a program from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The user must change a flag or a file; exit code 2.
    #[error("{0}")]
    Config(String),
    /// Any other error; exit code 1.
    #[error(transparent)]
    Failed(#[from] BoxError),
}

impl From<ClientError> for StartError {
    fn from(error: ClientError) -> Self {
        Self::Config(Chain(&error).to_string())
    }
}

/// Runs a program from its flags to its exit code: 0 after a signal, 1 after a failure, 2 for invalid
/// flags or files.
///
/// The flags `A` have [`CommonArgs`] among them. `start` validates, connects, spawns tasks and returns. The first SIGTERM or
/// SIGINT drains the tasks, a second one ends the process at once.
pub fn run<A, S>(identity: Identity, start: S) -> ExitCode
where
    A: Parser,
    S: AsyncFnOnce(A, &mut Program) -> Result<(), StartError>,
{
    let (args, common) = match parse::<A>(&identity) {
        Ok(parsed) => parsed,
        Err(output) => return print_clap_output(&output),
    };
    telemetry::init(&common);
    open_files::raise_limit();
    // One thread is enough for programs that mostly wait, and saves memory on every node.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&StartError::Failed(error.into())),
    };
    let exit_code = runtime.block_on(supervise(identity, &common, async |program| {
        start(args, program).await
    }));
    // An exec plugin of the kubeconfig may block its thread for long; dropping the runtime would wait for it.
    runtime.shutdown_background();
    exit_code.unwrap_or_else(|error| fail(&error))
}

/// Parses the command line of the process: all flags, and again those that every program has.
fn parse<A: Parser>(identity: &Identity) -> Result<(A, CommonArgs), clap::Error> {
    let mut command = identity.command::<A>();
    let parsed = command
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|matches| {
            let args = A::from_arg_matches(&matches)?;
            Ok((args, CommonArgs::from_arg_matches(&matches)?))
        });
    parsed.map_err(|error| error.format(&mut command))
}

/// Prints the help, the version, or one line about invalid flags, and returns the exit code.
#[expect(
    clippy::print_stderr,
    reason = "the response to an invalid flag or file is one plain line, not a log event"
)]
pub fn print_clap_output(output: &clap::Error) -> ExitCode {
    if output.use_stderr() {
        eprintln!("{}", first_paragraph(&output.render().to_string()));
        return ExitCode::from(2);
    }
    // The last line may still be buffered.
    match output.print().and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => unprinted(&error),
    }
}

/// Says that standard output cannot be written, and returns the exit code. Whoever closed it, as `head` does, wants no word
/// about that.
#[expect(
    clippy::print_stderr,
    reason = "it is one plain line for who sees no output, not a log event"
)]
pub fn unprinted(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::from(BROKEN_PIPE);
    }
    eprintln!("error: cannot write to standard output: {error}");
    ExitCode::from(2)
}

/// Returns clap's error message on one line, without the usage and hints that follow it.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

#[expect(
    clippy::print_stderr,
    reason = "the response to an invalid flag or file is one plain line, not a log event"
)]
fn fail(error: &StartError) -> ExitCode {
    eprintln!("error: {}", Chain(error));
    match error {
        StartError::Config(_) => ExitCode::from(2),
        StartError::Failed(_) => ExitCode::FAILURE,
    }
}

async fn supervise(
    identity: Identity,
    common: &CommonArgs,
    start: impl AsyncFnOnce(&mut Program) -> Result<(), StartError>,
) -> Result<ExitCode, StartError> {
    // The only error is that a provider is already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut signals = Signals::new().map_err(|error| StartError::Failed(error.into()))?;
    let mut program = Program::new(identity, common.listen_address);
    tokio::select! {
        // `start` may wait for long, for example on an `exec` plugin: a signal must not.
        biased;
        () = signals.received() => return Ok(ExitCode::SUCCESS),
        started = start(&mut program) => started?,
    }
    let address = program.serve()?;
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "Started");
    let clean = program.run_until(async || signals.received().await).await;
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
    fn new() -> io::Result<Self> {
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

/// Returns the registry of a program, with the metrics of all its connections.
fn registry(identity: &Identity) -> Registry {
    let mut registry = metrics::registry(identity);
    registry.register(
        "api_rewinds",
        "Watches whose API's resource versions went back, as after a restore, so that everything is listed again",
        client::REWINDS.clone(),
    );
    registry.register(
        "contested_writes",
        "Writes that were made again after a pause, because another client had undone the same one several times",
        CONTESTED.clone(),
    );
    registry.register(
        "panics",
        "Faults of the program that ended what it did for one object or one member, and nothing else",
        PANICS.clone(),
    );
    client::REQUESTS.register(&mut registry);
    client::CONNECTIONS.register(&mut registry);
    registry
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

    /// An error about flags is one line.
    #[test]
    fn flag_error_is_one_line() {
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
            let output = Flags::try_parse_from([&["program"], flags].concat()).unwrap_err();
            assert_eq!(first_paragraph(&output.render().to_string()), line);
        }
    }
}
