//! Tells those who wait that something is new, in the order in which they began to wait: tokio's
//! `watch` wakes them in a random one, and then no run could be played again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct News {
    /// How often something was new.
    count: AtomicU64,
    told: Notify,
}

/// Where news come from.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    news: Arc<News>,
}

/// Who waits for news.
#[derive(Debug)]
pub(crate) struct Receiver {
    news: Arc<News>,
    seen: u64,
}

impl Sender {
    /// Something is new.
    pub(crate) fn tell(&self) {
        self.news.count.fetch_add(1, Ordering::SeqCst);
        self.news.told.notify_waiters();
    }

    /// Waits for what is new from now on.
    pub(crate) fn subscribe(&self) -> Receiver {
        let news = Arc::clone(&self.news);
        Receiver {
            seen: news.count.load(Ordering::SeqCst),
            news,
        }
    }
}

impl Receiver {
    /// What was new until now has been seen to.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.news.count.load(Ordering::SeqCst);
    }

    /// Waits until something is new.
    pub(crate) async fn changed(&mut self) {
        loop {
            // Made before the look at the count, so that nothing between the two is missed.
            let told = self.news.told.notified();
            let count = self.news.count.load(Ordering::SeqCst);
            if count != self.seen {
                self.seen = count;
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_told_in_their_order() {
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
        sender.tell();
        waiting.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn news_from_before_the_wait_are_not_missed() {
        let sender = Sender::default();
        let mut receiver = sender.subscribe();
        sender.tell();
        receiver.changed().await;
        sender.tell();
        receiver.mark_seen();
        let hour = std::time::Duration::from_hours(1);
        tokio::time::timeout(hour, receiver.changed())
            .await
            .unwrap_err();
    }
}
