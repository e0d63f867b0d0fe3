//! The objects of a kind, and their recent events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Object;
use crate::notify;

/// The limit of events in the history of a collection; watches and lists from before it expire with
/// 410.
const HISTORY: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) change: Change,
    /// The object after the change. For a deletion, its last state with the version of the
    /// deletion.
    pub(crate) object: Arc<Object>,
    pub(crate) before: Option<Arc<Object>>,
}

#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<String, Arc<Object>>,
    history: VecDeque<Event>,
    /// The newest version that is no longer in the history.
    pub(super) forgotten: u64,
    /// The version at which its definition was deleted, or 0.
    pub(crate) ended: u64,
    pub(super) changed: notify::Sender,
}

impl Clone for Collection {
    /// Clones objects and history, but no watches.
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            history: self.history.clone(),
            forgotten: self.forgotten,
            ended: self.ended,
            changed: notify::Sender::default(),
        }
    }
}

/// The error for a version that is no longer in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// The oldest version in the history.
    pub(crate) oldest: u64,
}

impl Collection {
    /// Returns the events after a version.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Event>, Forgotten> {
        self.remembers(version)?;
        let first = self
            .history
            .partition_point(|event| event.object.version <= version);
        Ok(self.history.range(first..))
    }

    /// Returns the objects as they were at a version, by undoing later events.
    pub(crate) fn at(&self, version: u64) -> Result<BTreeMap<String, Arc<Object>>, Forgotten> {
        self.remembers(version)?;
        let mut objects = self.objects.clone();
        for event in self
            .history
            .iter()
            .rev()
            .take_while(|event| event.object.version > version)
        {
            match &event.before {
                Some(before) => objects.insert(before.key.clone(), Arc::clone(before)),
                None => objects.remove(&event.object.key),
            };
        }
        Ok(objects)
    }

    /// Returns the oldest version that the history can go back to.
    pub(crate) fn oldest(&self) -> u64 {
        self.forgotten
    }

    /// Subscribes to events.
    pub(crate) fn changes(&self) -> notify::Receiver {
        self.changed.subscribe()
    }

    fn remembers(&self, version: u64) -> Result<(), Forgotten> {
        if version < self.forgotten {
            return Err(Forgotten {
                oldest: self.forgotten,
            });
        }
        Ok(())
    }

    pub(super) fn record(&mut self, event: Event) {
        if self.history.len() >= HISTORY
            && let Some(oldest) = self.history.pop_front()
        {
            self.forgotten = oldest.object.version;
        }
        self.history.push_back(event);
        self.changed.notify();
    }
}
