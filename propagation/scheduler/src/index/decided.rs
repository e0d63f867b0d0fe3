//! The decisions that count before they are written, and then before the watch shows them, and the bindings that wait for
//! the room that they free.

use karmada_api::TargetCluster;
use karmada_runtime::cache::Transition;
use objects::Key;
use objects::write::{ObjectRef, Write};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{SchedulePlan, SpecWrite};

use super::Index;
use crate::binding::AnyBinding;

impl Index {
    /// Counts the decision about a binding that heeds others, and returns those that wait for the room that this frees.
    pub(crate) fn decide(&mut self, binding: &AnyBinding, plan: &SchedulePlan) -> Vec<Key> {
        let decided = match plan {
            SchedulePlan::Write {
                spec: Some(SpecWrite { clusters, .. }),
                ..
            } => clusters.as_deref(),
            _ => None,
        };
        self.note_waiting(binding);
        self.assume(&binding.key(), decided)
    }

    /// Notes that this write of a binding's clusters is over, which is `stored` now; `None` if nothing new is. Returns the
    /// bindings that wait for the room that this frees.
    pub(crate) fn written(&mut self, write: &Write, stored: Option<&ObjectRef>) -> Vec<Key> {
        let key = &write.object.key;
        self.decisions.remove(key);
        let mut woken = stored.map_or_else(Vec::new, |stored| self.take_in(write, stored));
        woken.extend(self.recount(key));
        woken
    }

    /// Takes in a write of a binding, and returns those whom the event wakes that shows it.
    fn take_in(&mut self, write: &Write, stored: &ObjectRef) -> Vec<Key> {
        if stored.key.namespace.is_empty() {
            let change = self.cluster_bindings.written(write, stored);
            return change.map_or_else(Vec::new, |change| self.follow(&change));
        }
        let Some(change) = self.bindings.written(write, stored) else {
            return Vec::new();
        };
        let mut woken = self.follow(&change);
        woken.extend(self.left_beside(&change));
        woken
    }

    /// Counts these clusters as those of the binding `key` from now on; `None` to count only its stored ones. Returns the
    /// bindings that wait for those that do not count any longer.
    pub(crate) fn assume(&mut self, key: &Key, decided: Option<&[TargetCluster]>) -> Vec<Key> {
        let before = match decided {
            Some(decided) => self.decisions.insert(key.clone(), decided.to_vec()),
            None => self.decisions.remove(key),
        };
        let is_other = before.is_some_and(|before| decided != Some(&*before));
        let mut woken = self.recount(key);
        if is_other {
            woken.extend(self.waiting_beside(key));
        }
        woken
    }

    /// Follows a binding from one version to the next, and returns it with the bindings that wait for room which this frees.
    pub(crate) fn follow<K>(&mut self, change: &Transition<K>) -> Vec<Key>
    where
        for<'a> &'a K: Into<BindingRef<'a>>,
    {
        let key = &change.key;
        let [old, new]: [Option<BindingRef<'_>>; 2] = change.views();
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
