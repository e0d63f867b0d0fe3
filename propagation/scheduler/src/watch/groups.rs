//! The changes that wake the others of a group of workloads that are to be together or apart.

use std::collections::BTreeSet;

use karmada_api::ResourceBinding;
use karmada_runtime::cache::Transition;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::is_unscheduled;

use super::SharedIndex;
use crate::groups::{Groups, clusters};
use crate::index::Index;

impl SharedIndex {
    /// Heeds from now on which workloads are to be together, or apart.
    pub(crate) fn heed_groups(&self) {
        self.index.lock().groups = Some(Groups::default());
    }
}

impl Index {
    /// Follows a binding into its groups, and returns the others there that wait for what it has left.
    pub(super) fn regroup(&mut self, change: &Transition<ResourceBinding>) -> BTreeSet<Key> {
        let Transition { key, old, new } = change;
        let Some(groups) = &mut self.groups else {
            return BTreeSet::new();
        };
        groups.replace(key, new.as_deref());
        let forms = [old.as_deref(), new.as_deref()];
        let [was, is] = forms.map(|form| form.map(clusters).unwrap_or_default());
        let [before, now] =
            forms.map(|form| form.and_then(|form| form.spec.workload_affinity_groups.as_ref()));
        if was == is && before == now {
            return BTreeSet::new();
        }
        // One that runs may get more clusters only where another has left some.
        let has_left = before != now || !was.is_subset(&is);
        let others = forms.into_iter().flatten();
        let others = others.flat_map(|form| groups.others(key, form));
        let concerned = others.filter(|other| {
            let other = self.bindings.get(other);
            has_left || other.is_some_and(|other| is_unscheduled((&**other).into()))
        });
        concerned.collect()
    }

    /// Returns the others in the groups of the binding `key` that may wait for its clusters.
    pub(super) fn who_waits_beside(&self, key: &Key) -> Vec<Key> {
        let (Some(groups), Some(binding)) = (&self.groups, self.bindings.get(key)) else {
            return Vec::new();
        };
        let others = groups.others(key, binding).into_iter();
        let waiting = others.filter(|other| {
            let other = self.bindings.get(other);
            other.is_some_and(|other| is_unfit((&**other).into()))
        });
        waiting.collect()
    }
}

/// Returns `true` if the binding could not be scheduled, for want of clusters rather than of a quota.
fn is_unfit(binding: BindingRef<'_>) -> bool {
    let condition = binding.scheduled();
    is_unscheduled(binding)
        && condition.is_some_and(|condition| condition.reason != "QuotaExceeded")
}
