//! What is known of the units since the start: the state in which their objects were left.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use objects::Key;
use objects::drift::Settled;
use objects::managed_fields::Managers;
use serde_json::Value;

use crate::unit::{ManifestRef, Unit};

#[derive(Default)]
pub(crate) struct Records {
    units: HashMap<Key, UnitRecord>,
    /// The units that wait for a list, or for a kind that is not served yet.
    waiting: BTreeSet<Key>,
}

#[derive(Default)]
struct UnitRecord {
    /// The generation that was seen first, unless something was written since.
    untouched: Option<i64>,
    /// By the place of the manifest.
    settled: Vec<Option<Record>>,
}

/// A manifest and its object, when nothing was left to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    manifest: u64,
    object: Settled,
    /// True if the object was seen to have nothing of the manifest that we did not apply.
    is_ours: bool,
}

impl Records {
    /// Begins the record of a unit that is seen for the first time.
    pub(crate) fn begin<S>(&mut self, unit: &Unit<'_, S>) {
        let known = self.units.entry(unit.key.clone());
        known.or_insert_with(|| UnitRecord {
            untouched: unit.generation,
            settled: Vec::new(),
        });
    }

    /// Forgets a unit that is gone.
    pub(crate) fn forget(&mut self, unit: &Key) {
        self.units.remove(unit);
        self.waiting.remove(unit);
    }

    /// Returns `true` if neither the unit nor its objects have changed since the start.
    pub(crate) fn is_untouched<S>(&self, unit: &Unit<'_, S>) -> bool {
        let first = self.units.get(&unit.key).and_then(|known| known.untouched);
        first.is_some() && first == unit.generation
    }

    /// Records that an object of the unit was written.
    pub(crate) fn touch(&mut self, unit: &Key) {
        if let Some(known) = self.units.get_mut(unit) {
            known.untouched = None;
        }
    }

    /// Lets a unit wait for news of the kinds.
    pub(crate) fn wait(&mut self, unit: Key) {
        self.waiting.insert(unit);
    }

    /// Returns the units that wait, which do so no longer.
    pub(crate) fn take_waiting(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns the record of a manifest.
    pub(crate) fn of<S>(&self, one: &ManifestRef<'_, S>) -> Option<Record> {
        *self.units.get(&one.unit.key)?.settled.get(one.ordinal)?
    }

    /// Records that nothing is left to do about a manifest and its object.
    pub(crate) fn settle<S>(
        &mut self,
        one: &ManifestRef<'_, S>,
        object: &Value,
        managers: Managers,
    ) {
        let was_ours = self.of(one).is_some_and(|record| record.is_ours);
        let records = &mut self.units.entry(one.unit.key.clone()).or_default().settled;
        if records.len() <= one.ordinal {
            records.resize(one.ordinal + 1, None);
        }
        if let Some(record) = records.get_mut(one.ordinal) {
            *record = Some(Record {
                manifest: hash(one.manifest),
                object: Settled::of(object),
                is_ours: managers.have_applied_all(object).unwrap_or(was_ours),
            });
        }
    }
}

impl Record {
    /// Returns `true` if it is about the manifest as it is now.
    pub(crate) fn is_of<S>(self, one: &ManifestRef<'_, S>) -> bool {
        self.manifest == hash(one.manifest)
    }

    /// Returns `true` if the object is as it was left.
    pub(crate) fn has_left(self, object: &Value) -> bool {
        self.object == Settled::of(object)
    }

    /// Returns `true` if the object is as it was left, and we have applied all that it has of the manifest.
    pub(crate) fn has_left_ours(self, object: &Value) -> bool {
        self.is_ours && self.has_left(object)
    }
}

fn hash(manifest: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    manifest.to_string().hash(&mut hasher);
    hasher.finish()
}
