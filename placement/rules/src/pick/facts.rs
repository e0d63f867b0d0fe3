//! The facts that decide about the clusters of a placement.

use std::collections::BTreeMap;

use fleet_api::binding::BindingState;
use fleet_api::names::NUMBER_OF_CLUSTERS;
use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot};
use jiff::Timestamp;
use objects::Metadata;

use crate::eligible::Obstacle;
use crate::filter::{Unfit, namespace_unfit};

/// A cluster of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetCluster<'a> {
    /// The cluster.
    pub cluster: &'a MemberCluster,
    /// Why it may not be given anything; `None` if it may.
    pub obstacle: Option<Obstacle>,
}

/// Everything that decides about the clusters of a placement.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The latest snapshot of its policy.
    pub policy: &'a PolicySnapshot,
    /// Every cluster.
    pub clusters: &'a [FleetCluster<'a>],
    /// Every binding of the placement.
    pub bindings: &'a [&'a Binding],
    /// The time.
    pub now: Timestamp,
}

impl<'a> SchedulingFacts<'a> {
    /// Returns the clusters by name, without those that are leaving.
    pub(super) fn by_name(&self) -> BTreeMap<&'a str, FleetCluster<'a>> {
        let staying = self
            .clusters
            .iter()
            .filter(|one| !one.cluster.metadata.is_deleting());
        staying
            .map(|one| (one.cluster.metadata.name(), *one))
            .collect()
    }
}

/// Returns the number of clusters to pick.
pub(super) fn number_of_clusters(facts: &SchedulingFacts<'_>) -> usize {
    let annotation = facts.policy.metadata.annotation(NUMBER_OF_CLUSTERS);
    let annotation = annotation.and_then(|number| number.parse().ok());
    let policy = facts.policy.spec.policy.as_ref();
    let number = annotation.or_else(|| policy?.number_of_clusters);
    number
        .and_then(|number| usize::try_from(number).ok())
        .unwrap_or_default()
}

/// The bindings of a placement by cluster; those that are being deleted are as gone.
#[derive(Debug, Default)]
pub(super) struct Bindings<'a> {
    /// Those by the latest policy.
    pub(super) current: BTreeMap<&'a str, &'a Binding>,
    /// Those by an older one.
    pub(super) obsolete: BTreeMap<&'a str, &'a Binding>,
    /// Those that are taken away once the rollout allows it.
    pub(super) unscheduled: BTreeMap<&'a str, &'a Binding>,
    /// Those of clusters that are gone, or have lost the placement's namespace, and any second one of a cluster.
    pub(super) dangling: Vec<&'a Binding>,
}

impl<'a> Bindings<'a> {
    pub(super) fn of(facts: &SchedulingFacts<'a>) -> Self {
        let clusters = facts.by_name();
        let namespace = facts.placement.metadata.namespace();
        let latest = facts.policy.metadata.name();
        let mut bindings = Self::default();
        let existing = facts.bindings.iter().copied();
        for binding in existing.filter(|binding| !binding.metadata.is_deleting()) {
            let cluster = &*binding.spec.target_cluster;
            let kind = if binding.spec.state == BindingState::Unscheduled {
                &mut bindings.unscheduled
            } else if clusters.get(cluster).is_none_or(|one| {
                namespace_unfit(namespace, one.cluster) == Some(Unfit::NoNamespace)
            }) {
                bindings.dangling.push(binding);
                continue;
            } else if binding.spec.scheduling_policy_snapshot_name == latest {
                &mut bindings.current
            } else {
                &mut bindings.obsolete
            };
            let former = kind.insert(cluster, binding);
            if let Some(former) = former
                && former.spec.state != BindingState::Unscheduled
            {
                bindings.dangling.push(former);
            }
        }
        // One that was made before the other was seen.
        let twice = bindings
            .obsolete
            .extract_if(.., |cluster, _| bindings.current.contains_key(cluster));
        bindings.dangling.extend(twice.map(|(_, binding)| binding));
        bindings
    }
}
