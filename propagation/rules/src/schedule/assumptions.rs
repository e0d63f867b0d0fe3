//! The Pods that one binding has placed and that its clusters do not report yet.
//!
//! ```text
//! a target grows → assumed → the copy there turns Healthy, or the target shrinks or goes, or 5 minutes have passed
//! ```
//!
//! As Karmada's scheduler does it with `SchedulingOvercommitProtection`, but for the replicas that are new: Karmada
//! counts all of a workload that grows, though its cluster reports the most of it. And Karmada's forgets all in a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use karmada_api::{Component, ResourceBindingSpec, TargetCluster};

use super::assumed::AssumedWorkload;
use crate::binding_ref::BindingRef;

/// The time for which Pods are assumed at most, Karmada's `DefaultAssumptionTTL`: copies that never turn Healthy take no
/// room for ever.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// The Pods that are assumed of one binding, by cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions(BTreeMap<String, Assumption>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Assumption {
    workload: Arc<AssumedWorkload>,
    until: Timestamp,
}

impl Assumptions {
    /// Returns the assumptions of a binding without a known history, as after a start: all in clusters where it is not
    /// Healthy, for the rest of the time since it was scheduled last.
    pub fn first(binding: BindingRef<'_>, now: Timestamp) -> Self {
        let status = binding.status;
        let last = status.and_then(|status| status.last_scheduled_time.as_ref());
        let Some(last) = last else {
            return Self::default();
        };
        // A time to come is that of a request to schedule anew.
        let until = end(last.0.min(now));
        let mut first = Self::default();
        let targets = binding.targets();
        for target in targets.filter(|target| !is_healthy(binding, &target.name)) {
            first.grow(binding.spec, &BTreeMap::new(), target, until);
        }
        first.ended(now)
    }

    /// Returns the assumptions once the version `new` has followed `old`.
    #[must_use]
    pub fn after(&self, old: BindingRef<'_>, new: BindingRef<'_>, now: Timestamp) -> Self {
        if old.metadata.uid != new.metadata.uid {
            return Self::first(new, now);
        }
        let mut after = self.clone();
        after.0.retain(|cluster, _| new.has_target(cluster));
        for target in new.targets() {
            let had = had(old.spec, &target.name);
            let grows = after.grow(new.spec, &had, target, end(now));
            // A copy that was Healthy before it grew says nothing about its new replicas.
            let turned = is_healthy(new, &target.name) && !is_healthy(old, &target.name);
            if turned && !grows {
                after.0.remove(&target.name);
            }
        }
        after
    }

    /// Returns the assumptions while it is not known whether a binding with this spec has got these `targets`.
    #[must_use]
    pub fn with(
        &self,
        spec: &ResourceBindingSpec,
        targets: &[TargetCluster],
        now: Timestamp,
    ) -> Self {
        let mut with = self.clone();
        for target in targets {
            with.grow(spec, &had(spec, &target.name), target, end(now));
        }
        with
    }

    /// Returns the assumptions that still hold at `now`.
    #[must_use]
    pub fn ended(mut self, now: Timestamp) -> Self {
        self.0.retain(|_, assumption| assumption.until > now);
        self
    }

    /// Returns the time at which the next assumption ends by itself.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.0.values().map(|assumption| assumption.until).min()
    }

    /// Returns `true` if nothing is assumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the assumed workloads, with the names of the clusters.
    pub fn workloads(&self) -> impl Iterator<Item = (&str, &Arc<AssumedWorkload>)> {
        let assumptions = self.0.iter();
        assumptions.map(|(cluster, assumption)| (cluster.as_str(), &assumption.workload))
    }

    /// Returns the clusters in which less is assumed `after` a change.
    pub fn freed(&self, after: &Self) -> BTreeSet<String> {
        let workloads = self.workloads();
        let freed = workloads.filter(|(cluster, workload)| {
            let mut components = workload.components.iter();
            components
                .any(|component| after.replicas(cluster, &component.name) < component.replicas)
        });
        freed.map(|(cluster, _)| cluster.to_owned()).collect()
    }

    /// Assumes the replicas that the target has beyond those it `had`, by component, as far as these were not assumed only.
    /// Returns `true` if more is assumed than before, which lasts `until` then.
    fn grow(
        &mut self,
        spec: &ResourceBindingSpec,
        had: &BTreeMap<String, i32>,
        target: &TargetCluster,
        until: Timestamp,
    ) -> bool {
        let name = &target.name;
        let mut grows = false;
        let mut components = placed(spec, target);
        for component in &mut components {
            let assumed = self.replicas(name, &component.name);
            let had = had.get(&component.name).copied().unwrap_or_default();
            let reported = had.saturating_sub(assumed).max(0);
            component.replicas = component.replicas.saturating_sub(reported);
            grows |= component.replicas > assumed;
        }
        components.retain(|component| component.replicas > 0);
        if components.is_empty() {
            self.0.remove(name);
            return false;
        }
        let before = self.0.get(name);
        let until = match before {
            Some(before) if !grows => before.until,
            _ => until,
        };
        if before.is_none_or(|before| before.workload.components != components || grows) {
            let namespace = spec.resource.namespace.clone().unwrap_or_default();
            let workload = Arc::new(AssumedWorkload::new(namespace, components));
            self.0.insert(name.clone(), Assumption { workload, until });
        }
        grows
    }

    fn replicas(&self, cluster: &str, component: &str) -> i32 {
        let assumption = self.0.get(cluster);
        assumption.map_or(0, |assumption| assumption.workload.replicas(component))
    }
}

/// Returns the end of an assumption that begins `at` this time.
fn end(at: Timestamp) -> Timestamp {
    at.saturating_add(LONGEST).unwrap_or(Timestamp::MAX)
}

fn is_healthy(binding: BindingRef<'_>, cluster: &str) -> bool {
    binding.healthy_clusters().any(|name| name == cluster)
}

/// Returns the Pods of each component that a binding has in a cluster.
fn had(spec: &ResourceBindingSpec, cluster: &str) -> BTreeMap<String, i32> {
    let mut targets = spec.clusters.iter().flatten();
    let target = targets.find(|target| target.name == cluster);
    let placed = target
        .map(|target| placed(spec, target))
        .unwrap_or_default();
    let placed = placed.into_iter();
    placed.map(|one| (one.name, one.replicas)).collect()
}

/// Returns the Pods that a binding has in a target.
fn placed(spec: &ResourceBindingSpec, target: &TargetCluster) -> Vec<Component> {
    let mut components: Vec<_> = spec.components.iter().flatten().cloned().collect();
    if components.is_empty() {
        let replicas = target.replicas.unwrap_or(0).max(0);
        return vec![Component {
            name: spec.resource.name.clone(),
            replicas,
            replica_requirements: spec.replica_requirements.clone(),
        }];
    }
    // A target that counts none was chosen without counting, and has all of them.
    if let Some(counted) = &target.components {
        for component in &mut components {
            let mut counted = counted.iter();
            let here = counted.find(|one| one.name == component.name);
            component.replicas = here.map_or(0, |here| here.replicas.max(0));
        }
    }
    components
}

#[cfg(test)]
mod tests;
