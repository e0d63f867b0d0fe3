//! The kinds of the manifests that a cluster is to have, which are those to watch there.

use std::collections::{BTreeMap, BTreeSet};

use objects::GroupVersionKind;

/// The number of sets that have manifests of each kind.
#[derive(Clone, Debug, Default)]
pub struct KindCounts(BTreeMap<GroupVersionKind, usize>);

impl KindCounts {
    /// Counts the kinds of a set that had others before. Returns `true` if there are others now.
    pub fn change(
        &mut self,
        old: &BTreeSet<GroupVersionKind>,
        new: &BTreeSet<GroupVersionKind>,
    ) -> bool {
        let mut is_changed = false;
        for kind in new.difference(old) {
            let count = self.0.entry(kind.clone()).or_default();
            is_changed |= *count == 0;
            *count += 1;
        }
        for kind in old.difference(new) {
            if let Some(count) = self.0.get_mut(kind) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(kind);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Returns the kinds.
    pub fn kinds(&self) -> BTreeSet<GroupVersionKind> {
        self.0.keys().cloned().collect()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
