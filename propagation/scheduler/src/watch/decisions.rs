//! The decisions that count before the watch shows them, and the bindings that wait for what they free.

use karmada_api::TargetCluster;
use karmada_runtime::cache::Transition;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{SchedulePlan, SpecWrite};

use super::SharedIndex;
use crate::index::{Index, Snapshot};

impl SharedIndex {
    /// Returns a snapshot of the binding `key` with what `plan` decides on it, and `None` if it does not exist.
    pub(crate) fn decide(
        &self,
        key: &Key,
        plan: impl FnOnce(&Snapshot) -> SchedulePlan,
    ) -> Option<(Snapshot, SchedulePlan)> {
        let mut index = self.index.lock();
        let snapshot = index.snapshot(key)?;
        if !snapshot.depends_on_others() {
            drop(index);
            let plan = plan(&snapshot);
            return Some((snapshot, plan));
        }
        // The next one decides once this decision counts: both would find the same cluster free.
        let plan = plan(&snapshot);
        let decided = match &plan {
            SchedulePlan::Write {
                spec: Some(SpecWrite { clusters, .. }),
                ..
            } => clusters.as_deref(),
            _ => None,
        };
        index.note_waiting(&snapshot.binding);
        let woken = index.assume(key, decided);
        drop(index);
        self.queue.add_all(woken);
        Some((snapshot, plan))
    }

    /// Notes that the clusters of the binding `key` were written, as this generation; `None` if they are only observed.
    pub(crate) fn written(&self, key: &Key, generation: Option<i64>) {
        let mut index = self.index.lock();
        let shown = index.binding(key);
        let is_shown = shown.is_none_or(|shown| shown.view().metadata.generation >= generation);
        if is_shown {
            index.decisions.forget(key);
        } else {
            index.decisions.written(key, generation);
        }
        let woken = index.recount(key);
        drop(index);
        self.queue.add_all(woken);
    }

    /// Notes that the clusters of the binding `key` were not written, and wakes those that waited for them.
    pub(crate) fn not_written(&self, key: &Key) {
        let woken = self.index.lock().assume(key, None);
        self.queue.add_all(woken);
    }
}

impl Index {
    /// Counts these clusters as those of the binding `key` from now on; `None` to count only what was written. Returns the
    /// bindings that wait for what is not counted any longer.
    fn assume(&mut self, key: &Key, decided: Option<&[TargetCluster]>) -> Vec<Key> {
        let is_other = self.decisions.assume(key, decided);
        let mut woken = self.recount(key);
        if is_other {
            woken.extend(self.who_waits_beside(key));
        }
        woken
    }

    /// Follows a binding from one version to the next, and returns the bindings that wait for room which this frees.
    pub(super) fn follow_change<K>(&mut self, change: &Transition<K>) -> Vec<Key>
    where
        for<'a> &'a K: Into<BindingRef<'a>>,
    {
        let Transition { key, old, new } = change;
        let [old, new]: [Option<BindingRef<'_>>; 2] =
            [old, new].map(|form| form.as_deref().map(Into::into));
        match new {
            Some(new) => self.decisions.shown(key, new.metadata.generation),
            None => self.decisions.forget(key),
        }
        if let Some(assumed) = &mut self.assumed {
            assumed.show(key, old, new);
        }
        self.recount(key)
    }
}
