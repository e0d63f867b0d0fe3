//! The clusters that a placement's policy has picked, and those that it is leaving.

use std::collections::BTreeMap;

use fleet_api::binding::BindingState;
use fleet_api::names::{NUMBER_OF_CLUSTERS, POLICY_INDEX};
use fleet_api::policy::PlacementType;
use fleet_api::{Binding, Placement, PolicySnapshot};
use objects::Metadata;
use objects::condition::{TRUE, find};

use super::facts::UpdateFacts;
use super::step::{Obstacle, invalid};
use crate::snapshot::latest_policy;
use crate::strategy::is_external;

/// The latest policy of a placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy<'a> {
    pub(super) snapshot: &'a PolicySnapshot,
    /// Its index.
    pub(super) index: &'a str,
    /// The number of clusters that it asks for, if it asks for a number.
    pub(super) count: Option<i64>,
}

/// The bindings of a placement.
#[derive(Debug)]
pub(super) struct Picked<'a> {
    /// Those of clusters that are picked.
    pub(super) selected: BTreeMap<&'a str, &'a Binding>,
    /// Those of clusters that are no longer, as long as they are there.
    pub(super) leaving: Vec<&'a Binding>,
}

/// Returns the placement of a run.
///
/// # Errors
/// Fails if there is none that leaves its changes to runs.
pub(super) fn placement<'a>(facts: &UpdateFacts<'a>) -> Result<&'a Placement, Obstacle> {
    let placement = facts.placement;
    let staying = placement.filter(|placement| !placement.metadata.is_deleting());
    let placement = staying.ok_or_else(|| invalid("parent placement not found"))?;
    if !is_external(placement) {
        let strategy = match &*placement.spec.strategy.type_ {
            "" => "RollingUpdate",
            strategy => strategy,
        };
        return Err(invalid(&format!(
            "parent placement does not have an external rollout strategy, current strategy: {strategy}"
        )));
    }
    Ok(placement)
}

impl<'a> Policy<'a> {
    /// Returns the latest policy of a placement.
    ///
    /// # Errors
    /// Fails if there is none, or not every cluster that it asks for was found.
    pub(super) fn latest(facts: &UpdateFacts<'a>, placement: &Placement) -> Result<Self, Obstacle> {
        // Of a placement that has just been made, or edited, its policy and the decisions by that are about to come.
        let snapshot = latest_policy(facts.policies).ok_or(Obstacle::Missing)?;
        let status = snapshot.status.clone().unwrap_or_default();
        let scheduled = find(&status.conditions, "Scheduled")
            .filter(|one| one.observed_generation == snapshot.metadata.generation);
        let is_current = status.observed_placement_generation >= placement.metadata.generation;
        let Some(scheduled) = scheduled.filter(|_| is_current) else {
            return Err(Obstacle::Missing);
        };
        if scheduled.status != TRUE {
            let snapshot = snapshot.metadata.name();
            return Err(invalid(&format!(
                "policy snapshot `{snapshot}` not fully scheduled yet"
            )));
        }
        Ok(Self {
            snapshot,
            index: snapshot.metadata.label(POLICY_INDEX).unwrap_or_default(),
            count: count(snapshot),
        })
    }

    /// Returns the clusters that it picked.
    ///
    /// # Errors
    /// Fails if these are none, or not as many as it asks for.
    pub(super) fn picked(&self, facts: &UpdateFacts<'a>) -> Result<Picked<'a>, Obstacle> {
        let latest = self.snapshot.metadata.name();
        let mut picked = Picked {
            selected: BTreeMap::new(),
            leaving: Vec::new(),
        };
        for binding in facts.bindings {
            let spec = &binding.spec;
            if spec.state == BindingState::Unscheduled {
                picked.leaving.push(*binding);
            } else if binding.metadata.is_deleting() {
                // It was evicted.
            } else if spec.scheduling_policy_snapshot_name == latest {
                picked.selected.insert(&spec.target_cluster, binding);
            } else {
                // The scheduler is about to move it.
                return Err(Obstacle::Missing);
            }
        }
        let number = picked.selected.len();
        match self.count {
            Some(count) if usize::try_from(count) != Ok(number) => Err(invalid(&format!(
                "the number of selected bindings {number} is not equal to the observed cluster count {count}"
            ))),
            _ => Ok(picked),
        }
    }
}

fn count(snapshot: &PolicySnapshot) -> Option<i64> {
    let policy = snapshot.spec.policy.as_ref()?;
    match policy.placement_type {
        PlacementType::PickAll => None,
        PlacementType::PickFixed => i64::try_from(policy.cluster_names.len()).ok(),
        PlacementType::PickN => {
            let number = snapshot.metadata.annotation(NUMBER_OF_CLUSTERS);
            number.and_then(|number| number.parse().ok())
        }
    }
}

impl<'a> Picked<'a> {
    /// Returns the binding of a cluster that is picked.
    ///
    /// # Errors
    /// Fails with a message if it has none, which was ruled out before.
    pub(super) fn of(&self, cluster: &str) -> Result<&'a Binding, String> {
        let binding = self.selected.get(cluster).copied();
        binding.ok_or_else(|| format!("the binding for cluster `{cluster}` is not found"))
    }
}
