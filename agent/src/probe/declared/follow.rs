//! Reads the file of signals when it changes, and starts and ends the signals in it.
//!
//! The descriptions of signals live as long as the process, like its flags: one for each name with its condition and kind that a
//! file has ever declared, two hundred bytes. So everything that is about a signal is as cheap as about one that is compiled in.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use health::report::Terms;
use health::signal::{PerTarget, Signal, Voters};
use health::threshold::Threshold;
use karmada_api::condition::{DECLARED_FAILED_REASON, DECLARED_READY_REASON, REPORTER_READY};
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::Registry;
use kube::Client;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::bounded::read_up_to;
use super::file::{Declaration, Defaults, LARGEST, parse};
use super::network::Node;
use super::round::{Prober, SignalRoundMetrics, every_result};
use crate::metrics::DeclaredVoteMetrics;
use crate::probe::metrics::RoundMetrics;
use crate::probe::schedule::Schedule;
use crate::vote::{Votes, Voting};

/// The interval of reads. The kubelet brings a changed `ConfigMap` within a minute or so.
const READ_EVERY: Duration = Duration::from_secs(5);
/// The prefix of the metrics of every declared signal.
const METRIC_PREFIX: &str = "signal_";

/// The parts of the agent that the probes of declared signals share.
pub(crate) struct Shared {
    pub(crate) defaults: Defaults,
    /// The API of the agent's own cluster.
    pub(crate) member: Option<Client>,
    /// A signal that the leader alone probes waits for this.
    pub(crate) leadership: Leadership,
    pub(crate) votes: watch::Sender<Votes>,
    /// Which signals are declared, as soon as that is known.
    pub(crate) declared: watch::Sender<Option<PerTarget<Terms>>>,
}

/// Follows the file.
pub(super) struct Follower {
    path: PathBuf,
    node: Node,
    shared: Shared,
    rounds: SignalRoundMetrics,
    votes: DeclaredVoteMetrics,
    invalid: Gauge,
    /// Every signal that was ever declared.
    known: Vec<&'static Signal>,
    running: BTreeMap<String, Running>,
    /// The result of the last read.
    read: Option<Result<Vec<u8>, String>>,
}

/// A signal that is probed. Dropped, it is no more.
struct Running {
    declaration: Declaration,
    signal: &'static Signal,
    task: AbortOnDropHandle<()>,
}

impl Follower {
    pub(super) fn new(path: PathBuf, node: Node, shared: Shared, registry: &mut Registry) -> Self {
        let help = [
            "Rounds of the probe of a declared signal, by result: succeeded, the class of failure, or internal (nothing could be observed)",
            "Duration of a round of the probe of a declared signal",
        ];
        Self {
            path,
            node,
            shared,
            rounds: RoundMetrics::register(registry, METRIC_PREFIX, help),
            votes: DeclaredVoteMetrics::register(registry),
            invalid: registry.register(
                "signals_file_invalid",
                "1 while the file of signals cannot be used and the last good one counts; 0 otherwise",
                Gauge::default(),
            ),
            known: Vec::new(),
            running: BTreeMap::new(),
            read: None,
        }
    }

    /// Follows the file for ever.
    pub(super) async fn run(mut self) {
        loop {
            self.look().await;
            sleep(READ_EVERY).await;
        }
    }

    /// Reads the file, and takes in its content if that is another than before. A file that cannot be used changes nothing.
    pub(super) async fn look(&mut self) {
        let read = read(&self.path);
        if self.read.as_ref() == Some(&read) {
            return;
        }
        let declarations = match &read {
            Ok(text) => parse(text, self.node.ip, &self.shared.defaults),
            Err(problem) => Err(vec![problem.clone()]),
        };
        self.read = Some(read);
        self.invalid.set(i64::from(declarations.is_err()));
        match declarations {
            Ok(declarations) => self.take_in(declarations).await,
            Err(problems) => {
                let path = self.path.display();
                let problems = problems.join("; ");
                tracing::error!(%path, problems, "The file of signals cannot be used, keeping what was declared before");
            }
        }
    }

    async fn take_in(&mut self, declarations: Vec<Declaration>) {
        let names: Vec<_> = declarations.iter().map(|one| &*one.name).collect();
        tracing::info!(?names, "Declared signals");
        let mut new: BTreeMap<_, _> = declarations
            .into_iter()
            .map(|declared| (declared.name.clone(), declared))
            .collect();
        let running = std::mem::take(&mut self.running);
        for (name, running) in running {
            if new.get(&name) == Some(&running.declaration) {
                new.remove(&name);
                self.running.insert(name, running);
            } else {
                self.end(running).await;
            }
        }
        let new: Vec<_> = new
            .into_values()
            .map(|declared| (self.signal(&declared), declared))
            .collect();
        // Before the votes, which wake the leader: it must not take them for those of others.
        self.announce(&new);
        for (signal, declaration) in new {
            self.begin(signal, declaration);
        }
    }

    /// Tells the report which signals are declared now, of which `new` are not running yet.
    fn announce(&self, new: &[(&'static Signal, Declaration)]) {
        let running = self.running.values();
        let running = running.map(|running| (running.signal, running.declaration.terms()));
        let new = new
            .iter()
            .map(|(signal, declared)| (*signal, declared.terms()));
        let declared: PerTarget<Terms> = running.chain(new).collect();
        self.shared.declared.send_replace(Some(declared));
    }

    /// Returns the description of a declared signal, the one that it has had before if there is one.
    fn signal(&mut self, declared: &Declaration) -> &'static Signal {
        let kind = declared.probe.kind();
        let (classes, voters) = (kind.classes(), kind.voters());
        let mut known = self.known.iter().copied();
        let same = known.find(|known| {
            known.name == declared.name
                && known.condition == declared.condition
                && known.classes == classes
                && known.voters == voters
        });
        if let Some(same) = same {
            return same;
        }
        let name: &'static str = declared.name.clone().leak();
        let signal: &'static Signal = Box::leak(Box::new(Signal {
            name,
            subject: name,
            metric_prefix: METRIC_PREFIX,
            condition: declared.condition.clone().leak(),
            ready_reason: DECLARED_READY_REASON,
            failed_reason: DECLARED_FAILED_REASON,
            reporter: REPORTER_READY,
            works: "its probe succeeds",
            unobserved: "its probe observes nothing",
            classes,
            voters,
        }));
        self.known.push(signal);
        signal
    }

    fn begin(&mut self, signal: &'static Signal, declaration: Declaration) {
        let period = declaration.thresholds.period;
        let leads = signal.voters == Voters::Leader;
        // One slot: a probe that is ahead of the vote waits instead of queueing stale rounds.
        let (finished, rounds) = mpsc::channel(1);
        let prober = Prober {
            signal,
            probe: declaration.probe.clone(),
            node: self.node.clone(),
            period,
            timeout: declaration.timeout,
            leadership: leads.then(|| self.shared.leadership.clone()),
            metrics: self.rounds.clone(),
        };
        let voting = Voting {
            signal,
            threshold: Threshold::new(declaration.thresholds),
            rounds,
            votes: self.shared.votes.clone(),
            metrics: self.votes.of(signal),
        };
        self.rounds.begin(every_result(signal));
        self.shared
            .votes
            .send_modify(|votes| votes.insert(signal, None));
        let schedule = Schedule::while_running(period, finished);
        let task = tokio::spawn(async move {
            tokio::select! {
                () = prober.run(schedule) => {}
                _ = voting.run(CancellationToken::new()) => {}
            }
        });
        let running = Running {
            signal,
            task: AbortOnDropHandle::new(task),
            declaration,
        };
        self.running
            .insert(running.declaration.name.clone(), running);
    }

    async fn end(&self, running: Running) {
        let Running { signal, task, .. } = running;
        task.abort();
        // Its last words must not be taken for those of a signal that has its name next.
        drop(task.await);
        self.shared.votes.send_modify(|votes| votes.remove(signal));
        self.votes.remove(signal);
        self.rounds.remove(every_result(signal));
    }
}

/// Reads the file. One that is missing is as one that is empty.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    match read_up_to(path, LARGEST) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("cannot read it: {error}")),
    }
}
