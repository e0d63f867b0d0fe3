//! The decisions that count before they are written, and then before the watch shows them, and the bindings that wait for
//! what they free.

use karmada_api::TargetCluster;
use karmada_rules::binding_ref::BindingRef;
use karmada_rules::schedule::{SchedulePlan, SpecWrite};
use karmada_runtime::cache::Transition;
use objects::Key;
use objects::write::{ObjectRef, Write};

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

    /// Notes that this write of a binding's clusters is over, which is `stored` now; `None` if nothing new is.
    pub(crate) fn written(&self, write: &Write, stored: Option<&ObjectRef>) {
        self.observe(|index| {
            let key = &write.object.key;
            index.decisions.remove(key);
            let mut woken = stored.map_or_else(Vec::new, |stored| index.take_in(write, stored));
            woken.extend(index.recount(key));
            woken
        });
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
        let before = match decided {
            Some(decided) => self.decisions.insert(key.clone(), decided.to_vec()),
            None => self.decisions.remove(key),
        };
        let is_other = before.is_some_and(|before| decided != Some(&*before));
        let mut woken = self.recount(key);
        if is_other {
            woken.extend(self.who_waits_beside(key));
        }
        woken
    }

    /// Follows a binding from one version to the next, and returns it with the bindings that wait for room which this frees.
    pub(super) fn follow_change<K>(&mut self, change: &Transition<K>) -> Vec<Key>
    where
        for<'a> &'a K: Into<BindingRef<'a>>,
    {
        let Transition { key, old, new } = change;
        let [old, new]: [Option<BindingRef<'_>>; 2] =
            [old, new].map(|form| form.as_deref().map(Into::into));
        if new.is_none() {
            self.decisions.remove(key);
        }
        if let Some(assumed) = &mut self.assumed {
            assumed.show(key, old, new);
        }
        let mut woken = self.recount(key);
        woken.push(key.clone());
        woken
    }
}
