//! One process of a program, which may die at any time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use karmada_runtime::program::{Identity, Program};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

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
pub(crate) struct Running {
    task: JoinHandle<bool>,
    stop: Arc<Notify>,
    is_stopping: bool,
}

impl Running {
    /// Starts a program that has been assembled.
    pub(crate) fn start(program: Program) -> Self {
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        Self {
            task: tokio::spawn(program.run_until(async move || stopped.notified().await)),
            stop,
            is_stopping: false,
        }
    }

    /// Stops it as SIGTERM does.
    pub(crate) fn stop(&mut self) {
        self.stop.notify_one();
        self.is_stopping = true;
    }

    /// Kills it.
    pub(crate) async fn kill(self) {
        self.task.abort();
        // The error is the cancellation requested above.
        drop(self.task.await);
    }

    /// Returns `true` unless it was told to stop.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.is_stopping
    }

    /// Returns `true` if it ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_wanted() && self.task.is_finished()
    }
}
