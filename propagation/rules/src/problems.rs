//! The problems of a policy, with the messages that Karmada's webhook refuses it with. Where no webhook
//! runs, a policy may have any of them.

mod found;
mod placement;

use karmada_api::policy::{
    ACTIVATION_LAZY, CONFLICT_ABORT, CONFLICT_OVERWRITE, KUBE_PRIORITY_CLASS, PREEMPTION_ALWAYS,
};
use karmada_api::{Placement, PropagationSpec};

use self::found::Found;
pub use self::found::Problem;
use super::candidate::Candidate;

/// Returns the problems of `policy`; none if it can be applied.
pub fn problems(policy: &Candidate<'_>) -> Vec<Problem> {
    let mut found = Found::default();
    let spec = policy.spec;
    selectors(&mut found, policy.namespace(), spec);
    enums(&mut found, spec);
    let pause = spec.suspension.as_ref();
    let on_clusters = pause.and_then(|pause| pause.dispatching_on_clusters.as_ref());
    if pause.is_some_and(|pause| pause.dispatching == Some(true))
        && on_clusters.is_some_and(|on| !on.cluster_names.is_empty())
    {
        found.invalid(
            "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames",
        );
    }
    match spec
        .placement
        .clone()
        .map(serde_json::from_value::<Placement>)
    {
        None => {}
        Some(Ok(placement)) => placement::placement(&mut found, &placement),
        Some(Err(error)) => found.unsupported(format!("a placement of another form: {error}")),
    }
    found.0
}

fn selectors(found: &mut Found, namespace: Option<&str>, spec: &PropagationSpec) {
    if spec.resource_selectors.is_empty() {
        found.invalid("resourceSelectors should have at least 1 items");
    }
    let selected = spec.resource_selectors.iter();
    let mut selected = selected.filter_map(|selector| selector.namespace.as_deref());
    if let Some(own) = namespace
        && selected.any(|namespace| !namespace.is_empty() && namespace != own)
    {
        found.invalid(
            "namespace of resource selector must be the same as the namespace of the policy",
        );
    }
    let mut selectors = spec.resource_selectors.iter();
    if spec.preempts() && selectors.any(|s| s.name.as_ref().is_none_or(String::is_empty)) {
        found.invalid("name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption");
    }
}

/// Refuses values that only a later version understands.
fn enums(found: &mut Found, spec: &PropagationSpec) {
    let fields: [(_, _, &[&str]); 3] = [
        (
            "preemption",
            &spec.preemption,
            &[PREEMPTION_ALWAYS, "Never"],
        ),
        (
            "conflictResolution",
            &spec.conflict_resolution,
            &[CONFLICT_ABORT, CONFLICT_OVERWRITE],
        ),
        (
            "activationPreference",
            &spec.activation_preference,
            &[ACTIVATION_LAZY],
        ),
    ];
    for (field, value, known) in fields {
        found.known(field, value.as_deref(), known);
    }
    if let Some(priority) = &spec.schedule_priority {
        let source = Some(priority.priority_class_source.as_str());
        found.known("priorityClassSource", source, &[KUBE_PRIORITY_CLASS]);
    }
}

#[cfg(test)]
mod tests;
