//! The knowledge of the Works of a member since the start.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use karmada_api::Work;
use karmada_rules::execution::{Settled, is_ours_alone};
use objects::Key;
use serde_json::Value;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) works: HashMap<Key, Known>,
    /// The Works that wait for a list, or for a kind that is not served yet.
    pub(crate) waiting: BTreeSet<Key>,
}

/// The knowledge of a Work.
#[derive(Default)]
pub(crate) struct Known {
    /// The generation that was seen first, unless something was written since.
    pub(crate) adopted: Option<i64>,
    /// By the place of the manifest.
    pub(crate) settled: Vec<Option<Record>>,
}

/// A manifest and its object, when nothing was left to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) manifest: u64,
    pub(crate) object: Settled,
    /// True if the object was seen to have nothing of the manifest that we did not apply.
    pub(crate) is_ours: bool,
}

/// One manifest of a Work.
#[derive(Clone, Copy)]
pub(crate) struct OfWork<'a> {
    pub(crate) work: &'a Work,
    pub(crate) key: &'a Key,
    pub(crate) ordinal: usize,
    pub(crate) manifest: &'a Value,
}

impl OfWork<'_> {
    pub(crate) fn hash(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.manifest.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

impl State {
    /// Returns the record of a manifest.
    pub(crate) fn record(&self, one: OfWork<'_>) -> Option<Record> {
        *self.works.get(one.key)?.settled.get(one.ordinal)?
    }

    /// Records that nothing is left to do about a manifest and its object.
    pub(crate) fn settle(&mut self, one: OfWork<'_>, object: &Value) {
        let was_ours = self.record(one).is_some_and(|record| record.is_ours);
        let records = &mut self.works.entry(one.key.clone()).or_default().settled;
        if records.len() <= one.ordinal {
            records.resize(one.ordinal + 1, None);
        }
        if let Some(record) = records.get_mut(one.ordinal) {
            *record = Some(Record {
                manifest: one.hash(),
                object: Settled::of(object),
                is_ours: is_ours_alone(object).unwrap_or(was_ours),
            });
        }
    }
}
