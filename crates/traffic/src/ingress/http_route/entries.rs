use karmada_api::gateway_api::{GROUP, HttpRoute, ParentReference, RouteParentStatus};

use crate::ingress::class::ControllerName;

/// Returns our entries in the status of `route`.
pub(super) fn own_entries<'a>(
    route: &'a HttpRoute,
    controller: &ControllerName,
) -> impl Iterator<Item = &'a RouteParentStatus> {
    let entries = route.status.iter().flat_map(|status| &status.parents);
    entries.filter(move |entry| entry.controller_name == controller.as_str())
}

/// Returns `true` if the status of `route` has an entry of ours.
pub fn has_entry(route: &HttpRoute, controller: &ControllerName) -> bool {
    own_entries(route, controller).next().is_some()
}

/// Returns `true` if both are the same reference of a route. An API server fills in the defaults.
pub(super) fn is_same_parent(a: &ParentReference, b: &ParentReference) -> bool {
    group_and_kind(a) == group_and_kind(b)
        && (&a.namespace, &a.name) == (&b.namespace, &b.name)
        && (&a.section_name, a.port) == (&b.section_name, b.port)
}

/// Returns the group and the kind of a parent.
pub(super) fn group_and_kind(reference: &ParentReference) -> (&str, &str) {
    let group = reference.group.as_deref().unwrap_or(GROUP);
    (group, reference.kind.as_deref().unwrap_or("Gateway"))
}
