//! Evictions: whether a placement is taken from a cluster, once, and its conditions. The words are KubeFleet's, by
//! which its users' scripts tell one outcome from another.

use fleet_api::binding::BindingState;
use fleet_api::conditions::{
    APPLIED, APPLY_IN_PROGRESS, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, WORK_SYNCHRONIZED,
};
use fleet_api::eviction::BudgetSpec;
use fleet_api::names::{EVICTED_BINDING, PREVIOUS_STATE};
use fleet_api::policy::{PlacementPolicy, PlacementType};
use fleet_api::{
    Binding, ClusterResourcePlacementDisruptionBudget, ClusterResourcePlacementEviction, Placement,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE, find};

use super::condition::{condition, current_condition, is_true, put};
use super::strategy::part_of;

const VALID: &str = "Valid";
/// The condition of an eviction: whether it was executed.
pub const EXECUTED: &str = "Executed";

const BEING_REMOVED: &str = "Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction";
const HAS_FAILED: &str = "Eviction is allowed, placement has failed";
const NO_BUDGET: &str =
    "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified";
const NOTHING_THERE: &str =
    "Eviction is blocked, placement has not propagated resources to target cluster yet";
const BAD_BUDGET: &str = "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement";

/// Everything that decides about an eviction.
#[derive(Clone, Copy, Debug)]
pub struct EvictionFacts<'a> {
    /// The eviction.
    pub eviction: &'a ClusterResourcePlacementEviction,
    /// The placement that it names.
    pub placement: Option<&'a Placement>,
    /// All bindings of that.
    pub bindings: &'a [Binding],
    /// The budget of that.
    pub budget: Option<&'a ClusterResourcePlacementDisruptionBudget>,
}

/// The outcome of an eviction.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<'a> {
    /// It makes no sense.
    Invalid(&'static str),
    /// It may not be executed.
    Blocked(String),
    /// The placement leaves the cluster already.
    Leaving,
    /// The binding is deleted.
    Evict {
        /// The binding.
        binding: &'a Binding,
        /// Why it may be.
        message: String,
    },
}

/// Returns `true` if the outcome of an eviction was told: it is never executed again.
pub fn is_terminal(eviction: &ClusterResourcePlacementEviction) -> bool {
    let status = eviction.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let is_invalid = find(conditions, VALID).is_some_and(|valid| valid.status == FALSE);
    is_invalid || find(conditions, EXECUTED).is_some()
}

/// Decides about an eviction.
pub fn judge<'a>(facts: &EvictionFacts<'a>) -> Verdict<'a> {
    if is_noted_and_gone(facts) {
        return Verdict::Leaving;
    }
    let (policy, binding) = match target(facts) {
        Ok(target) => target,
        Err(message) => return Verdict::Invalid(message),
    };
    if binding.metadata.is_deleting() {
        return Verdict::Leaving;
    }
    match permission(facts, &policy, binding) {
        Ok(message) => Verdict::Evict { binding, message },
        Err(message) => Verdict::Blocked(message),
    }
}

/// Returns why a binding may be deleted.
///
/// # Errors
/// Fails with the reason if it may not.
fn permission(
    facts: &EvictionFacts<'_>,
    policy: &PlacementPolicy,
    binding: &Binding,
) -> Result<String, String> {
    if !may_be_there(binding) {
        return Err(NOTHING_THERE.to_owned());
    }
    if serves_nobody(binding) {
        return Ok(HAS_FAILED.to_owned());
    }
    let Some(budget) = facts.budget else {
        return Ok(NO_BUDGET.to_owned());
    };
    let (available, total) = (available(facts.bindings), facts.bindings.len());
    let allowed = allowed(&budget.spec, policy, (available, total)).ok_or(BAD_BUDGET)?;
    let by = format!(
        "by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: {available}, totalPlacements: {total}"
    );
    if allowed > 0 {
        Ok(format!("Eviction is allowed {by}"))
    } else {
        Err(format!("Eviction is blocked {by}"))
    }
}

/// Returns `true` if the binding that was to be deleted is, or is about to be. A binding that was picked since is not to
/// go as well.
fn is_noted_and_gone(facts: &EvictionFacts<'_>) -> bool {
    let Some(uid) = facts.eviction.metadata.annotation(EVICTED_BINDING) else {
        return false;
    };
    let mut bindings = facts.bindings.iter();
    let evicted = bindings.find(|one| one.metadata.uid() == uid);
    evicted.is_none_or(|binding| binding.metadata.is_deleting())
}

/// Returns the policy of the placement, and its binding on the cluster.
///
/// # Errors
/// Fails with a message if the eviction makes no sense.
fn target<'a>(facts: &EvictionFacts<'a>) -> Result<(PlacementPolicy, &'a Binding), &'static str> {
    let placement = facts
        .placement
        .ok_or("Failed to find ClusterResourcePlacement targeted by eviction")?;
    if placement.metadata.is_deleting() {
        return Err("Found deleting ClusterResourcePlacement targeted by eviction");
    }
    let policy = placement.spec.policy.clone().unwrap_or_default();
    if policy.placement_type == PlacementType::PickFixed {
        return Err(
            "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction",
        );
    }
    let cluster = &facts.eviction.spec.cluster_name;
    let bindings = facts.bindings.iter();
    let mut on_cluster = bindings.filter(|binding| binding.spec.target_cluster == *cluster);
    let binding = on_cluster
        .next()
        .ok_or("Failed to find scheduler decision for placement in cluster targeted by eviction")?;
    if on_cluster.next().is_some() {
        return Err(
            "Found more than one scheduler decision for placement in cluster targeted by eviction",
        );
    }
    Ok((policy, binding))
}

/// Returns the number of clusters that may be lost now, of those that are available and of all; `None` if the budget is not
/// one for such a policy.
fn allowed(
    budget: &BudgetSpec,
    policy: &PlacementPolicy,
    (available, total): (usize, usize),
) -> Option<usize> {
    let wanted = policy.number_of_clusters.unwrap_or_default();
    let wanted = usize::try_from(wanted).unwrap_or_default();
    // All clusters are as many as there are: no percentage of them can be told.
    let is_all = policy.placement_type == PlacementType::PickAll;
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(_), _) | (None, Some(IntOrString::String(_))) if is_all => None,
        (Some(most), _) => {
            let most = part_of(most, wanted)?;
            Some(most.saturating_sub(total - available))
        }
        (None, Some(least)) => Some(available.saturating_sub(part_of(least, wanted)?)),
        (None, None) => Some(0),
    }
}

fn available(bindings: &[Binding]) -> usize {
    let present = bindings.iter().filter(|one| !one.metadata.is_deleting());
    present.filter(|one| is_true(one, AVAILABLE)).count()
}

/// Returns `true` if the cluster may have something of the placement.
fn may_be_there(binding: &Binding) -> bool {
    match binding.spec.state {
        BindingState::Bound => true,
        BindingState::Scheduled => false,
        BindingState::Unscheduled => binding.metadata.annotation(PREVIOUS_STATE) == Some("Bound"),
    }
}

/// Returns `true` if nothing is lost with a binding: it has failed, or only looks.
fn serves_nobody(binding: &Binding) -> bool {
    let steps = [OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE];
    let mut steps = steps
        .iter()
        .filter_map(|kind| current_condition(binding, kind));
    // A cluster that has not answered yet serves the version before.
    let has_failed = steps.any(|step| step.status == FALSE && step.reason != APPLY_IN_PROGRESS);
    has_failed || is_true(binding, DIFF_REPORTED)
}

/// Returns the conditions of an eviction about which this was decided.
pub fn told(
    eviction: &ClusterResourcePlacementEviction,
    verdict: &Verdict<'_>,
    now: Timestamp,
) -> Vec<Condition> {
    let reason = "ClusterResourcePlacementEvictionValid";
    let valid = condition((VALID, TRUE), reason, "Eviction is valid");
    let new = match verdict {
        Verdict::Invalid(message) => {
            let reason = "ClusterResourcePlacementEvictionInvalid";
            vec![condition((VALID, FALSE), reason, message)]
        }
        Verdict::Blocked(message) => {
            let reason = "ClusterResourcePlacementEvictionNotExecuted";
            vec![valid, condition((EXECUTED, FALSE), reason, message)]
        }
        Verdict::Leaving => vec![valid, executed(BEING_REMOVED)],
        Verdict::Evict { message, .. } => vec![valid, executed(message)],
    };
    let status = eviction.status.clone().unwrap_or_default();
    let mut conditions = status.conditions;
    put(&mut conditions, new, (eviction.metadata.generation, now));
    conditions
}

fn executed(message: &str) -> Condition {
    let reason = "ClusterResourcePlacementEvictionExecuted";
    condition((EXECUTED, TRUE), reason, message)
}

#[cfg(test)]
mod tests;
