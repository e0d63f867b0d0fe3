//! The kinds of templates, and the objects of a kind that may be some.

use std::collections::BTreeSet;

use karmada_runtime::dynamic::ServedKind;
use kube::runtime::watcher::Config;
use objects::GroupVersionKind;
use propagation_rules::candidate::Candidate;

/// Selects the objects of a kind that may be templates. The Secrets that Karmada keeps for clusters are
/// none, and are not read: they open the members.
pub(super) fn selected(kind: &ServedKind) -> Config {
    let all = Config::default();
    if kind.resource.group.is_empty() && kind.resource.kind == "Secret" {
        all.fields("metadata.namespace!=karmada-cluster")
    } else {
        all
    }
}

/// Returns the kinds that a policy selects.
pub(super) fn kinds_of(policy: Option<&Candidate<'_>>) -> BTreeSet<GroupVersionKind> {
    let selectors = policy.map(|policy| &policy.spec.resource_selectors);
    let selectors = selectors.into_iter().flatten();
    selectors
        .filter(|selector| !selector.kind.is_empty() && !selector.api_version.is_empty())
        .map(|selector| GroupVersionKind::new(&selector.api_version, &selector.kind))
        .collect()
}

/// Returns `true` if the policy selects the kind.
pub(super) fn selects(policy: &Candidate<'_>, kind: &GroupVersionKind) -> bool {
    kinds_of(Some(policy)).contains(kind)
}

/// Returns the kind of the priorities that policies name.
pub(super) fn priority_class() -> GroupVersionKind {
    GroupVersionKind::new("scheduling.k8s.io/v1", "PriorityClass")
}

/// Returns `true` if the policy names a PriorityClass.
pub(super) fn has_priority(policy: &Candidate<'_>) -> bool {
    policy.spec.schedule_priority.is_some()
}
