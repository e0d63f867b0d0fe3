//! The time in which a member is not reached. One key is tried at a time, with pauses; in those of an outage that lasts,
//! each of the others shows it once, and waits.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::BoxError;
use crate::queue::{Queue, QueueKey};

/// The pause after which a member that was not reached is tried again; it doubles with each failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// Short, because its end is when a member that is back gets what it has missed.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The length of an outage, up to its next attempt, from which keys show it: short ones are nobody's concern.
pub(super) const LASTING: Duration = Duration::from_secs(10);
/// The time without a failure after which the next one begins another outage. A request may take half of it.
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
    /// Those that were taken from the queue in this pause.
    held: Vec<K>,
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
    Failed(BoxError),
    Unknown,
    /// The key shows the outage.
    Shown(K),
}

impl<K: QueueKey> Outage<K> {
    fn new(error: BoxError) -> Self {
        let now = Instant::now();
        Self {
            since: now,
            until: now + MIN_PAUSE,
            pause: MIN_PAUSE,
            reason: error.into(),
            shown: HashSet::new(),
            held: Vec::new(),
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
        self.held.push(key.clone());
        None
    }

    /// Ends the pause: only the next attempt tells whether the member is back.
    pub(super) fn try_now(&mut self) {
        self.until = Instant::now();
        self.pause = MIN_PAUSE / 2;
    }

    /// Gives the keys that wait back to the queue.
    pub(super) fn release(&mut self, queue: &Queue<K>) {
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
            // What was sent before may fail after: it counts once.
            (Reach::Failed(_), Some(outage)) if outage.is_pausing() => {}
            (Reach::Failed(error), Some(outage)) if outage.until.elapsed() < FORGOTTEN => {
                outage.pause = (outage.pause * 2).min(MAX_PAUSE);
                outage.until = Instant::now() + outage.pause;
                outage.reason = error.into();
            }
            // Outside of a pause no key waits in an outage that is forgotten.
            (Reach::Failed(error), _) => *outage = Some(Self::new(error)),
            (Reach::Shown(key), Some(outage)) => outage.held.push(key),
            (Reach::Shown(key), None) => queue.give_back(&key),
            (Reach::Reached, None) | (Reach::Unknown, _) => {}
        }
    }
}
