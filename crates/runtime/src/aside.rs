//! Reconciles that wait for somebody else's program: their loop goes on with other keys meanwhile, so that one that is
//! slow or dead holds up only the keys that need it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The reconciles of a loop that may wait aside. Each keeps the objects that it has read.
const MOST: usize = 256;

tokio::task_local! {
    static PLACES: Places;
}

/// Waits for a program that is none of ours. Within a reconcile, its loop goes on with other keys.
pub async fn aside<F: Future>(waiting: F) -> F::Output {
    let Ok(places) = PLACES.try_with(Places::clone) else {
        return waiting.await;
    };
    let _aside = places.leave();
    waiting.await
}

/// The places of a loop for reconciles, shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    aside: AtomicUsize,
    freed: Notify,
}

/// A reconcile that waits aside, until it is dropped.
struct Aside(Places);

impl Places {
    /// Runs a reconcile, which may wait [aside].
    pub(crate) async fn seat<F: Future>(&self, reconcile: F) -> F::Output {
        PLACES.scope(self.clone(), reconcile).await
    }

    /// Returns the number of places that are taken while so many reconciles run.
    pub(crate) fn taken(&self, running: usize) -> usize {
        let aside = self.0.aside.load(Ordering::Relaxed);
        running.saturating_sub(aside.min(MOST))
    }

    /// Waits until a place has become free.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    fn leave(&self) -> Aside {
        self.0.aside.fetch_add(1, Ordering::Relaxed);
        self.0.freed.notify_one();
        Aside(self.clone())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.0.aside.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// A reconcile that waits aside takes no place, and a loop hears that one is free.
    #[tokio::test]
    async fn waiting_takes_no_place() {
        let places = Places::default();
        let (end, ended) = oneshot::channel::<u8>();
        let mut reconcile = Box::pin(places.seat(aside(ended)));
        assert_eq!(places.taken(1), 1);
        assert!(reconcile.as_mut().now_or_never().is_none());
        assert_eq!(places.taken(1), 0);
        places.freed().await;
        end.send(7).unwrap();
        assert_eq!(reconcile.await, Ok(7));
        assert_eq!(places.taken(1), 1);
    }

    /// Only so many may wait aside, and whoever gives up waiting does no longer.
    #[tokio::test]
    async fn places_aside_are_bounded() {
        let places = Places::default();
        let left: Vec<_> = (0..MOST + 2).map(|_| places.leave()).collect();
        assert_eq!(places.taken(left.len()), 2);
        drop(left);
        assert_eq!(places.taken(2), 2);
    }

    /// Outside of a reconcile it is an ordinary wait.
    #[tokio::test]
    async fn others_just_wait() {
        assert_eq!(aside(async { 7 }).await, 7);
    }
}
