//! Who wants a binding: a policy, other bindings, or somebody else.

use karmada_api::names;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::claim::Claim;
use serde_json::Value;

use crate::index::Index;

/// Returns `true` if Works are made for the binding: a policy has it, other bindings require it, or
/// somebody else cares for it. One that was only attached, and that nothing requires any more, loses its own.
pub(crate) fn is_dispatched(binding: BindingRef<'_>) -> bool {
    let spec = binding.spec;
    let clusters = spec.clusters.iter().flatten();
    Claim::of(binding.metadata).is_some()
        || is_wanted_elsewhere(binding)
        || (spec.placement.is_none() && clusters.count() == 0)
}

/// Returns `true` if other bindings require it, or somebody else cares for it.
fn is_wanted_elsewhere(binding: BindingRef<'_>) -> bool {
    let labels = binding.metadata.labels.as_ref();
    binding.spec.required_by.iter().flatten().next().is_some()
        || labels.is_some_and(|labels| labels.contains_key(names::MANAGED_BY))
}

/// Returns `true` for a binding of which nobody says in which version its template is wanted: no policy has it, and nobody
/// requires it.
pub(crate) fn is_free(binding: BindingRef<'_>) -> bool {
    Claim::of(binding.metadata).is_none() && !is_wanted_elsewhere(binding)
}

/// Returns `true` if the policy has lost a template that still bears its claim. Its override policies may go with it, and a
/// template without a policy keeps their changes.
pub(super) fn is_left(index: &Index, binding: BindingRef<'_>, template: &Value) -> bool {
    let policy = index.policy_of(binding);
    policy.is_some_and(|policy| policy.candidate().is_deleting() || !policy.selects(template))
        && !is_wanted_elsewhere(binding)
}
