//! The loop of a controller: takes keys from the queue and reconciles them, while leading.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::future::Future;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{BoxError, Chain};
use crate::lease::Leadership;
use crate::metrics::ControllerMetrics;
use crate::program::Program;
use crate::queue::{Queue, QueueKey};
use crate::readiness::Readiness;

/// How many keys are reconciled at once. The API server's throughput grows no further with more.
const CONCURRENCY: usize = 8;

/// What brings one object of the primary kind to where it should be.
pub trait Controller: Send + Sync + 'static {
    /// Which object.
    type Key: QueueKey;

    /// Every object there is, to be reconciled when leadership begins.
    fn keys(&self) -> Vec<Self::Key>;

    /// Fetches from the caches, decides, applies. Called again after a delay when it fails.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Runs `controller` on the keys of `queue` as a task of `program`: not before every gate is open,
/// and only while it leads. The same key is never reconciled twice at once.
pub fn spawn<C: Controller>(
    program: &mut Program,
    controller: C,
    queue: Queue<C::Key>,
    leadership: Leadership,
) {
    let environment = Environment {
        readiness: program.readiness.clone(),
        leadership,
        stopping: program.stopping.clone(),
        metrics: ControllerMetrics::register(&mut program.registry, queue.clone()),
        queue,
    };
    program
        .tasks
        .spawn("reconcile", run(controller, environment));
}

/// What the loop needs besides the controller.
struct Environment<K> {
    queue: Queue<K>,
    readiness: Readiness,
    leadership: Leadership,
    /// Ends the loop; reconciles under way are finished.
    stopping: CancellationToken,
    metrics: ControllerMetrics,
}

async fn run<C: Controller>(
    controller: C,
    environment: Environment<C::Key>,
) -> Result<(), BoxError> {
    let stopping = environment.stopping.clone();
    tokio::select! {
        biased;
        () = stopping.cancelled() => return Ok(()),
        () = environment.readiness.opened() => {}
    }
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = environment.leadership.acquired() => {}
        }
        environment.queue.clear();
        environment.queue.add_all(controller.keys());
        lead(&controller, &environment).await;
    }
}

/// Reconciles until leadership is lost or the program stops.
async fn lead<C: Controller>(controller: &C, environment: &Environment<C::Key>) {
    let Environment {
        queue,
        leadership,
        stopping,
        metrics,
        ..
    } = environment;
    let mut running = FuturesUnordered::new();
    let mut lost = std::pin::pin!(leadership.lost());
    loop {
        tokio::select! {
            biased;
            () = &mut lost => return,
            () = stopping.cancelled() => break,
            Some(()) = running.next() => {}
            key = queue.next(), if running.len() < CONCURRENCY => {
                running.push(reconcile_one(controller, queue, metrics, key));
            }
        }
    }
    while let Some(()) = running.next().await {}
}

async fn reconcile_one<C: Controller>(
    controller: &C,
    queue: &Queue<C::Key>,
    metrics: &ControllerMetrics,
    key: C::Key,
) {
    let started = Instant::now();
    let result = controller.reconcile(&key).await;
    metrics.reconciled(started.elapsed(), result.is_ok());
    match result {
        Ok(()) => queue.done(&key),
        Err(error) => {
            let delay = queue.failed(&key);
            tracing::warn!(?key, error = %Chain(&*error), ?delay, "Reconcile failed, will retry");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;
    use prometheus_client::registry::Registry;
    use tokio::sync::watch;

    use super::*;

    /// Fails each key once, and records what it is given.
    struct Recorder {
        seen: Mutex<Vec<u8>>,
        told: watch::Sender<usize>,
    }

    impl Controller for Arc<Recorder> {
        type Key = u8;

        fn keys(&self) -> Vec<u8> {
            vec![1, 2]
        }

        async fn reconcile(&self, key: &u8) -> Result<(), BoxError> {
            let first = {
                let mut seen = self.seen.lock();
                let first = !seen.contains(key);
                seen.push(*key);
                first
            };
            self.told.send_modify(|told| *told += 1);
            if first { Err("once".into()) } else { Ok(()) }
        }
    }

    fn start(
        leadership: Leadership,
        readiness: Readiness,
    ) -> (Arc<Recorder>, Queue<u8>, CancellationToken) {
        let (queue, stopping) = (Queue::default(), CancellationToken::new());
        let recorder = Arc::new(Recorder {
            seen: Mutex::default(),
            told: watch::Sender::new(0),
        });
        let environment = Environment {
            queue: queue.clone(),
            readiness,
            leadership,
            stopping: stopping.clone(),
            metrics: ControllerMetrics::register(&mut Registry::default(), queue.clone()),
        };
        tokio::spawn(run(Arc::clone(&recorder), environment));
        (recorder, queue, stopping)
    }

    #[tokio::test(start_paused = true)]
    async fn every_key_is_reconciled_when_leadership_begins_and_again_after_a_failure() {
        let (recorder, queue, stopping) = start(Leadership::always(), Readiness::new());
        let mut told = recorder.told.subscribe();
        told.wait_for(|told| *told == 4).await.unwrap();
        assert_eq!(*recorder.seen.lock(), [1, 2, 1, 2]);
        queue.add(7);
        told.wait_for(|told| *told == 6).await.unwrap();
        assert_eq!(recorder.seen.lock()[4..], [7, 7]);
        stopping.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_reconciled_before_every_gate_is_open() {
        let readiness = Readiness::new();
        let (first, second) = (readiness.gate("first"), readiness.gate("second"));
        let (recorder, ..) = start(Leadership::always(), readiness);
        first.open();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(recorder.seen.lock().is_empty());
        second.open();
        recorder
            .told
            .subscribe()
            .wait_for(|told| *told == 4)
            .await
            .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_woken_without_leadership_is_not_worked_on() {
        let (leadership, held_until) = Leadership::for_tests();
        let (recorder, queue, _) = start(leadership, Readiness::new());
        queue.add(7);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(recorder.seen.lock().is_empty());
        held_until.send_replace(Some(Instant::now() + Duration::from_mins(1)));
        recorder
            .told
            .subscribe()
            .wait_for(|told| *told == 4)
            .await
            .unwrap();
        assert_eq!(*recorder.seen.lock(), [1, 2, 1, 2]);
        tokio::time::sleep(Duration::from_secs(61)).await;
        queue.add(7);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(recorder.seen.lock().len(), 4, "leadership ran out");
    }
}
