//! The other workloads of the groups that a binding belongs to.

use std::collections::BTreeSet;

/// The clusters of the other workloads of a binding's groups, in its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffinityGroups {
    /// The clusters of each workload that it is to be together with, of those that have some.
    pub together: Vec<BTreeSet<String>>,
    /// The clusters of all workloads that it is to be apart from.
    pub apart: BTreeSet<String>,
}

impl AffinityGroups {
    /// Returns the reason why the binding may not come to the cluster, in Karmada's words.
    pub(super) fn refusal(&self, cluster: &str) -> Option<&'static str> {
        if self
            .together
            .iter()
            .any(|clusters| !clusters.contains(cluster))
        {
            Some("ResourceBinding with the same affinity group does not target this cluster")
        } else if self.apart.contains(cluster) {
            Some("cluster already has workload with the same anti-affinity group")
        } else {
            None
        }
    }
}
