//! The last write of the status of each binding's template.

use std::collections::BTreeMap;

use objects::Key;
use parking_lot::Mutex;
use serde_json::Value;

/// A write of the status of a template, decided on a version of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatusWrite {
    pub(super) version: String,
    pub(super) body: Value,
}

/// The last of these writes for each binding.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatuses(Mutex<BTreeMap<Key, StatusWrite>>);

impl WrittenStatuses {
    /// Returns `true` if this was the last write for the binding.
    pub(super) fn is_last(&self, binding: &Key, write: &StatusWrite) -> bool {
        self.0.lock().get(binding) == Some(write)
    }

    pub(super) fn note(&self, binding: Key, write: StatusWrite) {
        self.0.lock().insert(binding, write);
    }

    pub(super) fn forget(&self, binding: &Key) {
        self.0.lock().remove(binding);
    }
}
