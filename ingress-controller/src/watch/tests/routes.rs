//! Routes that are read as ingresses, and the changes that wake them.

use karmada_api::gateway_api::HttpRoute;
use traffic::ingress::http_route::served_key;

use super::*;
use crate::fixtures::{
    CONTROLLER, GATEWAY_CONTROLLER, filtered, gateway, gateway_class, http_route, listed,
    observe_routes,
};
use crate::routes::Routes;

fn index() -> SharedIndex {
    let index = SharedIndex::with_exports();
    let [controller, finalizer] =
        [GATEWAY_CONTROLLER, CONTROLLER].map(|name| name.parse().unwrap());
    let index = index.reading(Routes::new(controller, finalizer));
    index.observe_cluster(applied(cluster("m1", &[])));
    index.observe_binding(applied(binding("s", &["m1"])));
    index
}

/// Returns the index with the route `r` to Service `s`.
fn with_route() -> SharedIndex {
    let index = index();
    observe_routes(&index, vec![http_route("r", "s")]);
    index
}

fn route_key(name: &str) -> Key {
    served_key(&key(name))
}

fn version(version: &str, mut route: HttpRoute) -> HttpRoute {
    route.metadata.resource_version = Some(version.to_owned());
    route
}

/// Returns the Services to which the route `r` leads, and the decision on it.
fn found(index: &SharedIndex) -> (Vec<String>, &'static str) {
    let (ingress, decision) = index
        .lock()
        .decide(&route_key("r"), &CONTROLLER.parse().unwrap());
    let named = ingress.map(|ingress| {
        let named = services(&ingress.spec.ingress).into_iter();
        named.map(ToOwned::to_owned).collect()
    });
    let decided = match decision {
        Decision::Serve(_) => "serve",
        Decision::Leave => "leave",
        Decision::Release(_) => "release",
    };
    (named.unwrap_or_default(), decided)
}

fn services_of(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A route in the load balancer is left until all routes, Gateways and classes are known, and then served, or released if it
/// is gone.
#[test]
fn unlisted_route_is_left() {
    let index = index();
    index.lock().set_left(&route_key("gone"), true);
    assert_eq!(found(&index), (vec![], "leave"));
    index.set_served(true);
    for event in listed(vec![http_route("r", "s")]) {
        index.observe_route(event);
    }
    assert_eq!(found(&index), (vec![], "leave"));
    for event in listed(vec![gateway("web", &["http"])]) {
        index.observe_gateway(event);
    }
    assert_eq!(found(&index), (vec![], "leave"));
    let mut woken = Vec::new();
    for event in listed(vec![gateway_class("ours", GATEWAY_CONTROLLER)]) {
        woken.extend(index.observe_gateway_class(event));
    }
    assert_eq!(found(&index), (services_of(&["s"]), "serve"));
    let woken: BTreeSet<Key> = woken.into_iter().collect();
    assert_eq!(woken, [route_key("r"), route_key("gone")].into());
    let gone = index
        .lock()
        .decide(&route_key("gone"), &CONTROLLER.parse().unwrap());
    assert!(matches!(gone, (None, Decision::Release(_))));
}

/// An edit that is refused takes nothing away: the last version that was served goes on. One that never was is left, as is
/// another route of that name.
#[test]
fn refused_edit_keeps_last_version() {
    let index = with_route();
    let refused = filtered(http_route("r", "t"));
    let woken = index.observe_route(applied(version("2", refused.clone())));
    assert_eq!(woken, [route_key("r")]);
    assert_eq!(found(&index), (services_of(&["s"]), "serve"));
    assert_eq!(index.lock().naming(&key("s")), [route_key("r")]);
    index.observe_route(applied(version("3", http_route("r", "t"))));
    assert_eq!(found(&index), (services_of(&["t"]), "serve"));
    assert_eq!(index.lock().naming(&key("s")), []);

    let mut other = version("4", refused);
    other.metadata.uid = Some("another".to_owned());
    index.observe_route(applied(other));
    assert_eq!(found(&index), (vec![], "leave"));
    assert_eq!(index.lock().naming(&key("t")), []);
}

/// A Gateway that loses its listener takes nothing away either, and a refused route that is deleted is released.
#[test]
fn lost_listener_keeps_last_version() {
    let index = with_route();
    let emptied = gateway("web", &[]);
    assert_eq!(
        index.observe_gateway(applied(emptied.clone())),
        [route_key("r")]
    );
    assert_eq!(found(&index), (services_of(&["s"]), "serve"));
    let mut told = emptied;
    told.status = Some(object(json!({ "addresses": [{ "value": "192.0.2.1" }] })));
    assert_eq!(index.observe_gateway(applied(told)), [], "its status alone");

    let mut leaving = version("2", filtered(http_route("r", "s")));
    leaving.metadata.deletion_timestamp = Some(object(json!("2026-01-01T00:00:00Z")));
    index.observe_route(applied(leaving));
    assert_eq!(found(&index).1, "release");
}

/// A route of another class wakes nobody and is not known, and one that is moved away is released once.
#[test]
fn foreign_route_is_unknown() {
    let index = with_route();
    let mut other = http_route("other", "s");
    other.spec.parent_refs[0].name = "theirs".to_owned();
    assert_eq!(index.observe_route(applied(other)), []);
    assert_eq!(index.keys(), [route_key("r")]);

    let mut moved = version("2", http_route("r", "s"));
    moved.spec.parent_refs[0].name = "theirs".to_owned();
    assert_eq!(index.observe_route(applied(moved)), [route_key("r")]);
    assert_eq!(found(&index), (vec![], "release"));
    assert_eq!(index.keys(), []);
}

/// A route is woken as an ingress is, and a class of ingresses does not concern it.
#[test]
fn facts_wake_route() {
    let index = with_route();
    let woken = [route_key("r")];
    let blocked = applied(cluster("m1", &["TrafficControl"]));
    assert_eq!(index.observe_cluster(blocked), woken);
    assert_eq!(index.observe_template(applied(template("s", 80))), woken);
    assert_eq!(
        index.observe_slice(applied(slice("s", "m1", "10.0.0.1"))),
        woken
    );
    assert_eq!(index.observe_class(applied(class("ours", CONTROLLER))), []);
}

/// Returns the Gateways that an observation wakes.
fn parents(index: &SharedIndex, observe: impl FnOnce(&SharedIndex) -> Vec<Key>) -> Vec<Key> {
    observe(index);
    index.queues.parents.take_all()
}

fn with_two_parents(generation: &str, service: &str) -> HttpRoute {
    let mut route = version(generation, http_route("r", service));
    let mut other = route.spec.parent_refs[0].clone();
    other.name = "other".to_owned();
    route.spec.parent_refs.push(other);
    route
}

/// A Gateway is woken by itself, its class, and routes that come, change or go, but not by conditions about them. With another
/// Gateway's listeners, a route that has both may be refused.
#[test]
fn parents_are_woken() {
    let index = index();
    observe_routes(&index, vec![with_two_parents("1", "s")]);
    index.observe_gateway(applied(gateway("other", &["http"])));
    index.queues.parents.take_all();
    let names = [key("other"), key("web")];

    let mut told = with_two_parents("2", "s");
    told.status = Some(object(json!({ "parents": [] })));
    assert_eq!(parents(&index, |it| it.observe_route(applied(told))), []);
    let edited = applied(with_two_parents("3", "t"));
    assert_eq!(parents(&index, |it| it.observe_route(edited)), names);
    let left = applied(version("4", http_route("r", "t")));
    assert_eq!(parents(&index, |it| it.observe_route(left)), names);
    let own = applied(gateway("other", &[]));
    assert_eq!(parents(&index, |it| it.observe_gateway(own)), names[..1]);
    let back = applied(with_two_parents("5", "t"));
    assert_eq!(parents(&index, |it| it.observe_route(back)), names);
    let shared = applied(gateway("other", &["http"]));
    assert_eq!(parents(&index, |it| it.observe_gateway(shared)), names);
    let class = applied(gateway_class("ours", "example.com/theirs"));
    assert_eq!(parents(&index, |it| it.observe_gateway_class(class)), names);
}

/// While routes may name a Service, its export is not taken back.
#[test]
fn unknown_routes_keep_exports() {
    let index = index();
    let unclear = |index: &SharedIndex| index.lock().routes.may_name_services("ns");
    assert!(unclear(&index), "whether there are any is not known");
    index.set_served(false);
    assert!(!unclear(&index));
    index.set_served(true);
    assert!(unclear(&index), "not listed");
    observe_routes(&index, vec![filtered(http_route("r", "s"))]);
    assert!(unclear(&index), "refused");
    index.observe_route(applied(version("2", http_route("r", "s"))));
    assert!(!unclear(&index));
    assert!(index.lock().exportable().contains(&key("s")));
}
