//! The room that is promised: Pods that were placed in clusters, and that these do not report yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_api::Component;
use objects::amounts::Amounts;

use super::pods::{self, Pods};

/// The Pods of one template that are assumed to be in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumedWorkload {
    /// The namespace of the template; empty if it has none.
    pub namespace: String,
    /// The Pods. Those of a template whose Pods are equal are one component, of its name.
    pub components: Vec<Component>,
    pods: Vec<Pods>,
}

impl AssumedWorkload {
    pub(super) fn new(namespace: String, components: Vec<Component>) -> Self {
        let pods = pods::of_components(&components);
        Self {
            namespace,
            components,
            pods,
        }
    }

    /// Returns the Pods of the component of this name.
    pub(super) fn replicas(&self, component: &str) -> i32 {
        let mut components = self.components.iter();
        let found = components.find(|one| one.name == component);
        found.map_or(0, |one| one.replicas)
    }
}

/// The Pods that are assumed to be in each cluster. A decision on it finds only the room that they leave.
///
/// A clone costs as much as there are clusters, and one workload more as much as it has clusters.
#[derive(Clone, Debug, Default)]
pub struct Assumed(BTreeMap<String, Arc<InCluster>>);

/// The Pods that are assumed to be in one cluster.
#[derive(Clone, Debug, Default)]
struct InCluster {
    workloads: Vec<Arc<AssumedWorkload>>,
    /// Their Pods: those that need the same are counted together.
    pods: Vec<Pods>,
}

impl Assumed {
    /// Returns the workloads that are assumed to be in a cluster.
    pub fn workloads_in(&self, cluster: &str) -> &[Arc<AssumedWorkload>] {
        let found = self.0.get(cluster);
        found.map_or(&[], |found| &found.workloads)
    }

    /// Returns the Pods that are assumed to be in a cluster.
    pub(super) fn pods_in(&self, cluster: &str) -> &[Pods] {
        let found = self.0.get(cluster);
        found.map_or(&[], |found| &found.pods)
    }

    /// Removes workloads that were added, each with the name of its cluster.
    pub fn remove<'a>(
        &mut self,
        less: impl IntoIterator<Item = (&'a str, &'a Arc<AssumedWorkload>)>,
    ) {
        for (cluster, workload) in less {
            let Some(found) = self.0.get_mut(cluster) else {
                continue;
            };
            let found = Arc::make_mut(found);
            let mut workloads = found.workloads.iter();
            if let Some(nth) = workloads.position(|one| one == workload) {
                found.workloads.remove(nth);
                for (request, count) in &workload.pods {
                    found.count(request, -count);
                }
            }
            if found.workloads.is_empty() {
                self.0.remove(cluster);
            }
        }
    }
}

impl<'a> Extend<(&'a str, &'a Arc<AssumedWorkload>)> for Assumed {
    /// Adds workloads, each with the name of its cluster.
    fn extend<I: IntoIterator<Item = (&'a str, &'a Arc<AssumedWorkload>)>>(&mut self, more: I) {
        for (cluster, workload) in more {
            let found = Arc::make_mut(self.0.entry(cluster.to_owned()).or_default());
            found.workloads.push(Arc::clone(workload));
            for (request, count) in &workload.pods {
                found.count(request, *count);
            }
        }
    }
}

impl InCluster {
    /// Counts so many Pods more that need the same.
    fn count(&mut self, request: &Amounts, more: i128) {
        let mut pods = self.pods.iter_mut();
        match pods.find(|(known, _)| known == request) {
            Some((_, count)) => *count += more,
            None => self.pods.push((request.clone(), more)),
        }
        self.pods.retain(|(_, count)| *count > 0);
    }
}
