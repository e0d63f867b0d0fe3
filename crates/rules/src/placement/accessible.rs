//! Placements whose status can be read in the namespace that they place, too.

use fleet_api::Placement;
use fleet_api::placement::{NAMESPACE_ACCESSIBLE, PlacementStatus, ResourceSelector};
use objects::Scope;

/// Returns `true` if the status of a cluster-scoped placement is to be read by those who may read in a namespace only.
pub(super) fn is_accessible(placement: &Placement) -> bool {
    let scope = placement.spec.status_reporting_scope.as_deref();
    placement.scope() == Scope::Cluster && scope == Some(NAMESPACE_ACCESSIBLE)
}

/// Returns the namespace in which a placement that says this is to be read, too: the one that it has selected, whatever its
/// selectors say now.
pub fn readable_in<'a>(placement: &'a Placement, said: &'a PlacementStatus) -> Option<&'a str> {
    let selected = accessible_in(placement)?;
    Some(selected_namespace(said).unwrap_or(selected))
}

/// Returns the namespace that a placement has selected first.
pub(super) fn selected_namespace(status: &PlacementStatus) -> Option<&str> {
    let mut selected = status.selected_resources.iter();
    let namespace = selected.find(|one| one.group.is_empty() && one.kind == "Namespace")?;
    Some(&namespace.name)
}

/// Returns the namespace in which the status of a placement is to be read, too: the only one that it selects.
pub(super) fn accessible_in(placement: &Placement) -> Option<&str> {
    let selectors = &placement.spec.resource_selectors;
    let mut of_namespaces = selectors.iter().filter(|one| is_of_namespaces(one));
    let only = of_namespaces
        .next()
        .filter(|one| is_accessible(placement) && !one.name.is_empty())?;
    of_namespaces.next().is_none().then_some(&only.name)
}

/// Returns `true` for a selector of Namespaces.
pub(super) fn is_of_namespaces(selector: &ResourceSelector) -> bool {
    selector.group.is_empty() && selector.kind == "Namespace"
}
