//! The clusters that a placement asks for.

use karmada_api::placement::{ClusterAffinityTerm, ClusterSelector};
use karmada_api::{Placement, ResourceBindingSpec, TargetCluster};

use super::plan::{KnownClusters, Pass};
use super::strategy::ReplicaStrategy;
use super::{AffinityFailure, Scheduler, divide, filter, groups, need, select};
use crate::binding_ref::BindingRef;

/// Everything that decides about one binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle<'a> {
    pub(super) scheduler: &'a Scheduler,
    pub(super) binding: BindingRef<'a>,
    pub(super) placement: &'a Placement,
    pub(super) strategy: ReplicaStrategy<'a>,
    pub(super) fleet: KnownClusters<'a>,
    pub(super) pass: Pass,
}

/// The clusters of a binding, and the group they are of.
pub(super) struct Decision {
    pub(super) clusters: Vec<TargetCluster>,
    pub(super) group: Option<String>,
}

impl<'a> Cycle<'a> {
    /// Returns the cycle of the binding with another spec.
    pub(super) fn of(self, spec: &'a ResourceBindingSpec) -> Self {
        let binding = BindingRef {
            spec,
            ..self.binding
        };
        Self { binding, ..self }
    }

    /// Decides the clusters.
    ///
    /// # Errors
    /// Fails with the reason why the placement has no result, or with that of each of its groups.
    pub(super) fn decide(self) -> Result<Decision, Vec<AffinityFailure>> {
        let groups = &self.placement.cluster_affinities;
        if groups.is_empty() {
            self.check()?;
            let clusters = self.attempt(self.placement.cluster_affinity.as_ref());
            let clusters = clusters.map_err(|failure| vec![failure])?;
            let group = None;
            return Ok(Decision { clusters, group });
        }
        let anew = need::is_triggered(self.binding);
        let start = groups::start(groups, self.binding.observed_group(), anew);
        self.decide_among(groups, start)
    }

    /// Decides the clusters by the first of these groups that fits, beginning with that at `start`.
    ///
    /// # Errors
    /// Fails with the reason of each group.
    pub(super) fn decide_among(
        self,
        groups: &'a [ClusterAffinityTerm],
        start: usize,
    ) -> Result<Decision, Vec<AffinityFailure>> {
        self.check()?;
        let attempt = |group: &ClusterAffinityTerm| self.attempt(Some(&group.affinity));
        let (group, clusters) = groups::first_fit(groups, start, attempt)?;
        let group = Some(group.affinity_name.clone());
        Ok(Decision { clusters, group })
    }

    fn attempt(
        self,
        affinity: Option<&ClusterSelector>,
    ) -> Result<Vec<TargetCluster>, AffinityFailure> {
        let spec = self.binding.spec;
        let fitting = filter::fitting(self, affinity).map_err(AffinityFailure::Unfit)?;
        let anew = need::is_triggered(self.binding);
        let selects_anew = anew || need::placement_changed(self.binding);
        let selected = select::select(spec, self.placement, self.strategy, &fitting, selects_anew)?;
        let keep_empty = self.scheduler.keeps_empty;
        divide::divide(spec, self.strategy, &selected, anew, keep_empty)
    }

    fn check(self) -> Result<(), Vec<AffinityFailure>> {
        if let Some(failure) = unsupported(self.placement) {
            return Err(vec![failure]);
        }
        // A list without a cluster is rather a fault of the API than the end of every workload.
        if self.fleet.clusters.is_empty() {
            let message = "0/0 clusters are available: no cluster exists.";
            return Err(vec![AffinityFailure::Error(message.to_owned())]);
        }
        Ok(())
    }
}

/// Returns what the placement asks for and this scheduler does not do.
fn unsupported(placement: &Placement) -> Option<AffinityFailure> {
    let has_overflow = |group: &ClusterAffinityTerm| group.overflow_affinities.is_some();
    let what = if placement.workload_affinity.is_some() {
        "workloadAffinity"
    } else if placement.cluster_affinities.iter().any(has_overflow) {
        "overflowAffinities"
    } else {
        return None;
    };
    Some(AffinityFailure::Unsupported(what.to_owned()))
}
