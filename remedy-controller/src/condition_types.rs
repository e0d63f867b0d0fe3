//! The types of the conditions of all clusters.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::Cluster;

/// The number of clusters that have each type of condition.
#[derive(Debug, Default)]
pub(crate) struct ConditionTypes(BTreeMap<String, usize>);

impl ConditionTypes {
    /// Replaces a version of a cluster, and returns the types that appear in the fleet or disappear.
    pub(crate) fn replace(
        &mut self,
        old: Option<&Cluster>,
        new: Option<&Cluster>,
    ) -> BTreeSet<String> {
        let [before, after] = [old, new].map(types);
        let mut changed = BTreeSet::new();
        for kind in after.difference(&before) {
            let count = self.0.entry((*kind).to_owned()).or_default();
            *count += 1;
            if *count == 1 {
                changed.insert((*kind).to_owned());
            }
        }
        for kind in before.difference(&after) {
            let Some(count) = self.0.get_mut(*kind) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.0.remove(*kind);
                changed.insert((*kind).to_owned());
            }
        }
        changed
    }

    /// Returns `true` if a cluster has a condition of this type.
    pub(crate) fn contains(&self, kind: &str) -> bool {
        self.0.contains_key(kind)
    }
}

fn types(cluster: Option<&Cluster>) -> BTreeSet<&str> {
    let conditions = cluster.into_iter().flat_map(Cluster::conditions);
    conditions
        .map(|condition| condition.type_.as_str())
        .collect()
}
