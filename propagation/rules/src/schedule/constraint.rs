//! The groups of a spread constraint, and when it wants one of them.

use karmada_api::placement::SpreadConstraint;

/// Returns the field whose values make the groups, and `None` for those made by a label.
fn groups(constraint: &SpreadConstraint) -> Option<&str> {
    let field = constraint.spread_by_field.as_deref().unwrap_or_default();
    let label = constraint.spread_by_label.as_deref().unwrap_or_default();
    match (field, label) {
        ("", "") => Some("cluster"),
        ("", _) => None,
        (field, _) => Some(field),
    }
}

/// Returns the constraint whose groups are made by this field.
pub(super) fn by<'a>(
    constraints: &'a [SpreadConstraint],
    field: &str,
) -> Option<&'a SpreadConstraint> {
    let mut constraints = constraints.iter();
    constraints.find(|constraint| groups(constraint) == Some(field))
}

/// Returns `true` if the constraint wants one cluster, neither more nor less.
pub(super) fn wants_one_cluster(constraint: &SpreadConstraint) -> bool {
    groups(constraint) == Some("cluster")
        && constraint.min_groups.is_none_or(|least| least <= 1)
        && constraint.max_groups == Some(1)
}
