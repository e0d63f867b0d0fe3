//! Named tasks. Every task is joined, and one that ends before shutdown ends the process.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::error::{BoxError, Chain};

/// The running tasks of a program.
pub struct Tasks {
    ordinary: JoinSet<Ended>,
    last: JoinSet<Ended>,
    drained: CancellationToken,
}

struct Ended {
    name: &'static str,
    result: Result<(), BoxError>,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self {
            ordinary: JoinSet::new(),
            last: JoinSet::new(),
            drained: CancellationToken::new(),
        }
    }

    /// Spawns a task that ends once the program is stopping. If it ends earlier, with or without an
    /// error, the program stops with a non-zero exit code.
    pub fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), BoxError>> + Send + 'static,
    ) {
        self.ordinary.spawn(named(name, task).in_current_span());
    }

    /// Spawns a task that outlives all ordinary ones: its token is cancelled after the last of them
    /// has ended.
    pub fn spawn_last<T>(&mut self, name: &'static str, task: impl FnOnce(CancellationToken) -> T)
    where
        T: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let task = named(name, task(self.drained.clone()));
        self.last.spawn(task.in_current_span());
    }

    /// Waits for the first task that ends before shutdown, and logs its name.
    pub(crate) async fn ended_early(&mut self) {
        let ended = tokio::select! {
            biased;
            Some(ended) = self.ordinary.join_next() => ended,
            Some(ended) = self.last.join_next() => ended,
            else => std::future::pending().await,
        };
        match ended {
            Ok(Ended {
                name,
                result: Ok(()),
            }) => tracing::error!(task = name, "Task ended early"),
            Ok(Ended {
                name,
                result: Err(error),
            }) => {
                tracing::error!(task = name, error = %Chain(&*error), "Task failed");
            }
            Err(error) => tracing::error!(%error, "Task panicked"),
        }
    }

    /// Waits for the ordinary tasks and then for the last ones, each group for at most `limit`.
    /// Returns `true` if all of them ended without an error.
    pub(crate) async fn drain(&mut self, limit: Duration) -> bool {
        let ordinary = drain_set(&mut self.ordinary, limit).await;
        self.drained.cancel();
        let last = drain_set(&mut self.last, limit).await;
        ordinary && last
    }
}

async fn named(
    name: &'static str,
    task: impl Future<Output = Result<(), BoxError>> + Send,
) -> Ended {
    let result = task.instrument(tracing::info_span!("task", name)).await;
    Ended { name, result }
}

async fn drain_set(tasks: &mut JoinSet<Ended>, limit: Duration) -> bool {
    let all = async {
        let mut clean = true;
        while let Some(ended) = tasks.join_next().await {
            if let Ok(Ended {
                name,
                result: Err(error),
            }) = &ended
            {
                tracing::error!(task = name, error = %Chain(&**error), "Task failed while stopping");
            }
            clean &= matches!(ended, Ok(Ended { result: Ok(()), .. }));
        }
        clean
    };
    tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
        tracing::error!("Tasks did not end in time");
        false
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// A task that ends early is noticed with an error or without.
    #[tokio::test]
    async fn early_end_is_noticed() {
        for result in [Ok(()), Err("it broke".into())] {
            let mut tasks = Tasks::new();
            tasks.spawn("steady", std::future::pending());
            assert!(tasks.ended_early().now_or_never().is_none());
            tasks.spawn("early", async { result });
            tasks.ended_early().await;
        }
    }

    /// Last tasks end after all others.
    #[tokio::test(start_paused = true)]
    async fn last_tasks_end_last() {
        let mut tasks = Tasks::new();
        let (ended, mut order) = tokio::sync::mpsc::unbounded_channel();
        let last = ended.clone();
        tasks.spawn_last("last", |drained| async move {
            drained.cancelled().await;
            last.send("last").map_err(Into::into)
        });
        tasks.spawn("slow", async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            ended.send("slow").map_err(Into::into)
        });
        assert!(tasks.drain(LIMIT).await);
        assert_eq!(
            (order.recv().await, order.recv().await),
            (Some("slow"), Some("last"))
        );
    }

    /// A task that does not end is given up in time.
    #[tokio::test(start_paused = true)]
    async fn endless_task_is_given_up() {
        let mut tasks = Tasks::new();
        tasks.spawn("stuck", std::future::pending());
        let started = tokio::time::Instant::now();
        assert!(!tasks.drain(LIMIT).await);
        assert_eq!(started.elapsed(), LIMIT);
    }
}
