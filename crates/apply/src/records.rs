//! The memory of the sets since the start: the state in which their objects were left.

use std::collections::{BTreeSet, HashMap};

use objects::Key;
use objects::comparison::Comparison;
use objects::drift::Settled;
use objects::ownership::Instruction;
use serde_json::Value;

use crate::manifest_set::{ManifestRef, ManifestSet, hash};

#[derive(Default)]
pub(crate) struct Records {
    sets: HashMap<Key, SetRecord>,
    /// The sets that wait for a list, or for a kind that is not served yet.
    waiting: BTreeSet<Key>,
}

#[derive(Default)]
struct SetRecord {
    /// The generation that was seen first, unless something was written since.
    untouched: Option<i64>,
    /// By the place of the manifest.
    settled: Vec<Option<Record>>,
    /// True if an object that is not the set's was in the way of one.
    is_obstructed: bool,
}

/// A manifest and its object, when nothing was left to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    manifest: u64,
    object: Settled,
    /// True if the object was seen to have nothing of the manifest that we did not write.
    is_ours: bool,
    /// The comparison that was made.
    comparison: Comparison,
    /// The fingerprint of the script that had a say in it.
    interpreter: Option<u64>,
    /// The hash of the note on it, if one was looked for.
    note: Option<u64>,
}

impl Records {
    /// Begins the record of a set that is seen for the first time.
    pub(crate) fn begin<S>(&mut self, set: &ManifestSet<'_, S>) {
        let known = self.sets.entry(set.key.clone());
        known.or_insert_with(|| SetRecord {
            untouched: set.generation,
            ..SetRecord::default()
        });
    }

    /// Forgets a set that is gone.
    pub(crate) fn forget(&mut self, set: &Key) {
        self.sets.remove(set);
        self.waiting.remove(set);
    }

    /// Returns `true` if neither the set nor its objects have changed since the start.
    pub(crate) fn is_untouched<S>(&self, set: &ManifestSet<'_, S>) -> bool {
        let first = self.sets.get(&set.key).and_then(|known| known.untouched);
        first.is_some() && first == set.generation
    }

    /// Records that an object of the set was written.
    pub(crate) fn touch(&mut self, set: &Key) {
        if let Some(known) = self.sets.get_mut(set) {
            known.untouched = None;
        }
    }

    /// Lets a set wait for news of the kinds.
    pub(crate) fn wait(&mut self, set: Key) {
        self.waiting.insert(set);
    }

    /// Returns the sets that wait, which do so no longer.
    pub(crate) fn take_waiting(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns the record of a manifest.
    pub(crate) fn of<S>(&self, one: &ManifestRef<'_, S>) -> Option<Record> {
        *self.sets.get(&one.set.key)?.settled.get(one.ordinal)?
    }

    /// Records that nothing is left to do about a manifest and its object, which [`Record::is_ours`] or is not;
    /// `None` if that does not show.
    pub(crate) fn settle<S>(
        &mut self,
        one: &ManifestRef<'_, S>,
        object: &Value,
        is_ours: Option<bool>,
        told: &Instruction,
    ) {
        let before = self.of(one);
        let set = self.sets.entry(one.set.key.clone()).or_default();
        set.is_obstructed = false;
        if set.settled.len() <= one.ordinal {
            set.settled.resize(one.ordinal + 1, None);
        }
        if let Some(record) = set.settled.get_mut(one.ordinal) {
            *record = Some(Record {
                manifest: one.hash(),
                object: Settled::of(object),
                is_ours: is_ours.unwrap_or_else(|| before.is_some_and(|record| record.is_ours)),
                comparison: told.compare,
                interpreter: told.retain.by.fingerprint(),
                note: before.and_then(|record| record.note),
            });
        }
    }

    /// Forgets the state in which the object of a manifest was left: somebody has changed it, and it stays so.
    pub(crate) fn unsettle<S>(&mut self, one: &ManifestRef<'_, S>) {
        let set = self.sets.get_mut(&one.set.key);
        if let Some(record) = set.and_then(|set| set.settled.get_mut(one.ordinal)) {
            *record = None;
        }
    }

    /// Records the note on a manifest.
    pub(crate) fn note<S>(&mut self, one: &ManifestRef<'_, S>, note: Option<&str>) {
        let set = self.sets.get_mut(&one.set.key);
        let record = set.and_then(|set| set.settled.get_mut(one.ordinal));
        if let Some(Some(record)) = record {
            record.note = Some(hash(&note));
        }
    }

    /// Records that an object that is not the set's is in the way of one.
    pub(crate) fn obstruct(&mut self, set: &Key) {
        if let Some(known) = self.sets.get_mut(set) {
            known.is_obstructed = true;
        }
    }

    /// Returns `true` if nothing is known of the object of a manifest: it was neither seen, nor another in its way.
    pub(crate) fn has_nothing_of<S>(&self, one: &ManifestRef<'_, S>) -> bool {
        let set = self.sets.get(&one.set.key);
        self.of(one).is_none() && !set.is_some_and(|set| set.is_obstructed)
    }
}

impl Record {
    /// Returns `true` if it is about the manifest as it is now.
    pub(crate) fn is_of<S>(self, one: &ManifestRef<'_, S>) -> bool {
        self.manifest == one.hash()
    }

    /// Returns `true` if the same script had a say in it, or none has and had.
    pub(crate) fn is_by(self, interpreter: Option<u64>) -> bool {
        self.interpreter == interpreter
    }

    /// Returns `true` if the object is as it was left.
    pub(crate) fn has_left(self, object: &Value) -> bool {
        Settled::of(object).is_as(self.object)
    }

    /// Returns `true` if a comparison would show the same as one before.
    pub(crate) fn is_compared(self, comparison: Comparison) -> bool {
        !comparison.looks_beyond() || self.comparison == comparison
    }

    /// Returns `true` if the object is as it was left, but for its labels and annotations.
    pub(crate) fn has_left_content(self, object: &Value) -> bool {
        Settled::of(object).has_content_of(self.object)
    }

    /// Returns `true` if the object is as it was left, and we have written all that it has of the manifest.
    pub(crate) fn has_left_ours(self, object: &Value) -> bool {
        self.is_ours && self.has_left(object)
    }

    /// Returns `true` if this was found to be the note on the manifest.
    pub(crate) fn has_note(self, note: Option<&str>) -> bool {
        self.note == Some(hash(&note))
    }
}
