//! The demands of a placement that are not served, or contradict themselves: each is refused by name, and never ignored.

use std::collections::BTreeSet;
use std::fmt;

use fleet_api::Placement;
use fleet_api::placement::{NAMESPACE_ACCESSIBLE, PlacementSpec, RolloutStrategy};
use fleet_api::policy::{ClusterSelectorTerm, PlacementPolicy, PlacementType, PropertyRequirement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::Scope;
use objects::qualified_name::is_subdomain;
use objects::selector::is_valid;
use objects::{GroupVersionKind, Metadata};

use super::accessible::{accessible_in, is_accessible};
use super::filter::affinity;
use super::property;
use super::select::InvalidSelector;
use super::strategy::{ApplyType, Strategy};

/// Something in a placement that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    field: &'static str,
    reason: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

/// Why nothing is done about a placement until it is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, one word.
    pub reason: &'static str,
    /// The details.
    pub message: String,
}

impl From<&InvalidSelector> for Refusal {
    fn from(invalid: &InvalidSelector) -> Self {
        Self {
            reason: "InvalidResourceSelectors",
            message: invalid.to_string(),
        }
    }
}

impl Refusal {
    /// Returns the refusal of a placement that selects, or sweeps up, a kind that its controller may not list.
    pub fn of_forbidden(kind: &GroupVersionKind) -> Self {
        Self {
            reason: "InvalidResourceSelectors",
            message: format!(
                "The controller may not list {kind}, which the placement may select: give it the right to list and \
                 watch that kind, or select less"
            ),
        }
    }

    /// Returns the refusal of a placement that selects, or has, something of a part of the API that does not answer: a group,
    /// or a kind.
    pub fn of_unanswered(part: &str) -> Self {
        Self {
            reason: "InvalidResourceSelectors",
            message: format!(
                "The hub does not answer about {part}, of which the placement selects objects: mend its APIService, or the \
                 conversion webhook of its definition, or select less"
            ),
        }
    }

    /// Returns the refusal of a placement with problems, or `None` without any.
    pub fn of(problems: &[Problem]) -> Option<Self> {
        let texts: Vec<_> = problems.iter().map(Problem::to_string).collect();
        (!texts.is_empty()).then(|| Self {
            reason: "PlacementRefused",
            message: format!("The placement is refused: {}", texts.join("; ")),
        })
    }
}

/// A field, whether it is refused, and why.
pub(super) type Check = (&'static str, bool, &'static str);

/// Returns the reason why a placement is refused.
pub fn problems(placement: &Placement) -> Vec<Problem> {
    let PlacementSpec {
        policy, strategy, ..
    } = &placement.spec;
    let scope = placement.spec.status_reporting_scope.as_deref();
    let mut checks = vec![
        (
            "metadata.name",
            placement.metadata.name().len() > 63,
            "is longer than 63 characters",
        ),
        (
            "spec.statusReportingScope",
            placement.scope() == Scope::Cluster
                && scope.is_some_and(|scope| {
                    !is_default(scope, "ClusterScopeOnly") && scope != NAMESPACE_ACCESSIBLE
                }),
            "is not served: only ClusterScopeOnly and NamespaceAccessible are",
        ),
        (
            "spec.statusReportingScope",
            is_accessible(placement) && accessible_in(placement).is_none(),
            "is NamespaceAccessible, which needs exactly one selector of a Namespace, by its name",
        ),
        (
            "spec",
            !label_selectors(placement).all(is_valid),
            "has a labelSelector that Kubernetes refuses",
        ),
    ];
    checks.extend(of_strategy(strategy));
    if let Some(policy) = policy {
        checks.extend(of_type(policy));
        checks.extend(of_terms(policy));
    }
    found(&checks)
}

/// Returns the reason why the change from one placement to another is refused.
pub fn changes(old: &Placement, new: &Placement) -> Vec<Problem> {
    let Some(new) = &new.spec.policy else {
        let is_removed = old.spec.policy.is_some();
        return found(&[("spec.policy", is_removed, "cannot be removed")]);
    };
    // Without one, all clusters are picked.
    let old = old.spec.policy.clone().unwrap_or_default();
    let keeps_tolerations = old
        .tolerations
        .iter()
        .all(|one| new.tolerations.contains(one));
    found(&[
        (
            "spec.policy.placementType",
            old.placement_type != new.placement_type,
            "cannot be changed: the placement type is immutable",
        ),
        (
            "spec.policy.tolerations",
            !keeps_tolerations,
            "can only be added to",
        ),
    ])
}

/// Returns the selectors by which a placement picks objects and clusters.
fn label_selectors(placement: &Placement) -> impl Iterator<Item = &LabelSelector> {
    let PlacementSpec {
        resource_selectors,
        policy,
        ..
    } = &placement.spec;
    let policies = policy.iter();
    let terms = policies.flat_map(|policy| required(policy).chain(preferred(policy)));
    let of_objects = resource_selectors.iter().map(|one| &one.label_selector);
    of_objects
        .chain(terms.map(|term| &term.label_selector))
        .flatten()
}

/// Returns the terms of which a cluster must meet one.
fn required(policy: &PlacementPolicy) -> impl Iterator<Item = &ClusterSelectorTerm> {
    let required = affinity(policy).and_then(|affinity| affinity.required.as_ref());
    required
        .into_iter()
        .flat_map(|required| &required.cluster_selector_terms)
}

/// Returns the terms that a cluster had better meet.
fn preferred(policy: &PlacementPolicy) -> impl Iterator<Item = &ClusterSelectorTerm> {
    let preferred = affinity(policy).into_iter();
    preferred
        .flat_map(|affinity| &affinity.preferred)
        .map(|term| &term.preference)
}

fn property_requirements(term: &ClusterSelectorTerm) -> &[PropertyRequirement] {
    let selector = term.property_selector.as_ref();
    selector.map_or(&[], |selector| &selector.match_expressions)
}

/// Returns the problems among checks.
pub(super) fn found(checks: &[Check]) -> Vec<Problem> {
    let found = checks.iter().filter(|(_, is_refused, _)| *is_refused);
    let problems = found.map(|&(field, _, reason)| Problem { field, reason });
    problems.collect()
}

fn is_default(value: &str, default: &str) -> bool {
    value.is_empty() || value == default
}

fn of_strategy(strategy: &RolloutStrategy) -> Vec<Check> {
    let delete = strategy.delete_strategy.as_ref();
    let report_back = strategy.report_back_strategy.as_ref();
    let update = strategy.rolling_update.iter();
    let mut bounds = update
        .flat_map(|one| [&one.max_unavailable, &one.max_surge])
        .flatten();
    let mut checks = vec![
        (
            "spec.strategy.type",
            !["", "RollingUpdate", "External"].contains(&&*strategy.type_),
            "is not served: only RollingUpdate and External are",
        ),
        (
            "spec.strategy.rollingUpdate",
            strategy.type_ == "External" && strategy.rolling_update.is_some(),
            "is only for RollingUpdate",
        ),
        (
            "spec.strategy.rollingUpdate",
            bounds.any(|bound| matches!(bound, IntOrString::Int(number) if *number < 0)),
            "has a negative number",
        ),
        (
            "spec.strategy.deleteStrategy",
            delete.is_some_and(|delete| !is_default(&delete.propagation_policy, "Delete")),
            "is not served: only Delete is",
        ),
        (
            "spec.strategy.reportBackStrategy",
            report_back.is_some_and(|report| !is_default(&report.type_, "Disabled")),
            "is not served: only Disabled is",
        ),
    ];
    if let Some(apply) = &strategy.apply_strategy {
        let is_configured = apply.server_side_apply_config.is_some();
        let type_ = Strategy::of(Some(apply)).type_;
        checks.push((
            "spec.strategy.applyStrategy.serverSideApplyConfig",
            is_configured && !matches!(type_, ApplyType::ServerSideApply { .. }),
            "needs type ServerSideApply",
        ));
    }
    checks
}

fn of_type(policy: &PlacementPolicy) -> Vec<Check> {
    let names = &policy.cluster_names;
    let distinct: BTreeSet<_> = names.iter().collect();
    let has_number = policy.number_of_clusters.is_some();
    let has_spread = !policy.topology_spread_constraints.is_empty();
    let prefers = affinity(policy).is_some_and(|affinity| !affinity.preferred.is_empty());
    let is_all = policy.placement_type == PlacementType::PickAll;
    let is_fixed = policy.placement_type == PlacementType::PickFixed;
    let is_number = policy.placement_type == PlacementType::PickN;
    vec![
        (
            "spec.policy.clusterNames",
            distinct.len() < names.len(),
            "has a name twice",
        ),
        (
            "spec.policy.clusterNames",
            !names.iter().all(|name| is_cluster_name(name)),
            "has a name that no cluster can have",
        ),
        (
            "spec.policy.clusterNames",
            !is_fixed && !names.is_empty(),
            "is only for PickFixed",
        ),
        (
            "spec.policy.numberOfClusters",
            is_number && !has_number,
            "is needed by PickN",
        ),
        (
            "spec.policy.numberOfClusters",
            !is_number && has_number,
            "is only for PickN",
        ),
        (
            "spec.policy.topologySpreadConstraints",
            !is_number && has_spread,
            "is only for PickN",
        ),
        (
            "spec.policy.affinity",
            is_fixed && policy.affinity.is_some(),
            "is not for PickFixed",
        ),
        (
            "spec.policy.affinity",
            is_all && prefers,
            "has preferred terms, which PickAll has no use for",
        ),
        (
            "spec.policy.tolerations",
            is_fixed && !policy.tolerations.is_empty(),
            "is not for PickFixed",
        ),
    ]
}

fn is_cluster_name(name: &str) -> bool {
    name.len() <= 63 && is_subdomain(name)
}

fn of_terms(policy: &PlacementPolicy) -> Vec<Check> {
    let tolerations = &policy.tolerations;
    let is_twice = (1..)
        .zip(tolerations)
        .any(|(next, one)| tolerations.iter().skip(next).any(|other| other == one));
    let of_terms: Vec<_> = required(policy).map(property_requirements).collect();
    let requirements = of_terms.iter().copied().flatten();
    let sorters = preferred(policy).filter_map(|term| term.property_sorter.as_ref());
    let of_sorters = sorters.map(|sorter| &sorter.name);
    let mut properties = requirements.clone().map(|one| &one.name).chain(of_sorters);
    vec![
        (
            "spec.policy.affinity",
            !properties.all(|name| property::is_property(name)),
            "has a name that no property can have: one of the room of a cluster is \
             resources.kubernetes-fleet.io/PART-RESOURCE, its PART total, allocatable or available",
        ),
        (
            "spec.policy.affinity",
            !requirements.clone().all(property::has_quantities),
            "has a property that is compared with what is no quantity",
        ),
        (
            "spec.policy.affinity",
            of_terms.iter().any(|of_term| is_impossible(of_term)),
            "has a term whose requirements of a property exclude each other",
        ),
        (
            "spec.policy.affinity",
            required(policy).any(|term| term.property_sorter.is_some()),
            "has a required term with a propertySorter",
        ),
        (
            "spec.policy.affinity",
            preferred(policy).any(|term| term.property_selector.is_some()),
            "has a preferred term with a propertySelector",
        ),
        ("spec.policy.tolerations", is_twice, "has one twice"),
    ]
}

/// Returns `true` if two requirements of a term exclude each other.
fn is_impossible(term: &[PropertyRequirement]) -> bool {
    let mut requirements = term.iter();
    requirements.any(|one| term.iter().any(|other| property::exclude(one, other)))
}

#[cfg(test)]
mod tests;
