//! Work that begins and ends while a program runs, in one task of the program.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::program::Program;

/// A task of a program that runs any number of futures; clones share it.
#[derive(Clone, Debug)]
pub struct Background {
    futures: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

impl Background {
    /// Spawns the task `name` of `program`.
    pub fn spawn(program: &mut Program, name: &'static str) -> Self {
        let (futures, mut added) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        let stopping = program.stopping.clone();
        program.tasks.spawn(name, async move {
            let mut running = FuturesUnordered::new();
            loop {
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => return Ok(()),
                    Some(future) = added.recv() => running.push(future),
                    Some(()) = running.next() => {}
                }
            }
        });
        Self { futures }
    }

    /// Runs `future` until it ends or the program stops.
    pub fn run(&self, future: impl Future<Output = ()> + Send + 'static) {
        // Without a receiver the program stops, and nothing new has to begin.
        drop(self.futures.send(Box::pin(future)));
    }
}
