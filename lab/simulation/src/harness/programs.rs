//! The processes of the programs, any of which may stop or die at any time.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use karmada_runtime::program::{Identity, Program};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::connection::{Connections, SharedFate};
use super::message::{Process, Role};
use super::record::Record;
use crate::clock;

/// The address of the admin server, which no simulated program starts.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Returns a program that follows the simulated clock, to be assembled.
pub(crate) fn program(identity: Identity) -> Program {
    let mut program = Program::new(identity, NOWHERE);
    program.clock = clock::now;
    program
}

/// A process that runs.
#[derive(Debug)]
struct Running {
    task: JoinHandle<bool>,
    stop: Arc<Notify>,
    is_stopping: bool,
    fate: SharedFate,
}

impl Running {
    fn start(program: Program, fate: SharedFate) -> Self {
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        Self {
            task: tokio::spawn(program.run_until(async move || stopped.notified().await)),
            stop,
            is_stopping: false,
            fate,
        }
    }

    async fn kill(self) {
        self.task.abort();
        // The error is the cancellation requested above.
        drop(self.task.await);
    }

    /// Returns `true` unless it was told to stop, or has died.
    fn is_wanted(&self) -> bool {
        !self.is_stopping && !self.fate.lock().is_dead()
    }
}

/// A replica of a program, running or not.
#[derive(Debug, Default)]
struct Replica {
    /// The number of starts.
    lives: u16,
    running: Option<Running>,
}

impl Replica {
    /// Returns `true` if its process ended by itself.
    fn has_ended(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.is_wanted() && running.task.is_finished())
    }
}

/// The processes.
#[derive(Debug)]
pub struct Programs<R> {
    record: Record<R>,
    replicas: BTreeMap<(R, u8), Replica>,
}

impl<R: Role> Programs<R> {
    /// Creates the replicas. None of them runs yet.
    pub(crate) fn new(record: Record<R>) -> Self {
        let all = R::all().into_iter();
        let all = all.flat_map(|program| (0..R::REPLICAS).map(move |replica| (program, replica)));
        Self {
            record,
            replicas: all.map(|key| (key, Replica::default())).collect(),
        }
    }

    /// Returns every program, and the number of each of its replicas.
    pub(crate) fn all(&self) -> Vec<(R, u8)> {
        self.replicas.keys().copied().collect()
    }

    /// Starts a replica unless it runs already. One that is stopping is killed first.
    pub(crate) async fn start(
        &mut self,
        (program, replica): (R, u8),
        assemble: impl AsyncFnOnce(Connections<R>) -> Result<Program>,
    ) -> Result<()> {
        if self.is_wanted(program, replica) {
            return Ok(());
        }
        self.kill(program, replica).await;
        let slot = self.replicas.entry((program, replica)).or_default();
        let process = Process {
            program,
            replica,
            life: slot.lives,
        };
        slot.lives += 1;
        let connections = Connections::new(process, self.record.clone());
        let fate = Arc::clone(&connections.fate);
        slot.running = Some(Running::start(assemble(connections).await?, fate));
        Ok(())
    }

    /// Kills a replica.
    pub(crate) async fn kill(&mut self, program: R, replica: u8) {
        let slot = self.replicas.get_mut(&(program, replica));
        if let Some(running) = slot.and_then(|slot| slot.running.take()) {
            running.kill().await;
        }
    }

    /// Stops a replica as SIGTERM does.
    pub(crate) fn stop(&mut self, program: R, replica: u8) {
        let slot = self.replicas.get_mut(&(program, replica));
        if let Some(running) = slot.and_then(|slot| slot.running.as_mut()) {
            running.stop.notify_one();
            running.is_stopping = true;
        }
    }

    /// Lets a replica die at one of its next writes.
    pub(crate) fn crash(&self, program: R, replica: u8, write: u8, stored: bool) {
        if let Some(running) = self.running(program, replica) {
            running.fate.lock().crash(write, stored);
        }
    }

    /// Lets every process live on.
    pub(crate) fn spare(&self) {
        for running in self
            .replicas
            .values()
            .filter_map(|slot| slot.running.as_ref())
        {
            running.fate.lock().spare();
        }
    }

    fn running(&self, program: R, replica: u8) -> Option<&Running> {
        self.replicas.get(&(program, replica))?.running.as_ref()
    }

    /// Returns `true` if a replica runs and is not stopping.
    fn is_wanted(&self, program: R, replica: u8) -> bool {
        let running = self.running(program, replica);
        running.is_some_and(Running::is_wanted)
    }

    /// Returns the programs of which no replica runs.
    pub(crate) fn missing(&self) -> Vec<R> {
        let mut missing = R::all();
        missing
            .retain(|program| !(0..R::REPLICAS).any(|replica| self.is_wanted(*program, replica)));
        missing
    }

    /// Returns `true` if a process runs and is not stopping.
    pub(crate) fn runs(&self, process: Process<R>) -> bool {
        let slot = self.replicas.get(&(process.program, process.replica));
        // `lives` counts the running process too, and `life` only those before it.
        let is_newest = slot.is_some_and(|slot| slot.lives == process.life + 1);
        is_newest && self.is_wanted(process.program, process.replica)
    }

    /// Returns a process that ended by itself.
    pub(crate) fn ended(&self) -> Option<String> {
        let mut replicas = self.replicas.iter();
        let ((program, replica), _) = replicas.find(|(_, slot)| slot.has_ended())?;
        let name = program.user_agent();
        Some(format!("replica {replica} of {name} ended by itself"))
    }
}
