//! Change notifications that wake waiters in the order in which they began to wait. tokio's `watch`
//! wakes them in random order, which would make runs irreproducible.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    /// Number of changes so far.
    count: AtomicU64,
    notify: Notify,
}

/// The sending side.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    shared: Arc<Shared>,
}

/// The waiting side.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    seen: u64,
}

impl Sender {
    /// Notifies all receivers of a change.
    pub(crate) fn notify(&self) {
        self.shared.count.fetch_add(1, Ordering::SeqCst);
        self.shared.notify.notify_waiters();
    }

    /// Returns a receiver of the changes from now on.
    pub(crate) fn subscribe(&self) -> Receiver {
        let shared = Arc::clone(&self.shared);
        Receiver {
            seen: shared.count.load(Ordering::SeqCst),
            shared,
        }
    }
}

impl Receiver {
    /// Marks all changes so far as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.shared.count.load(Ordering::SeqCst);
    }

    /// Waits for a change that is not yet marked as seen.
    pub(crate) async fn changed(&mut self) {
        loop {
            // Registered before the count is read, so that a change between the two is not missed.
            let notified = self.shared.notify.notified();
            let count = self.shared.count.load(Ordering::SeqCst);
            if count != self.seen {
                self.seen = count;
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiters_are_woken_in_order() {
        let (sender, order) = (Sender::default(), Arc::new(Mutex::new(Vec::new())));
        let mut waiting = tokio::task::JoinSet::new();
        for nth in 0..20 {
            let (mut receiver, order) = (sender.subscribe(), Arc::clone(&order));
            waiting.spawn(async move {
                receiver.changed().await;
                order.lock().unwrap().push(nth);
            });
        }
        tokio::task::yield_now().await;
        sender.notify();
        waiting.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    /// A change before the wait is not missed.
    #[tokio::test(start_paused = true)]
    async fn early_change_is_not_missed() {
        let sender = Sender::default();
        let mut receiver = sender.subscribe();
        sender.notify();
        receiver.changed().await;
        sender.notify();
        receiver.mark_seen();
        let hour = std::time::Duration::from_hours(1);
        tokio::time::timeout(hour, receiver.changed())
            .await
            .unwrap_err();
    }
}
