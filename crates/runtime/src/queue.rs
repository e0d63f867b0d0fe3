//! The work queue of a controller.
//!
//! Its guarantees are those of client-go's workqueue: a key is queued at most once, is never processed
//! twice at the same time, and is requeued when it was added while being processed. A failed key
//! returns with exponential backoff. In addition each key has a rate limit, because another writer
//! that undoes each of our writes would otherwise keep us busy without a pause. And keys may have ranks: the
//! highest is taken first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The number of times a key may be taken within a window; then it waits for the window's end.
const BURST: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);

/// A work queue shared by its clones.
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
    /// The keys that wait, by their ranks. No list is empty.
    queue: BTreeMap<Reverse<i32>, VecDeque<K>>,
    /// The ranks other than 0.
    ranks: HashMap<K, i32>,
    /// The keys in `queue`, and those added again while being processed.
    dirty: HashSet<K>,
    processing: HashSet<K>,
    delayed: BTreeSet<(Instant, K)>,
    /// Those of the delayed keys that are held back.
    held: HashSet<K>,
    failures: HashMap<K, u32>,
    /// The start of each key's current window and the number of times the key was taken since.
    windows: HashMap<K, (Instant, u32)>,
    /// The end of each key's current pace.
    paces: HashMap<K, Instant>,
}

/// The bounds of a key.
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
            queue: BTreeMap::new(),
            ranks: HashMap::new(),
            dirty: HashSet::new(),
            processing: HashSet::new(),
            delayed: BTreeSet::new(),
            held: HashSet::new(),
            failures: HashMap::new(),
            windows: HashMap::new(),
            paces: HashMap::new(),
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
        self.change(|state| {
            for key in keys {
                state.add(key);
            }
        });
    }

    /// Changes the state, and wakes the loop that takes keys.
    fn change<R>(&self, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let result = change(&mut self.shared.state.lock());
        self.shared.changed.notify_one();
        result
    }

    /// Has keys taken before those of lower ranks, from now on. A key that is not ranked has the rank 0.
    pub fn rank_all(&self, ranks: impl IntoIterator<Item = (K, i32)>) {
        let mut state = self.shared.state.lock();
        for (key, rank) in ranks {
            state.rank(key, rank);
        }
    }

    /// Adds a key at `due`, unless it is taken before that: whoever takes it decides anew.
    pub fn add_at(&self, key: K, due: Instant) {
        self.change(|state| state.delayed.insert((due, key)));
    }

    /// Adds a key like [`add_at`](Self::add_at) at a time of the clock that shows `now`.
    pub fn add_at_time(&self, key: K, at: Timestamp, now: Timestamp) {
        let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        self.add_at(key, Instant::now() + wait);
    }

    /// Adds a key, but at most once per `pace`: frequent changes that may wait are taken together.
    pub fn add_paced(&self, key: K, pace: Duration) {
        let now = Instant::now();
        self.change(|state| match state.paces.get(&key).copied() {
            Some(until) if now < until => {
                state.delayed.insert((until, key));
            }
            _ => {
                state.paces.insert(key.clone(), now + pace);
                state.add(key);
            }
        });
    }

    /// Returns the number of keys that are queued, being processed, or waiting for a later attempt.
    pub fn len(&self) -> usize {
        let state = self.shared.state.lock();
        let queued: usize = state.queue.values().map(VecDeque::len).sum();
        queued + state.processing.len() + state.delayed.len()
    }

    /// Returns `true` if no key is queued, being processed, or waiting for a retry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if keys are due that no reconcile has taken yet.
    pub fn has_backlog(&self) -> bool {
        !self.shared.state.lock().queue.is_empty()
    }

    /// Takes all keys that are due, in their order: for who reconciles by hand, as tests do.
    pub fn take_all(&self) -> Vec<K> {
        let mut state = self.shared.state.lock();
        let mut keys = Vec::new();
        while let Some(key) = state.pop() {
            state.dirty.remove(&key);
            keys.push(key);
        }
        keys
    }

    /// Waits for the next key and marks it as processing until [`Self::done`] or [`Self::retry`].
    pub(crate) async fn next(&self) -> K {
        loop {
            // `notify_one` stores a permit when nobody waits, so an addition between the check below
            // and the await is not missed.
            let changed = self.shared.changed.notified();
            let due = {
                let mut state = self.shared.state.lock();
                let now = Instant::now();
                state.enqueue_due(now);
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

    /// Releases a key after success and resets its backoff.
    pub(crate) fn done(&self, key: &K) {
        self.change(|state| {
            state.failures.remove(key);
            state.release(key);
        });
    }

    /// Returns `true` if a key was added again since it was taken.
    pub(crate) fn was_added(&self, key: &K) -> bool {
        self.shared.state.lock().dirty.contains(key)
    }

    /// Releases a key that is to be taken again, behind the others.
    pub(crate) fn give_back(&self, key: &K) {
        self.change(|state| {
            state.add(key.clone());
            state.release(key);
        });
    }

    /// Releases a key that was taken too early, and adds it at `until`, or when it is [resumed](Self::resume).
    pub(crate) fn hold(&self, key: &K, until: Instant) {
        self.change(|state| {
            state.delayed.insert((until, key.clone()));
            state.held.insert(key.clone());
            // Nothing was tried.
            if let Some((_, times)) = state.windows.get_mut(key) {
                *times = times.saturating_sub(1);
            }
            state.release(key);
        });
    }

    /// Adds a key if it is held.
    pub(crate) fn resume(&self, key: &K) {
        let mut state = self.shared.state.lock();
        if state.held.remove(key) {
            state.add(key.clone());
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    /// Releases a key after a failure and requeues it after the returned delay. Adding it requeues it
    /// sooner.
    pub(crate) fn retry(&self, key: &K) -> Duration {
        self.change(|state| {
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = MIN_BACKOFF
                // The shift is bounded so that it cannot overflow; 2^16 is far beyond the maximum anyway.
                .saturating_mul(1 << (*failures).min(16))
                .min(MAX_BACKOFF);
            *failures = failures.saturating_add(1);
            state.delayed.insert((Instant::now() + delay, key.clone()));
            state.release(key);
            delay
        })
    }

    /// Drops every key with its backoff and rate limit. Ranks stay.
    pub(crate) fn clear(&self) {
        let mut state = self.shared.state.lock();
        state.queue.clear();
        state.dirty.clear();
        state.processing.clear();
        state.delayed.clear();
        state.held.clear();
        state.failures.clear();
        state.windows.clear();
        state.paces.clear();
    }
}

impl<K: QueueKey> State<K> {
    fn add(&mut self, key: K) {
        // A key in processing only becomes dirty; `release` queues it.
        if self.dirty.insert(key.clone()) && !self.processing.contains(&key) {
            self.push(key);
        }
    }

    fn place(&self, key: &K) -> Reverse<i32> {
        Reverse(self.ranks.get(key).copied().unwrap_or_default())
    }

    fn push(&mut self, key: K) {
        let place = self.place(&key);
        self.queue.entry(place).or_default().push_back(key);
    }

    fn pop(&mut self) -> Option<K> {
        let mut first = self.queue.first_entry()?;
        let key = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        key
    }

    fn rank(&mut self, key: K, rank: i32) {
        let before = self.place(&key);
        if before == Reverse(rank) {
            return;
        }
        let is_queued = self.queue.get_mut(&before).is_some_and(|queued| {
            let place = queued.iter().position(|other| *other == key);
            place.and_then(|place| queued.remove(place)).is_some()
        });
        if self.queue.get(&before).is_some_and(VecDeque::is_empty) {
            self.queue.remove(&before);
        }
        if rank == 0 {
            self.ranks.remove(&key);
        } else {
            self.ranks.insert(key.clone(), rank);
        }
        if is_queued {
            self.push(key);
        }
    }

    fn enqueue_due(&mut self, now: Instant) {
        while self.delayed.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.add(key);
            }
        }
    }

    fn take(&mut self, now: Instant) -> Option<K> {
        loop {
            let Some(key) = self.pop() else {
                // An idle queue is the moment to forget windows that have passed.
                self.windows.retain(|_, (began, _)| now < *began + WINDOW);
                self.paces.retain(|_, until| now < *until);
                return None;
            };
            self.dirty.remove(&key);
            self.held.remove(&key);
            // This attempt stands in for the retry that was pending.
            self.delayed.retain(|(_, delayed)| *delayed != key);
            if let Some(until) = self.throttled_until(&key, now) {
                self.delayed.insert((until, key));
                continue;
            }
            self.processing.insert(key.clone());
            return Some(key);
        }
    }

    /// Counts an attempt at `key` and returns the end of the window if it exceeds the limit.
    fn throttled_until(&mut self, key: &K, now: Instant) -> Option<Instant> {
        let (began, times) = self.windows.entry(key.clone()).or_insert((now, 0));
        if now >= *began + WINDOW {
            (*began, *times) = (now, 0);
        }
        *times += 1;
        (*times > BURST).then(|| *began + WINDOW)
    }

    fn release(&mut self, key: &K) {
        self.processing.remove(key);
        if self.dirty.contains(key) {
            self.push(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A key waits at most once.
    #[tokio::test]
    async fn key_waits_once() {
        let queue = Queue::default();
        queue.add_all(["a", "a", "b"]);
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert!(queue.next().now_or_never().is_none());
    }

    /// A key in processing is requeued only when it is done.
    #[tokio::test]
    async fn busy_key_is_requeued_later() {
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

    /// The highest rank is taken first, in its order, and also by who was queued before.
    #[tokio::test(start_paused = true)]
    async fn highest_rank_goes_first() {
        let queue = Queue::default();
        queue.rank_all([("high", 9), ("low", -1), ("late", 9)]);
        queue.add_all(["low", "a", "late", "b", "high", "moved"]);
        queue.rank_all([("moved", 20), ("late", 0), ("high", 9)]);
        let mut taken = Vec::new();
        while let Some(key) = queue.next().now_or_never() {
            queue.done(&key);
            taken.push(key);
        }
        assert_eq!(taken, ["moved", "high", "a", "b", "late", "low"]);
        assert!(queue.is_empty());
        assert!(!queue.has_backlog());

        // A failed key keeps its rank.
        queue.add("high");
        let key = queue.next().await;
        queue.retry(&key);
        queue.add("a");
        tokio::time::advance(MIN_BACKOFF).await;
        assert_eq!(queue.next().await, "high");
    }

    /// A failed key is requeued with backoff up to a limit.
    #[tokio::test(start_paused = true)]
    async fn failed_key_backs_off() {
        let queue = Queue::default();
        queue.add("a");
        let mut delays = Vec::new();
        for _ in 0..12 {
            let key = queue.next().await;
            delays.push(queue.retry(&key));
        }
        assert_eq!(delays[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(delays[11], MAX_BACKOFF);
        let key = queue.next().await;
        queue.done(&key);
        queue.add("a");
        let key = queue.next().await;
        assert_eq!(queue.retry(&key), MIN_BACKOFF);
    }

    /// A key is added at its time unless it is taken before.
    #[tokio::test(start_paused = true)]
    async fn delayed_key_is_superseded() {
        let queue = Queue::default();
        let due = Instant::now() + Duration::from_secs(15);
        queue.add_at("a", due);
        queue.add_at("b", due);
        queue.add("b");
        assert_eq!(queue.next().await, "b");
        queue.done(&"b");
        assert_eq!(queue.next().await, "a");
        assert_eq!(Instant::now(), due);
        queue.done(&"a");
        assert!(queue.is_empty());
    }

    /// A key that is added without pause is rate limited.
    #[tokio::test(start_paused = true)]
    async fn incessant_key_is_limited() {
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

    /// A key that is held back has not been tried: it is taken as soon as it may be, however often it was added.
    #[tokio::test(start_paused = true)]
    async fn held_key_is_not_limited() {
        let queue = Queue::default();
        for _ in 0..2 * BURST {
            queue.add("a");
            let key = queue.next().now_or_never().unwrap();
            queue.hold(&key, Instant::now() + WINDOW);
        }
        queue.resume(&"a");
        assert_eq!(queue.next().now_or_never(), Some("a"));
    }

    /// A failed key that is added again does not wait.
    #[tokio::test(start_paused = true)]
    async fn added_key_skips_backoff() {
        let queue = Queue::default();
        queue.add("a");
        let key = queue.next().await;
        queue.retry(&key);
        queue.add("a");
        assert_eq!(queue.next().now_or_never(), Some("a"));
        queue.done(&"a");
        assert!(
            queue.is_empty(),
            "the delayed retry is dropped with the success"
        );
    }
}
