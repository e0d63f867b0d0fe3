//! The exclusion between loops that write to the same ingress: one keeps its status up to date, the
//! others release it. A status written after the release would stay for ever, because nobody reconciles
//! an ingress that is not ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_runtime::queue::Queue;
use objects::Key;
use parking_lot::Mutex;

/// The ingresses that a loop is writing to. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    taken: Arc<Mutex<BTreeMap<Key, Taken>>>,
}

#[derive(Debug)]
struct Taken {
    by: Turn,
    /// The queues of the other loops that came too early.
    waiting: Vec<Queue<Key>>,
}

/// The loop that has the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Status,
    /// That of a load balancer, by its place.
    Release(usize),
}

/// A turn that ends when it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when it is dropped"]
pub(crate) struct Guard {
    turns: Turns,
    key: Key,
}

impl Turns {
    /// Takes the turn for `key`. While another loop has it, returns `None` and adds the key to `queue`
    /// as soon as that loop is done.
    pub(crate) fn take(&self, key: &Key, turn: Turn, queue: &Queue<Key>) -> Option<Guard> {
        let mut taken = self.taken.lock();
        if let Some(other) = taken.get_mut(key)
            && other.by != turn
        {
            other.waiting.push(queue.clone());
            return None;
        }
        // A turn of the same loop may still have its guard: who waits for that one waits for this one.
        let replaced = taken.remove(key);
        let by = Taken {
            by: turn,
            waiting: replaced.map_or_else(Vec::new, |replaced| replaced.waiting),
        };
        taken.insert(key.clone(), by);
        Some(Guard {
            turns: self.clone(),
            key: key.clone(),
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let taken = self.turns.taken.lock().remove(&self.key);
        for queue in taken.into_iter().flat_map(|taken| taken.waiting) {
            queue.add(self.key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::key;

    /// A loop that comes too early is woken when the other is done.
    #[test]
    fn waiting_loop_is_woken() {
        let (turns, queue) = (Turns::default(), Queue::default());
        let status = turns.take(&key("i"), Turn::Status, &queue).unwrap();
        assert!(turns.take(&key("i"), Turn::Release(0), &queue).is_none());
        assert!(turns.take(&key("j"), Turn::Release(0), &queue).is_some());
        assert!(queue.is_empty());
        drop(status);
        assert_eq!(queue.len(), 1);
        let release = turns.take(&key("i"), Turn::Release(0), &queue).unwrap();
        assert!(turns.take(&key("i"), Turn::Status, &queue).is_none());
        drop(release);
        assert!(turns.take(&key("i"), Turn::Status, &queue).is_some());
    }

    /// A loop that takes its turn again does not lose the other that waits.
    #[test]
    fn repeated_turn_keeps_waiter() {
        let (turns, queue) = (Turns::default(), Queue::default());
        let first = turns.take(&key("i"), Turn::Status, &queue).unwrap();
        assert!(turns.take(&key("i"), Turn::Release(0), &queue).is_none());
        let second = turns.take(&key("i"), Turn::Status, &queue).unwrap();
        assert!(queue.is_empty());
        drop((first, second));
        assert_eq!(queue.len(), 1);
    }
}
