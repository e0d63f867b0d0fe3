//! The permits of a loop, each for a reconcile. One that waits for somebody else's program releases its permit meanwhile,
//! so that a program that is slow or dead holds up only the keys that need it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The most permits that a loop counts as released. Each reconcile keeps the objects that it has read.
const MOST_RELEASED: usize = 256;

tokio::task_local! {
    static PERMITS: Permits;
}

/// Waits for a program that is none of ours. Within a reconcile, its loop goes on with other keys.
pub async fn release_permit<F: Future>(waiting: F) -> F::Output {
    let Ok(permits) = PERMITS.try_with(Permits::clone) else {
        return waiting.await;
    };
    let _released = permits.release();
    waiting.await
}

/// The permits of a loop for reconciles, shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permits(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    released: AtomicUsize,
    freed: Notify,
}

/// The permit of a reconcile that waits, released until this is dropped.
struct Released(Permits);

impl Permits {
    /// Runs a reconcile, which may [release its permit](release_permit).
    pub(crate) async fn scope<F: Future>(&self, reconcile: F) -> F::Output {
        PERMITS.scope(self.clone(), reconcile).await
    }

    /// Returns the number of permits that are taken while so many reconciles run.
    pub(crate) fn taken(&self, running: usize) -> usize {
        let released = self.0.released.load(Ordering::Relaxed);
        running.saturating_sub(released.min(MOST_RELEASED))
    }

    /// Waits until a permit has become free.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    fn release(&self) -> Released {
        self.0.released.fetch_add(1, Ordering::Relaxed);
        self.0.freed.notify_one();
        Released(self.clone())
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        self.0.0.released.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// A reconcile that waits for others takes no permit, and a loop hears that one is free.
    #[tokio::test]
    async fn waiting_takes_no_permit() {
        let permits = Permits::default();
        let (end, ended) = oneshot::channel::<u8>();
        let mut reconcile = Box::pin(permits.scope(release_permit(ended)));
        assert_eq!(permits.taken(1), 1);
        assert!(reconcile.as_mut().now_or_never().is_none());
        assert_eq!(permits.taken(1), 0);
        permits.freed().await;
        end.send(7).unwrap();
        assert_eq!(reconcile.await, Ok(7));
        assert_eq!(permits.taken(1), 1);
    }

    /// Only so many permits are released, and whoever gives up waiting takes one again.
    #[tokio::test]
    async fn released_permits_are_bounded() {
        let permits = Permits::default();
        let released: Vec<_> = (0..MOST_RELEASED + 2).map(|_| permits.release()).collect();
        assert_eq!(permits.taken(released.len()), 2);
        drop(released);
        assert_eq!(permits.taken(2), 2);
    }

    /// Outside of a reconcile it is an ordinary wait.
    #[tokio::test]
    async fn others_just_wait() {
        assert_eq!(release_permit(async { 7 }).await, 7);
    }
}
