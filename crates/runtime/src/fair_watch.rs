//! A value to wait for, as in tokio's `watch`, which wakes its waiters in random order.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A value whose waiters are woken in the order in which they began to wait. The loops of a program, which
/// wait for the same values, so always start in the same order, and a run can be repeated.
#[derive(Clone, Debug, Default)]
pub(crate) struct FairWatch<T>(Arc<Inner<T>>);

#[derive(Debug, Default)]
struct Inner<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> FairWatch<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Inner {
            value: Mutex::new(value),
            changed: Notify::new(),
        }))
    }

    /// Changes the value, and wakes the waiters if `change` returns `true`.
    pub(crate) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        if change(&mut self.0.value.lock()) {
            self.0.changed.notify_waiters();
        }
    }

    /// Returns the result of `read`.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.0.value.lock())
    }

    /// Waits until `is` returns `true`.
    pub(crate) async fn wait_for(&self, is: impl Fn(&T) -> bool) {
        loop {
            // Before the value is read, so that a change in between wakes it.
            let changed = self.0.changed.notified();
            if self.read(&is) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::task::JoinSet;

    use super::*;

    /// Many that wait are woken as they came, each time.
    #[tokio::test]
    async fn waiters_wake_in_order() {
        let value = FairWatch::new(0);
        let (waiting, woken) = (
            Arc::<Mutex<Vec<_>>>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let mut tasks = JoinSet::new();
        for waiter in 0..100 {
            let (value, waiting, woken) = (value.clone(), waiting.clone(), woken.clone());
            tasks.spawn(async move {
                waiting.lock().push(waiter);
                value.wait_for(|value| *value == 1).await;
                woken.lock().push(waiter);
            });
        }
        while waiting.lock().len() < 100 {
            tokio::task::yield_now().await;
        }
        value.send_if_modified(|value| std::mem::replace(value, 1) != 1);
        tasks.join_all().await;
        assert_eq!(*woken.lock(), *waiting.lock());
    }

    /// A change that is none wakes nobody.
    #[tokio::test]
    async fn unmodified_value_wakes_nobody() {
        let value = FairWatch::new(0);
        let mut waiting = std::pin::pin!(value.wait_for(|value| *value == 1));
        assert!(waiting.as_mut().now_or_never().is_none());
        value.send_if_modified(|_| false);
        assert!(waiting.as_mut().now_or_never().is_none());
        value.send_if_modified(|value| std::mem::replace(value, 1) != 1);
        assert!(waiting.now_or_never().is_some());
    }
}
