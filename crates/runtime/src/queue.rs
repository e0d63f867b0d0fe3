//! The work queue: which keys wait to be reconciled.
//!
//! A key waits at most once, is never worked on twice at the same time, and comes back when it was
//! added while being worked on. A failed key comes back after a growing delay, and none is worked on
//! without end and without a pause, as when another writer undoes each write of ours.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How often a key may be taken within a window; after that it waits for the window's end.
const BURST: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);

/// A work queue; clones share it.
#[derive(Debug)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    waiting: VecDeque<K>,
    /// The keys in `waiting`, and those busy that were added again.
    wanted: HashSet<K>,
    busy: HashSet<K>,
    delayed: BTreeSet<(Instant, K)>,
    failures: HashMap<K, u32>,
    /// When the newest window of each key began, and how often the key was taken since.
    taken: HashMap<K, (Instant, u32)>,
}

/// Every bound a key needs.
pub trait QueueKey: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {}
impl<K: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static> QueueKey for K {}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: QueueKey> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            wanted: HashSet::new(),
            busy: HashSet::new(),
            delayed: BTreeSet::new(),
            failures: HashMap::new(),
            taken: HashMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: Notify::new(),
            }),
        }
    }
}

impl<K: QueueKey> Queue<K> {
    /// Adds a key.
    pub fn add(&self, key: K) {
        self.add_all([key]);
    }

    /// Adds keys.
    pub fn add_all(&self, keys: impl IntoIterator<Item = K>) {
        let mut state = self.shared.state.lock();
        for key in keys {
            state.add(key);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// How many keys wait, are worked on, or come back later after a failure.
    pub fn len(&self) -> usize {
        let state = self.shared.state.lock();
        state.waiting.len() + state.busy.len() + state.delayed.len()
    }

    /// Whether there is no work, now or later.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next key, which then is busy until [`Self::done`] or [`Self::failed`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.shared.changed.notified();
            let due = {
                let mut state = self.shared.state.lock();
                let now = Instant::now();
                state.wake(now);
                if let Some(key) = state.take(now) {
                    return key;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match due {
                Some(due) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => changed.await,
            }
        }
    }

    /// The key's work succeeded.
    pub(crate) fn done(&self, key: &K) {
        let mut state = self.shared.state.lock();
        state.failures.remove(key);
        state.release(key);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// The key's work failed: it comes back after the delay returned, or sooner when added.
    pub(crate) fn failed(&self, key: &K) -> Duration {
        let mut state = self.shared.state.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        let delay = FIRST_DELAY
            .saturating_mul(1 << (*failures).min(16))
            .min(LONGEST_DELAY);
        *failures = failures.saturating_add(1);
        state.delayed.insert((Instant::now() + delay, key.clone()));
        state.release(key);
        drop(state);
        self.shared.changed.notify_one();
        delay
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let mut state = self.shared.state.lock();
        state.waiting.clear();
        state.wanted.clear();
        state.busy.clear();
        state.delayed.clear();
        state.failures.clear();
        state.taken.clear();
    }
}

impl<K: QueueKey> State<K> {
    fn add(&mut self, key: K) {
        if self.wanted.insert(key.clone()) && !self.busy.contains(&key) {
            self.waiting.push_back(key);
        }
    }

    fn wake(&mut self, now: Instant) {
        while self.delayed.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.add(key);
            }
        }
    }

    fn take(&mut self, now: Instant) -> Option<K> {
        loop {
            let Some(key) = self.waiting.pop_front() else {
                self.taken.retain(|_, (began, _)| now < *began + WINDOW);
                return None;
            };
            self.wanted.remove(&key);
            self.delayed.retain(|(_, delayed)| *delayed != key);
            if let Some(until) = self.count(&key, now) {
                self.delayed.insert((until, key));
                continue;
            }
            self.busy.insert(key.clone());
            return Some(key);
        }
    }

    /// Counts that a key is taken; or says until when it must wait.
    fn count(&mut self, key: &K, now: Instant) -> Option<Instant> {
        let (began, times) = self.taken.entry(key.clone()).or_insert((now, 0));
        if now >= *began + WINDOW {
            (*began, *times) = (now, 0);
        }
        *times += 1;
        (*times > BURST).then(|| *began + WINDOW)
    }

    fn release(&mut self, key: &K) {
        self.busy.remove(key);
        if self.wanted.contains(key) {
            self.waiting.push_back(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_key_waits_at_most_once() {
        let queue = Queue::default();
        queue.add_all(["a", "a", "b"]);
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_busy_key_comes_back_only_when_it_is_done() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert!(queue.next().now_or_never().is_none());
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_key_comes_back_later_each_time_up_to_a_limit() {
        let queue = Queue::default();
        queue.add("a");
        let mut delays = Vec::new();
        for _ in 0..12 {
            let key = queue.next().await;
            delays.push(queue.failed(&key));
        }
        assert_eq!(delays[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(delays[11], LONGEST_DELAY);
        let key = queue.next().await;
        queue.done(&key);
        queue.add("a");
        let key = queue.next().await;
        assert_eq!(queue.failed(&key), FIRST_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_added_again_and_again_is_taken_only_so_often() {
        let queue = Queue::default();
        let mut taken = 0;
        let again = async {
            loop {
                queue.add_all(["a", "b"]);
                let key = queue.next().await;
                queue.done(&key);
                taken += u32::from(key == "a");
            }
        };
        let seconds = Duration::from_millis(9_500);
        tokio::time::timeout(seconds, again).await.unwrap_err();
        assert_eq!(taken, 10 * BURST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_key_that_is_added_again_does_not_wait() {
        let queue = Queue::default();
        queue.add("a");
        let key = queue.next().await;
        queue.failed(&key);
        queue.add("a");
        assert_eq!(queue.next().now_or_never(), Some("a"));
        queue.done(&"a");
        assert!(
            queue.is_empty(),
            "the delayed retry is dropped with the success"
        );
    }
}
