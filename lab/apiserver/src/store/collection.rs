//! The objects of a kind, and what happened to them lately.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Object;
use crate::news;

/// How many events of a collection are remembered.
const HISTORY: usize = 1_000;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) change: Change,
    /// The object after it; of a deletion the last state, with the version of the deletion.
    pub(crate) object: Arc<Object>,
    pub(crate) before: Option<Arc<Object>>,
}

/// The objects of a kind.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<String, Arc<Object>>,
    history: VecDeque<Event>,
    /// The newest version that the history does not tell of any more.
    pub(super) forgotten: u64,
    /// The version at which its definition was deleted, if that happened.
    pub(crate) ended: u64,
    pub(super) changed: news::Sender,
}

impl Clone for Collection {
    /// Nobody watches the clone yet.
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            history: self.history.clone(),
            forgotten: self.forgotten,
            ended: self.ended,
            changed: news::Sender::default(),
        }
    }
}

/// The history does not go back as far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// The oldest version that is known.
    pub(crate) oldest: u64,
}

impl Collection {
    /// What happened after a version.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Event>, Forgotten> {
        self.remembers(version)?;
        let first = self
            .history
            .partition_point(|event| event.object.version <= version);
        Ok(self.history.range(first..))
    }

    /// The objects as they were at a version.
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

    /// The newest version the history can go back to.
    pub(crate) fn oldest(&self) -> u64 {
        self.forgotten
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> news::Receiver {
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
        self.changed.tell();
    }
}
