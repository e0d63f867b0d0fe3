//! The groups of workloads that are to be together or apart.

use std::collections::BTreeSet;

use karmada_api::{ResourceBinding, TargetCluster, WorkloadAffinityGroups};

/// A group of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    namespace: String,
    pub(crate) is_apart: bool,
    label: String,
}

/// Returns the groups of a binding.
pub(crate) fn groups_of(binding: &ResourceBinding) -> BTreeSet<Group> {
    let Some(WorkloadAffinityGroups {
        affinity_group,
        anti_affinity_group,
    }) = &binding.spec.workload_affinity_groups
    else {
        return BTreeSet::new();
    };
    let namespace = binding.metadata.namespace.as_deref();
    let groups = [(false, affinity_group), (true, anti_affinity_group)].into_iter();
    let groups = groups.filter(|(_, label)| !label.is_empty());
    groups
        .map(|(is_apart, label)| Group {
            namespace: namespace.unwrap_or_default().to_owned(),
            is_apart,
            label: label.clone(),
        })
        .collect()
}

/// Returns the clusters of a binding.
pub(crate) fn clusters(binding: &ResourceBinding) -> BTreeSet<String> {
    names(binding.spec.clusters.as_deref().unwrap_or_default())
}

/// Returns the names of clusters.
pub(crate) fn names(targets: &[TargetCluster]) -> BTreeSet<String> {
    targets.iter().map(|target| target.name.clone()).collect()
}
