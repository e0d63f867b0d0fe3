//! The loop of a controller: takes keys from the queue and reconciles them, while leading.

use std::future::Future;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{BoxError, Chain};
use crate::lease::Leadership;
use crate::metrics::ControllerMetrics;
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

/// What the loop needs besides the controller.
pub struct Environment<K> {
    /// The keys to reconcile.
    pub queue: Queue<K>,
    /// Nothing is reconciled before every gate is open.
    pub readiness: Readiness,
    /// Nothing is reconciled while another replica leads.
    pub leadership: Leadership,
    /// Ends the loop; reconciles under way are finished.
    pub stopping: CancellationToken,
    /// What is counted.
    pub metrics: ControllerMetrics,
}

/// Runs `controller` until the program stops. The same key is never reconciled twice at once.
pub async fn run<C: Controller>(
    controller: Arc<C>,
    environment: Environment<C::Key>,
) -> Result<(), BoxError> {
    let stopping = environment.stopping.clone();
    tokio::select! {
        () = stopping.cancelled() => return Ok(()),
        () = environment.readiness.opened() => {}
    }
    loop {
        tokio::select! {
            () = stopping.cancelled() => return Ok(()),
            () = environment.leadership.acquired() => {}
        }
        environment.queue.clear();
        environment.queue.add_all(controller.keys());
        lead(&*controller, &environment).await;
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
