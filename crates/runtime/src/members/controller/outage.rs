//! The time in which a member is not reached. One key is tried at a time, with pauses; in those of an outage that lasts,
//! each of the others shows it, and waits.

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::BoxError;
use crate::queue::{Queue, QueueKey};

/// The pause after which a member that was not reached is tried again; it doubles with each failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// Short, because its end is when a member that is back gets the changes that it has missed.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The length of an outage, up to its next attempt, from which keys show it: short ones are nobody's concern.
pub(super) const LASTING: Duration = Duration::from_secs(10);
/// The time without an attempt after which one that fails begins another outage.
const FORGOTTEN: Duration = Duration::from_secs(20);

/// The reason why a member was not reached.
pub(super) type Reason = Arc<dyn Error + Send + Sync>;

pub(super) struct Outage<K> {
    since: Instant,
    /// The end of the pause before the next attempt.
    until: Instant,
    pause: Duration,
    /// That of the last attempt.
    reason: Reason,
    /// The keys that show it.
    shown: HashSet<K>,
    /// Those of them that were taken from the queue, in the order in which they are tried.
    held: VecDeque<K>,
}

/// The phase in which the loop of a member is.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// They are reconciled.
    Normal,
    /// One is tried after this time.
    Trying(Instant),
    /// They show the outage, until this time.
    Showing(Instant),
}

/// The turn of a key.
pub(super) enum Turn {
    Reconcile,
    Show(Reason),
}

/// The news of a member that the turn of a key brings.
pub(super) enum Reach<K> {
    Reached,
    /// It was not reached by an attempt that began at this time.
    Failed(BoxError, Instant),
    Unknown,
    /// The key shows the outage.
    Shown(K),
}

impl<K: QueueKey> Outage<K> {
    fn new(error: BoxError, since: Instant) -> Self {
        Self {
            since,
            until: Instant::now() + MIN_PAUSE,
            pause: MIN_PAUSE,
            reason: error.into(),
            shown: HashSet::new(),
            held: VecDeque::new(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        if self.is_pausing() && self.until - self.since >= LASTING {
            Phase::Showing(self.until)
        } else {
            Phase::Trying(self.until)
        }
    }

    fn is_pausing(&self) -> bool {
        Instant::now() < self.until
    }

    /// Returns the turn of a key that was taken to show the outage, unless it does so already: then it waits.
    pub(super) fn turn(&mut self, key: &K) -> Option<Turn> {
        if self.shown.insert(key.clone()) {
            return Some(Turn::Show(Arc::clone(&self.reason)));
        }
        self.held.push_back(key.clone());
        None
    }

    /// Ends the pause: only the next attempt tells whether the member is back.
    pub(super) fn try_now(&mut self) {
        self.until = Instant::now();
        self.pause = MIN_PAUSE / 2;
    }

    /// Gives those keys back to the queue that have changed since they were taken, to show it again, or else the one that
    /// is to be tried next.
    pub(super) fn release_changed(&mut self, queue: &Queue<K>) {
        for key in std::mem::take(&mut self.held) {
            if queue.was_added(&key) {
                self.shown.remove(&key);
                queue.give_back(&key);
            } else {
                self.held.push_back(key);
            }
        }
        if !queue.has_backlog()
            && let Some(next) = self.held.pop_front()
        {
            queue.give_back(&next);
        }
    }

    /// Gives the keys that wait back to the queue.
    fn release(&mut self, queue: &Queue<K>) {
        for key in self.held.drain(..) {
            queue.give_back(&key);
        }
    }

    /// Begins, prolongs or ends an outage after a turn.
    pub(super) fn note(outage: &mut Option<Self>, reach: Reach<K>, queue: &Queue<K>) {
        match (reach, outage.as_mut()) {
            (Reach::Reached, Some(over)) => {
                over.release(queue);
                *outage = None;
            }
            // Requests that were sent before may fail after: they count once.
            (Reach::Failed(..), Some(outage)) if outage.is_pausing() => {}
            (Reach::Failed(error, began), Some(outage)) if began < outage.until + FORGOTTEN => {
                outage.pause = (outage.pause * 2).min(MAX_PAUSE);
                outage.until = Instant::now() + outage.pause;
                outage.reason = error.into();
            }
            (Reach::Failed(error, began), forgotten) => {
                if let Some(forgotten) = forgotten {
                    forgotten.release(queue);
                }
                *outage = Some(Self::new(error, began));
            }
            (Reach::Shown(key), Some(outage)) => outage.held.push_back(key),
            (Reach::Shown(key), None) => queue.give_back(&key),
            (Reach::Reached, None) | (Reach::Unknown, _) => {}
        }
    }
}
