use super::*;
use crate::ingress::Ownership;

fn with_entry(mut route: HttpRoute, gateway: &str) -> HttpRoute {
    let entry = json!({ "controllerName": OURS, "parentRef": to(gateway) });
    route.status = Some(from_value(json!({ "parents": [entry] })).unwrap());
    route
}

/// Returns the owner, and the number of parents that are ours.
fn owner(parents: &Value, facts: &World) -> (Ownership, usize) {
    let route = route(parents, json!({}));
    let attachment = attachment(&route, facts, &ours());
    (attachment.owner, attachment.parents.len())
}

/// A route is ours if the class of one of its Gateways has our controller, whatever else it refers to.
#[test]
fn class_decides_ownership() {
    let facts = fleet(&json!([]));
    let service = json!({ "group": "", "kind": "Service", "namespace": "infra", "name": "web" });
    for (parents, expected) in [
        (json!([to("web")]), (Ownership::Ours, 1)),
        (json!([to("theirs"), to("web")]), (Ownership::Ours, 1)),
        (json!([to("theirs")]), (Ownership::Foreign, 0)),
        (json!([{ "name": "web" }]), (Ownership::Foreign, 0)),
        (json!([service]), (Ownership::Foreign, 0)),
        (json!([to("nowhere")]), (Ownership::Foreign, 0)),
        (json!([]), (Ownership::Foreign, 0)),
    ] {
        assert_eq!(owner(&parents, &facts), expected, "{parents}");
    }
}

/// A Gateway or class that vanishes takes nothing away where our entry says that it was ours.
#[test]
fn own_entry_outlasts_gateway() {
    let mut facts = fleet(&json!([]));
    let parents = json!([to("web"), to("nowhere")]);
    let known = with_entry(route(&parents, json!({})), "web");
    let found = |facts: &World| {
        let found = attachment(&known, facts, &ours());
        (found.owner, found.parents.len())
    };
    assert_eq!(found(&facts), (Ownership::Ours, 1));
    facts.classes.remove(0);
    assert_eq!(found(&facts), (Ownership::Unclaimed, 1));
    facts.gateways.clear();
    assert_eq!(found(&facts), (Ownership::Unclaimed, 1));
    let refused = ingress_spec(&known, &attachment(&known, &facts, &ours()).parents).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Gateway infra/web does not exist; create it, or remove it from parentRefs"
    );
    assert_eq!(owner(&parents, &facts), (Ownership::Foreign, 0));
}

/// While Gateways are not known, a route of ours may be attached to them.
#[test]
fn unread_gateway_is_unclear() {
    let mut facts = fleet(&json!([]));
    facts.are_unread = true;
    assert_eq!(owner(&json!([to("web")]), &facts), (Ownership::Ours, 1));
    let both = json!([to("web"), to("other")]);
    assert_eq!(owner(&both, &facts), (Ownership::Unclear, 1));
}

/// No `MultiClusterIngress` has the key of a route.
#[test]
fn key_has_no_name() {
    let route = Key::new("shop", "web");
    let key = served_key(&route);
    assert_eq!(route_of(&key), Some(route.clone()));
    assert_eq!(route_of(&route), None);
    assert!(!objects::qualified_name::is_subdomain(&key.name));
}
