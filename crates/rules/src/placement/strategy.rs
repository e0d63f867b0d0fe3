//! The strategy of a placement, with what it leaves out.

use karmada_api::fleet::ClusterResourcePlacement;
use karmada_api::fleet::placement::ApplyStrategy;

/// Returns how the objects of a placement are written, with the defaults written out.
pub fn apply_strategy(placement: &ClusterResourcePlacement) -> ApplyStrategy {
    let mut strategy = placement
        .spec
        .strategy
        .apply_strategy
        .clone()
        .unwrap_or_default();
    for (field, default) in [
        (&mut strategy.comparison_option, "PartialComparison"),
        (&mut strategy.type_, "ClientSideApply"),
        (&mut strategy.when_to_apply, "Always"),
        (&mut strategy.when_to_take_over, "Always"),
    ] {
        if field.is_empty() {
            default.clone_into(field);
        }
    }
    strategy
}
