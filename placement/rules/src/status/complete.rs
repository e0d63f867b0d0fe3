//! The end of a rollout.

use fleet_api::Binding;
use fleet_api::conditions::{AVAILABLE, DIFF_REPORTED, ROLLOUT_STARTED};

use super::facts::is_current;
use crate::condition::is_true;

/// Returns `true` if the cluster of a binding says of the version that it was given last that it is available, or how it differs.
pub fn has_arrived(binding: &Binding) -> bool {
    is_current(binding)
        && is_true(binding, ROLLOUT_STARTED)
        && (is_true(binding, AVAILABLE) || is_true(binding, DIFF_REPORTED))
}

/// Returns `true` if all clusters with a placement, which has these bindings, have the same snapshot, and none is kept from
/// a later one.
pub fn is_complete(bindings: &[&Binding]) -> bool {
    let mut current = bindings.iter().filter(|one| is_current(one));
    let Some(first) = current.next() else {
        return false;
    };
    let snapshot = &first.spec.resource_snapshot_name;
    has_arrived(first)
        && current.all(|one| one.spec.resource_snapshot_name == *snapshot && has_arrived(one))
}
