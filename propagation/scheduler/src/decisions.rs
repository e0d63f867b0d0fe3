//! The decisions about bindings that the watch has still to show.

use std::collections::BTreeMap;

use karmada_api::TargetCluster;
use objects::Key;

/// The clusters of decisions that the watch has still to show, by binding.
#[derive(Debug, Default)]
pub(crate) struct Decisions(BTreeMap<Key, Decision>);

/// The clusters of decisions about one binding.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Those of the last decision, unless that is written.
    pending: Option<Vec<TargetCluster>>,
    /// Those that were written, with the generation that this made.
    written: Option<(Option<i64>, Vec<TargetCluster>)>,
}

impl Decision {
    /// Returns the clusters that were decided last.
    pub(crate) fn last(&self) -> Option<&[TargetCluster]> {
        self.pending.as_deref().or_else(|| self.written())
    }

    /// Returns the clusters that were written.
    pub(crate) fn written(&self) -> Option<&[TargetCluster]> {
        self.written.as_ref().map(|(_, targets)| &**targets)
    }

    /// Iterates over the names of all clusters in which the binding may be: a decision may not be written yet, or be
    /// undone.
    pub(crate) fn any(&self) -> impl Iterator<Item = &str> {
        let both = self.written().into_iter().chain(self.pending.as_deref());
        both.flatten().map(|target| target.name.as_str())
    }
}

impl Decisions {
    /// Returns the decisions about the binding `key`; `None` if the watch has shown them.
    pub(crate) fn get(&self, key: &Key) -> Option<&Decision> {
        self.0.get(key)
    }

    /// Drops the decision that a version of the binding `key` with this generation shows.
    pub(crate) fn shown(&mut self, key: &Key, generation: Option<i64>) {
        if let Some(decision) = self.0.get_mut(key) {
            decision
                .written
                .take_if(|(written, _)| generation >= *written);
            self.drop_empty(key);
        }
    }

    /// Drops the decisions about the binding `key`, which is gone, or whose watch is ahead of them.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Counts these clusters as those of the binding `key` from now on; `None` to count only what was written. Returns
    /// `true` if others were counted, which were not written.
    pub(crate) fn assume(&mut self, key: &Key, decided: Option<&[TargetCluster]>) -> bool {
        if decided.is_none() && !self.0.contains_key(key) {
            return false;
        }
        let decision = self.0.entry(key.clone()).or_default();
        let before = std::mem::replace(&mut decision.pending, decided.map(<[_]>::to_vec));
        let is_other = before.is_some() && before != decision.pending;
        self.drop_empty(key);
        is_other
    }

    /// Notes that the decision about the binding `key` was written, as this generation, which the watch has still to show.
    pub(crate) fn written(&mut self, key: &Key, generation: Option<i64>) {
        if let Some(decision) = self.0.get_mut(key) {
            let written = decision.pending.take();
            decision.written = written.map(|targets| (generation, targets));
        }
    }

    /// Drops all decisions: another leader makes its own.
    pub(crate) fn release_all(&mut self) {
        self.0.clear();
    }

    fn drop_empty(&mut self, key: &Key) {
        let decision = self.0.get(key);
        if decision.is_some_and(|decision| decision.last().is_none()) {
            self.0.remove(key);
        }
    }
}
