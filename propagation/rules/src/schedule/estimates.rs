//! The answers of the clusters' estimators about their room.

use std::collections::BTreeMap;

/// The replicas for which clusters have room, as their estimators say. Of any other cluster nothing is known but its
/// status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimates(BTreeMap<String, i32>);

impl Estimates {
    /// Returns the lesser of the replicas and those that the estimator of the cluster says.
    pub(super) fn bound(&self, cluster: &str, replicas: i32) -> i32 {
        let estimate = self.0.get(cluster);
        estimate.map_or(replicas, |estimate| replicas.min(*estimate))
    }
}

impl FromIterator<(String, i32)> for Estimates {
    /// Collects answers. One below 0 says that the estimator does not know, as Karmada's answer then.
    fn from_iter<I: IntoIterator<Item = (String, i32)>>(answers: I) -> Self {
        let known = answers.into_iter().filter(|(_, replicas)| *replicas >= 0);
        Self(known.collect())
    }
}
