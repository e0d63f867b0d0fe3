//! The others in the groups of a binding: the clusters that they are in, and those that wait for it to leave one.

use std::collections::BTreeSet;

use karmada_api::ResourceBinding;
use karmada_runtime::cache::Transition;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{AffinityGroups, is_unscheduled};

use super::Index;
use crate::groups::{Group, clusters, names};

impl Index {
    /// Returns the clusters of the others in the groups of the binding `key`, with those of decisions that are not
    /// written yet, and `None` if it is in none.
    pub(crate) fn affinity_groups(&self, key: &Key) -> Option<AffinityGroups> {
        let groups = self.bindings.targets(key);
        let mut affinity_groups = AffinityGroups::default();
        for group in groups {
            for member in self.others(key, [group]) {
                let stored = self.bindings.get(&member).map(|binding| clusters(binding));
                let stored = stored.unwrap_or_default();
                let decided = self.decisions.get(&member).map(|targets| names(targets));
                if group.is_apart {
                    // In either it may be: the decision may be refused.
                    affinity_groups.apart.extend(stored);
                    affinity_groups.apart.extend(decided.into_iter().flatten());
                } else {
                    let placed = decided.unwrap_or(stored);
                    let placed = Some(placed).filter(|placed| !placed.is_empty());
                    affinity_groups.together.extend(placed);
                }
            }
        }
        (!groups.is_empty()).then_some(affinity_groups)
    }

    /// Returns the others in the groups that a binding was or is in that wait for the clusters that it has left.
    pub(crate) fn left_beside(&self, change: &Transition<ResourceBinding>) -> BTreeSet<Key> {
        let groups = self.bindings.concerned(change);
        if groups.is_empty() {
            return BTreeSet::new();
        }
        let forms = [change.old.as_deref(), change.new.as_deref()];
        let [was, is] = forms.map(|form| form.map(clusters).unwrap_or_default());
        let [before, now] =
            forms.map(|form| form.and_then(|form| form.spec.workload_affinity_groups.as_ref()));
        if was == is && before == now {
            return BTreeSet::new();
        }
        // One that runs may get more clusters only where another has left some.
        let has_left = before != now || !was.is_subset(&is);
        let mut others = self.others(&change.key, &groups);
        others.retain(|other| has_left || self.is_beside(other, is_unscheduled));
        others
    }

    /// Returns the others in the groups of the binding `key` that may wait for its clusters.
    pub(crate) fn waiting_beside(&self, key: &Key) -> BTreeSet<Key> {
        let mut others = self.others(key, self.bindings.targets(key));
        others.retain(|other| self.is_beside(other, is_unfit));
        others
    }

    /// Returns the members of the groups besides the binding `key`.
    fn others<'a>(&self, key: &Key, groups: impl IntoIterator<Item = &'a Group>) -> BTreeSet<Key> {
        let groups = groups.into_iter();
        let members = groups.flat_map(|group| self.bindings.keys_of(group));
        members.filter(|member| *member != key).cloned().collect()
    }

    fn is_beside(&self, key: &Key, is: fn(BindingRef<'_>) -> bool) -> bool {
        let binding = self.bindings.get(key);
        binding.is_some_and(|binding| is((&**binding).into()))
    }
}

/// Returns `true` if the binding could not be scheduled, for want of clusters rather than of a quota.
fn is_unfit(binding: BindingRef<'_>) -> bool {
    let condition = binding.scheduled();
    is_unscheduled(binding)
        && condition.is_some_and(|condition| condition.reason != "QuotaExceeded")
}
