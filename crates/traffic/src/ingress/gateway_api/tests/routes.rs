use std::collections::{BTreeMap, BTreeSet};

use karmada_api::gateway_api::HttpRoute;
use objects::{Key, Metadata};
use serde_json::{Value, json};

use super::{alone, desired, factory, fixture, gateway_key, routes, rule, shown};
use crate::ingress::fixtures::{Fixture, template};
use crate::ingress::gateway_api::{Claims, hosts};
use crate::ingress::kubernetes::{Managed, service_name};

/// An ingress becomes a route for each host, attached to the Gateway, with a rule for each Service.
#[test]
fn each_host_has_its_route() {
    let spec = json!({ "rules": [
        rule("a.example.com", &[("/", "Prefix", "s"), ("/t/", "Prefix", "t"), ("/x", "Exact", "s")]),
        rule("*.example.com", &[("/", "ImplementationSpecific", "t")]),
    ] });
    let mut desired = desired("i", &spec, &fixture());
    desired.annotations = [("external-dns.example.com/ttl".to_owned(), "9".to_owned())].into();
    let routed = alone(&desired);
    assert_eq!(shown(&routed.problems), [""; 0]);
    assert_eq!(routed.objects.services.len(), 2);
    let [any, one] = &routes(routed)[..] else {
        panic!("two hosts");
    };
    assert_eq!(hosts(any), ["*.example.com".to_owned()].into());
    let key = Key::new("ns", "i");
    let [to_s, to_t] = ["s", "t"].map(|service| {
        json!([{ "group": "", "kind": "Service", "name": service_name(&key, service),
            "port": 80, "weight": 1 }])
    });
    let path = |kind: &str, value: &str| json!({ "path": { "type": kind, "value": value } });
    let name = one.metadata.name().to_owned();
    assert!(name.starts_with("i-a-example-com-"), "{name}");
    let expected = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": { "app.kubernetes.io/managed-by": "example.com_ours" },
            "annotations": {
                "external-dns.example.com/ttl": "9",
                "karmada-rs.io/multi-cluster-ingress": "i",
                "karmada-rs.io/passed-on-annotations": "[\"external-dns.example.com/ttl\"]",
            },
        },
        "spec": {
            "parentRefs": [{ "group": "gateway.networking.k8s.io", "kind": "Gateway",
                "namespace": "infra", "name": "web" }],
            "hostnames": ["a.example.com"],
            "rules": [
                { "matches": [path("Exact", "/x"), path("PathPrefix", "/")], "backendRefs": to_s },
                { "matches": [path("PathPrefix", "/t")], "backendRefs": to_t },
            ],
        },
    });
    assert_eq!(json!(one), expected);
}

/// A default backend serves the paths that the rules leave, and without rules everything.
#[test]
fn default_backend_serves_the_rest() {
    let backend = json!({ "service": { "name": "t", "port": { "number": 80 } } });
    let only = json!({ "defaultBackend": backend });
    let [route] = &routes(alone(&desired("i", &only, &fixture())))[..] else {
        panic!("one route");
    };
    assert_eq!((route.spec.hostnames.len(), route.spec.rules.len()), (0, 1));
    let beside =
        json!({ "defaultBackend": backend, "rules": [rule("h", &[("/a", "Prefix", "s")])] });
    let all = routes(alone(&desired("i", &beside, &fixture())));
    let all: Vec<usize> = all.iter().map(|route| route.spec.rules.len()).collect();
    assert_eq!(all, [1, 2]);
}

/// A path that a route cannot have is left out with one line, and the rest is served.
#[test]
fn wrong_input_is_left_out() {
    let resource = json!({ "path": "/r", "pathType": "Prefix",
        "backend": { "resource": { "kind": "Bucket", "name": "b" } } });
    let mut good = rule(
        "h",
        &[
            ("/", "Prefix", "s"),
            ("/a//b", "Prefix", "s"),
            ("/a b", "Exact", "s"),
            ("/%zz", "Exact", "s"),
            ("a", "Prefix", "s"),
            ("/a/(.*)", "ImplementationSpecific", "s"),
            ("/b", "Regex", "s"),
        ],
    );
    good["http"]["paths"].as_array_mut().unwrap().push(resource);
    let spec = json!({ "rules": [good, rule("Big.example", &[("/", "Prefix", "s")])] });
    let routed = alone(&desired("i", &spec, &fixture()));
    let problems = shown(&routed.problems);
    assert_eq!(problems.len(), 8, "{problems:#?}");
    let said = "path \"/a/(.*)\" of h is not served: it is a pattern that only some ingress controllers know; write it as Prefix or Exact";
    assert!(
        problems.iter().any(|problem| problem == said),
        "{problems:#?}"
    );
    let [route] = &routes(routed)[..] else {
        panic!("one host");
    };
    assert_eq!(route.spec.rules[0].matches.len(), 1);
}

/// A Service keeps a slice without endpoints whatever becomes of its clusters.
#[test]
fn service_keeps_an_empty_slice() {
    let spec =
        json!({ "rules": [rule("h", &[("/", "Prefix", "s"), ("/u", "Prefix", "unknown")])] });
    let objects = alone(&desired("i", &spec, &fixture())).objects;
    let served = objects
        .slices
        .iter()
        .map(|slice| slice.endpoints.iter().flatten().count());
    assert_eq!(served.collect::<Vec<_>>(), [1, 0]);
    let labels = objects
        .slices
        .iter()
        .map(|slice| slice.metadata.labels.clone().unwrap());
    for labels in labels {
        let service = service_name(&Key::new("ns", "i"), "s");
        assert_eq!(labels["kubernetes.io/service-name"], service);
    }
    let blocked = fixture().with_cluster(crate::ingress::fixtures::blocked("m1"));
    let objects = alone(&desired("i", &spec, &blocked)).objects;
    assert_eq!(objects.slices.len(), 1);
}

/// A Service that is not known gets no request, and the route of the host stands.
#[test]
fn unknown_service_has_no_backend() {
    let spec =
        json!({ "rules": [rule("h", &[("/", "Prefix", "s"), ("/u", "Prefix", "unknown")])] });
    let [route] = &routes(alone(&desired("i", &spec, &fixture())))[..] else {
        panic!("one host");
    };
    let backends = route.spec.rules.iter().map(|rule| rule.backend_refs.len());
    assert_eq!(backends.collect::<Vec<_>>(), [1, 0]);
}

/// A port by name is its number; while the template cannot be read, the routes stay as they are.
#[test]
fn unread_port_keeps_routes() {
    let ports = [json!({ "name": "more" }), json!({ "number": 81 })];
    let [named, numbered] = ports.map(|port| {
        let backend = json!({ "service": { "name": "s", "port": port } });
        json!({ "rules": [{ "host": "h", "http": { "paths": [
            { "path": "/", "pathType": "Prefix", "backend": backend },
        ] } }] })
    });
    let known = desired("i", &named, &fixture());
    let port = |routes: &[HttpRoute]| routes[0].spec.rules[0].backend_refs[0].port;
    assert_eq!(port(&routes(alone(&known))), Some(81));
    let unread = Fixture {
        unread_templates: ["s".to_owned()].into(),
        ..Fixture::default()
    };
    let by_number = desired("i", &numbered, &unread);
    assert_eq!(port(&routes(alone(&by_number))), Some(81));
    let by_name = desired("i", &named, &unread);
    assert_eq!(alone(&by_name).objects.routes, None);
}

/// Protocols that Gateways need not know are not passed on: such a port would refuse the whole backend.
#[test]
fn only_known_protocols_pass() {
    for (protocol, passes) in [
        ("http", true),
        ("kubernetes.io/h2c", true),
        ("kubernetes.io/wss", true),
        ("h2c", false),
        ("example.com/own", false),
    ] {
        let mut service = template("s", &[("web", 80)]);
        let ports = service.spec.as_mut().unwrap().ports.as_mut().unwrap();
        ports[0].app_protocol = Some(protocol.to_owned());
        let fixture = Fixture::default().with_template(service);
        let spec = json!({ "rules": [rule("h", &[("/", "Prefix", "s")])] });
        let objects = alone(&desired("i", &spec, &fixture)).objects;
        let ports = objects.services[0].spec.as_ref().unwrap().ports.as_ref();
        let found = ports.unwrap()[0].app_protocol.as_deref();
        assert_eq!(found, Some(protocol).filter(|_| passes));
    }
}

/// Returns an ingress with so many paths of one host, which lead to so many Services in turn.
fn many(paths: usize, services: usize) -> Vec<HttpRoute> {
    let names: Vec<(String, String)> = (0..paths)
        .map(|n| (format!("/p{n}"), format!("s{}", n % services)))
        .collect();
    let entries: Vec<(&str, &str, &str)> = names
        .iter()
        .map(|(path, service)| (path.as_str(), "Prefix", service.as_str()))
        .collect();
    let mut fixture = Fixture::default();
    for service in 0..services {
        fixture = fixture.with_template(template(&format!("s{service}"), &[("", 80)]));
    }
    let spec = json!({ "rules": [rule("h", &entries)] });
    routes(alone(&desired("i", &spec, &fixture)))
}

/// More than a route can have becomes several, each within the limits and no path in two.
#[test]
fn limits_make_several_routes() {
    for (paths, services, expected) in [(16, 16, 1), (128, 1, 1), (17, 17, 2), (129, 2, 2)] {
        let routes = many(paths, services);
        assert_eq!(routes.len(), expected, "{paths} to {services}");
    }
    let routes = many(2000, 200);
    let mut all = BTreeSet::new();
    let mut names = BTreeSet::new();
    for route in &routes {
        assert!(route.spec.rules.len() <= 16);
        names.insert(route.metadata.name().to_owned());
        let mut matches = 0;
        for rule in &route.spec.rules {
            assert!(rule.matches.len() <= 64);
            matches += rule.matches.len();
            for one in &rule.matches {
                let path = one.path.clone().unwrap().value.unwrap();
                assert!(all.insert(path), "no path is in two routes");
            }
        }
        assert!(matches <= 128);
    }
    assert_eq!((all.len(), names.len()), (2000, routes.len()));
}

fn placed(routes: &[HttpRoute]) -> BTreeMap<String, String> {
    let matches = routes.iter().flat_map(|route| {
        let rules = route.spec.rules.iter().flat_map(|rule| &rule.matches);
        let name = route.metadata.name().to_owned();
        rules.map(move |one| (one.path.clone().unwrap().value.unwrap(), name.clone()))
    });
    matches.collect()
}

/// A path that is added moves no other, as long as the routes have room.
#[test]
fn added_path_moves_no_other() {
    let (before, after) = (many(150, 1), many(160, 1));
    assert_eq!((before.len(), after.len()), (2, 2));
    let after = placed(&after);
    for (path, route) in placed(&before) {
        assert_eq!(after[&path], route);
    }
}

/// Returns the route of another at the Gateway: an ingress of ours, or somebody else.
fn other(ingress: Option<&str>, created: &str, parent: &str, matches: &Value) -> HttpRoute {
    let annotations = ingress.map(|name| json!({ "karmada-rs.io/multi-cluster-ingress": name }));
    serde_json::from_value(json!({
        "metadata": { "name": "other", "namespace": "ns", "annotations": annotations,
            "creationTimestamp": created },
        "spec": {
            "parentRefs": [{ "name": parent, "namespace": "infra" }],
            "hostnames": ["h"],
            "rules": [{ "matches": matches }],
        },
    }))
    .unwrap()
}

const EARLY: &str = "2026-11-01T00:00:00Z";
const LATE: &str = "2026-11-02T00:00:00Z";

/// A path of another ingress is left to that one; of two that were written at once, the older route stays.
#[test]
fn path_has_one_ingress() {
    let spec = json!({ "rules": [rule("h", &[("/", "Prefix", "s"), ("/a", "Prefix", "s")])] });
    let desired = desired("i", &spec, &fixture());
    let path = json!([{ "path": { "type": "PathPrefix", "value": "/a/" } }]);
    let mut mine = routes(alone(&desired)).remove(0);
    mine.metadata.creation_timestamp = Some(serde_json::from_value(json!(EARLY)).unwrap());
    let (early, late) = (
        other(Some("j"), EARLY, "web", &path),
        other(Some("j"), LATE, "web", &path),
    );
    let earlier = other(Some("a"), EARLY, "web", &path);
    let elsewhere = other(Some("j"), EARLY, "else", &path);
    for (ours, is_left) in [
        (vec![&early], true),
        (vec![&mine, &late], false),
        // By name, where both are as old.
        (vec![&mine, &early], false),
        (vec![&mine, &earlier], true),
        (vec![&elsewhere], false),
    ] {
        let routed = factory().objects(&desired, |_| Claims::new(&gateway_key(), ours.clone(), []));
        let said = shown(&routed.problems);
        let matches = routes(routed)[0].spec.rules[0].matches.len();
        assert_eq!((matches, said.len()), if is_left { (1, 1) } else { (2, 0) });
        if is_left {
            let said = &said[0];
            assert!(
                said.starts_with("PathPrefix /a of h is not served"),
                "{said}"
            );
        }
    }
}

/// A route of somebody else with the same host and path is told, and ours is written all the same.
#[test]
fn foreign_route_is_told() {
    let spec = json!({ "rules": [rule("h", &[("/", "Prefix", "s")])] });
    let desired = desired("i", &spec, &fixture());
    for (parent, matches, is_told) in [
        ("web", json!([]), true),
        ("web", json!([{ "path": { "value": "/" } }]), true),
        (
            "web",
            json!([{ "path": { "type": "Exact", "value": "/" } }]),
            false,
        ),
        (
            "web",
            json!([{ "path": { "type": "RegularExpression", "value": "/" } }]),
            false,
        ),
        (
            "web",
            json!([{ "headers": [{ "name": "a", "value": "b" }] }]),
            false,
        ),
        ("web", json!([{ "method": "GET" }]), false),
        ("else", json!([]), false),
    ] {
        let theirs = other(None, LATE, parent, &matches);
        let routed = factory().objects(&desired, |_| Claims::new(&gateway_key(), [], [&theirs]));
        let said = shown(&routed.problems);
        let expected = "HTTPRoute ns/other, which is not ours, has PathPrefix / of h as well, and nothing says which of the two is served; remove it there or here";
        assert_eq!(
            said.first().is_some_and(|said| said == expected),
            is_told,
            "{matches}"
        );
        assert_eq!(routes(routed).len(), 1);
    }
}

fn filtered(route: &mut Value) {
    route["spec"]["rules"][0]["filters"] = json!([{ "type": "RequestRedirect" }]);
}

fn moved(route: &mut Value) {
    route["spec"]["parentRefs"][0]["name"] = json!("else");
    route["spec"]["hostnames"] = json!(["h", "g"]);
    route["metadata"]["labels"]["team"] = json!("theirs");
}

/// Changes of others to our part of a route are undone, and nothing else.
#[test]
fn drift_of_our_part_is_undone() {
    let spec = json!({ "rules": [rule("h", &[("/", "Prefix", "s")])] });
    let wanted = routes(alone(&desired("i", &spec, &fixture()))).remove(0);
    let edits = |change: &dyn Fn(&mut Value)| {
        let mut found = json!(wanted);
        change(&mut found);
        let found: HttpRoute = serde_json::from_value(found).unwrap();
        let edits = wanted.edits(&found).unwrap();
        let paths = edits.operations().iter().map(|one| one.path().to_string());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(edits(&|_| {}), [""; 0]);
    assert_eq!(edits(&|r| r["status"] = json!({ "parents": [] })), [""; 0]);
    assert_eq!(edits(&filtered), ["/spec/rules"]);
    assert_eq!(edits(&moved), ["/spec/parentRefs", "/spec/hostnames"]);
}
