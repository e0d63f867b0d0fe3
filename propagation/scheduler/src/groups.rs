//! The groups of workloads that are to be together or apart, and the clusters that their members are in.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::{ResourceBinding, TargetCluster, WorkloadAffinityGroups};
use karmada_rules::schedule::Neighbours;
use karmada_runtime::cache::Cache;
use objects::Key;
use objects::reverse_index::ReverseIndex;

/// The groups of workloads.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    members: ReverseIndex<Key, Group>,
}

/// A group of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    namespace: String,
    is_apart: bool,
    label: String,
}

impl Groups {
    /// Replaces the groups of the binding `key` by those of its new version, or removes them.
    pub(crate) fn replace(&mut self, key: &Key, binding: Option<&ResourceBinding>) {
        let groups = binding.map(|binding| of(key, binding)).unwrap_or_default();
        self.members.replace(key, groups);
    }

    /// Returns the clusters of the others in the groups of the binding `key`, and `None` if it is in none. `decisions` are
    /// those that are not written yet.
    pub(crate) fn neighbours(
        &self,
        key: &Key,
        bindings: &Cache<ResourceBinding>,
        decisions: &BTreeMap<Key, Vec<TargetCluster>>,
    ) -> Option<Neighbours> {
        let groups = self.members.targets(key);
        let mut neighbours = Neighbours::default();
        for group in groups {
            for member in self.members.sources(group).filter(|member| *member != key) {
                let stored = bindings.get(member).map(|binding| clusters(binding));
                let stored = stored.unwrap_or_default();
                let decided = decisions.get(member).map(|targets| names(targets));
                if group.is_apart {
                    // In either it may be: the decision may be refused.
                    neighbours.apart.extend(stored);
                    neighbours.apart.extend(decided.into_iter().flatten());
                } else {
                    let placed = decided.unwrap_or(stored);
                    let placed = Some(placed).filter(|placed| !placed.is_empty());
                    neighbours.together.extend(placed);
                }
            }
        }
        (!groups.is_empty()).then_some(neighbours)
    }

    /// Returns the others in the groups of a version of the binding `key`.
    pub(crate) fn others(&self, key: &Key, binding: &ResourceBinding) -> BTreeSet<Key> {
        let groups = of(key, binding);
        let members = groups.iter().flat_map(|group| self.members.sources(group));
        members.filter(|member| *member != key).cloned().collect()
    }
}

/// Returns the groups of a binding.
fn of(key: &Key, binding: &ResourceBinding) -> BTreeSet<Group> {
    let Some(WorkloadAffinityGroups {
        affinity_group,
        anti_affinity_group,
    }) = &binding.spec.workload_affinity_groups
    else {
        return BTreeSet::new();
    };
    let groups = [(false, affinity_group), (true, anti_affinity_group)].into_iter();
    let groups = groups.filter(|(_, label)| !label.is_empty());
    groups
        .map(|(is_apart, label)| Group {
            namespace: key.namespace.clone(),
            is_apart,
            label: label.clone(),
        })
        .collect()
}

/// Returns the clusters of a binding.
pub(crate) fn clusters(binding: &ResourceBinding) -> BTreeSet<String> {
    names(binding.spec.clusters.as_deref().unwrap_or_default())
}

fn names(targets: &[TargetCluster]) -> BTreeSet<String> {
    targets.iter().map(|target| target.name.clone()).collect()
}
