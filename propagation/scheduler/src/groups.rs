//! The groups of workloads that are to be together or apart, and the clusters that their members are in.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::{ResourceBinding, TargetCluster, WorkloadAffinityGroups};
use karmada_rules::schedule::Neighbours;
use karmada_runtime::cache::Cache;
use objects::Key;
use objects::reverse_index::ReverseIndex;

/// The groups of workloads, and the decisions about their members that the watch has still to show.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    members: ReverseIndex<Key, Group>,
    assumed: BTreeMap<Key, Assumed>,
}

/// A group of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    namespace: String,
    is_apart: bool,
    label: String,
}

/// The clusters of decisions about a binding that the watch has still to show.
#[derive(Debug, Default)]
struct Assumed {
    /// Those of the last decision, unless that is written.
    pending: Option<BTreeSet<String>>,
    /// Those that were written, with the generation that this made.
    written: Option<(Option<i64>, BTreeSet<String>)>,
}

impl Groups {
    /// Replaces the groups of the binding `key` by those of its new version, or removes them, and drops the decision
    /// that this version shows.
    pub(crate) fn replace(&mut self, key: &Key, binding: Option<&ResourceBinding>) {
        let groups = binding.map(|binding| of(key, binding)).unwrap_or_default();
        self.members.replace(key, groups);
        match (binding, self.assumed.get_mut(key)) {
            (Some(binding), Some(assumed)) => {
                let shown = binding.metadata.generation;
                assumed.written.take_if(|(written, _)| shown >= *written);
            }
            (None, _) => drop(self.assumed.remove(key)),
            (Some(_), None) => {}
        }
    }

    /// Returns the clusters of the others in the groups of the binding `key`, and `None` if it is in none.
    pub(crate) fn neighbours(
        &self,
        key: &Key,
        bindings: &Cache<ResourceBinding>,
    ) -> Option<Neighbours> {
        let groups = self.members.targets(key);
        let mut neighbours = Neighbours::default();
        for group in groups {
            for member in self.members.sources(group).filter(|member| *member != key) {
                let stored = bindings.get(member).map(|binding| clusters(binding));
                let stored = stored.unwrap_or_default();
                let assumed = self.assumed.get(member);
                let written = assumed.and_then(|assumed| Some(&assumed.written.as_ref()?.1));
                let pending = assumed.and_then(|assumed| assumed.pending.as_ref());
                let decided = pending.or(written);
                if group.is_apart {
                    // It may be in all of them: a decision may not be written yet, or be undone.
                    neighbours.apart.extend(stored);
                    let both = written.into_iter().chain(pending);
                    neighbours.apart.extend(both.flatten().cloned());
                } else {
                    let placed = decided.cloned().unwrap_or(stored);
                    let placed = Some(placed).filter(|placed| !placed.is_empty());
                    neighbours.together.extend(placed);
                }
            }
        }
        (!groups.is_empty()).then_some(neighbours)
    }

    /// Counts these clusters as those of the binding `key` from now on; `None` to count only what was written. Returns
    /// `true` if others were counted, which were not written.
    pub(crate) fn assume(&mut self, key: &Key, decided: Option<&[TargetCluster]>) -> bool {
        let names = |decided: &[TargetCluster]| {
            let names = decided.iter().map(|target| target.name.clone());
            names.collect::<BTreeSet<_>>()
        };
        let pending = decided.map(names);
        if pending.is_none() && !self.assumed.contains_key(key) {
            return false;
        }
        let assumed = self.assumed.entry(key.clone()).or_default();
        let is_other = assumed.pending.is_some() && assumed.pending != pending;
        assumed.pending = pending;
        if assumed.pending.is_none() && assumed.written.is_none() {
            self.assumed.remove(key);
        }
        is_other
    }

    /// Notes that the decision about the binding `key` was written, as this generation. `shown` is the version that
    /// the watch has shown last.
    pub(crate) fn written(
        &mut self,
        key: &Key,
        generation: Option<i64>,
        shown: Option<&ResourceBinding>,
    ) {
        if shown.is_none_or(|shown| shown.metadata.generation >= generation) {
            self.assumed.remove(key);
        } else if let Some(assumed) = self.assumed.get_mut(key) {
            let written = assumed.pending.take();
            assumed.written = written.map(|clusters| (generation, clusters));
        }
    }

    /// Drops all decisions: another leader makes its own.
    pub(crate) fn release_all(&mut self) {
        self.assumed.clear();
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
    let clusters = binding.spec.clusters.iter().flatten();
    clusters.map(|target| target.name.clone()).collect()
}
