//! The decisions that count before the watch shows them, and the bindings that wait for what they free.

use karmada_api::TargetCluster;
use karmada_runtime::cache::Transition;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{SchedulePlan, SpecWrite};

use super::Index;
use crate::binding::AnyBinding;

impl Index {
    /// Counts what is decided about a binding that heeds others, and returns those that wait for what this frees.
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

    /// Notes that the clusters of the binding `key` were written, as this generation; `None` if they are only observed.
    /// Returns the bindings that wait for what this frees.
    pub(crate) fn written(&mut self, key: &Key, generation: Option<i64>) -> Vec<Key> {
        let shown = self.binding(key);
        let is_shown = shown.is_none_or(|shown| shown.view().metadata.generation >= generation);
        if is_shown {
            self.decisions.forget(key);
        } else {
            self.decisions.written(key, generation);
        }
        self.recount(key)
    }

    /// Counts these clusters as those of the binding `key` from now on; `None` to count only what was written. Returns the
    /// bindings that wait for what is not counted any longer.
    pub(crate) fn assume(&mut self, key: &Key, decided: Option<&[TargetCluster]>) -> Vec<Key> {
        let is_other = self.decisions.assume(key, decided);
        let mut woken = self.recount(key);
        if is_other {
            woken.extend(self.waiting_beside(key));
        }
        woken
    }

    /// Follows a binding from one version to the next, and returns the bindings that wait for room which this frees.
    pub(crate) fn follow<K>(&mut self, change: &Transition<K>) -> Vec<Key>
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
