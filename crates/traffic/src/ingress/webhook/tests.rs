use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressSpec;
use karmada_api::provider::ProviderIngress;
use objects::Key;
use serde_json::{Value, from_value, json};

use super::*;
use crate::ingress::fixtures::{
    Fixture, blocked, cluster, deleting, ingress, slice, two_services as fixture,
};
use crate::ingress::{Cached, Desired, Settings, desired};

fn settings() -> Settings {
    Settings::new("example.com/ours".parse().unwrap())
}

fn wanted(fixture: &Fixture) -> Desired {
    let (key, ingress) = (Key::new("ns", "i"), ingress("i", &["s"], None));
    desired(&key, &ingress, &[].into(), fixture, &settings())
}

fn made(desired: &Desired, held: Option<&ProviderIngress>) -> ProviderIngress {
    document(&settings().controller, desired, held).unwrap()
}

/// Returns the addresses of the only backend, with a mark at those that get no new request.
fn addresses(document: &ProviderIngress) -> Vec<String> {
    let [backend] = &*document.backends else {
        panic!("{document:?}");
    };
    let endpoints = backend.endpoints.iter();
    endpoints
        .map(|one| format!("{}{}", one.address, if one.ready { "" } else { " ends" }))
        .collect()
}

fn with_conditions(mut slice: EndpointSlice, all: &[(bool, bool, bool)]) -> EndpointSlice {
    for (endpoint, (ready, serving, terminating)) in slice.endpoints.iter_mut().flatten().zip(all) {
        let conditions = endpoint.conditions.as_mut().unwrap();
        conditions.ready = Some(*ready);
        conditions.serving = Some(*serving);
        conditions.terminating = Some(*terminating);
    }
    slice
}

fn endpoint(address: &str, cluster: &str) -> Value {
    json!({ "address": address, "port": 8080, "ready": true, "cluster": cluster,
        "source": format!("{cluster}-s-x") })
}

/// A program that has never heard of Kubernetes finds each route, and behind it addresses with their ports.
#[test]
fn document_has_routes_and_addresses() {
    let desired = wanted(&fixture());
    let document = made(&desired, None);
    let mut found = json!(document);
    assert_eq!(found["revision"].as_str().unwrap().len(), 64);
    found["revision"] = json!("");
    let reference = json!({ "service": "s", "port": "80" });
    let expected = json!({
        "apiVersion": "provider.karmada-rs.io/v1",
        "controller": "example.com/ours",
        "namespace": "ns",
        "name": "i",
        "revision": "",
        "annotations": {},
        "routes": [{ "host": "example.com", "path": "/", "pathType": "Prefix", "backend": reference }],
        "tls": [],
        "backends": [{ "service": "s", "port": "80", "appProtocol": "",
            "endpoints": [endpoint("10.0.0.1", "m1"), endpoint("10.0.0.2", "m2")] }],
    });
    assert_eq!(found, expected);
    assert_eq!(
        from_value::<ProviderIngress>(json!(document)).unwrap(),
        document
    );
}

/// Of two ports of one number that for TCP counts, whichever comes first: the other is HTTP/3's. A port that does not exist is
/// none, and an IPv4 address is written as one.
#[test]
fn usable_ports_and_addresses_are_sent() {
    let mut desired = wanted(&fixture());
    let Cached::Present(ports) = &mut desired.backends[0].ports else {
        panic!("no ports");
    };
    let udp = json!({ "name": "http3", "port": 80, "protocol": "UDP" });
    ports.insert(0, from_value(udp).unwrap());
    assert_eq!(addresses(&made(&desired, None)), ["10.0.0.1", "10.0.0.2"]);
    let [m1, m2] = &mut *desired.backends[0].clusters else {
        panic!("not two clusters");
    };
    let m1 = Arc::make_mut(&mut m1.slices[0]);
    m1.ports.as_mut().unwrap()[0].port = Some(0);
    let m2 = Arc::make_mut(&mut m2.slices[0]);
    m2.endpoints.as_mut().unwrap()[0].addresses = vec!["::ffff:10.0.0.2".to_owned()];
    assert_eq!(addresses(&made(&desired, None)), ["10.0.0.2"]);
}

/// A default backend gets the requests that no rule covers, a port may have a name, and other kinds than Services are left out.
#[test]
fn every_form_of_route_is_sent() {
    let resource = json!({ "resource": { "kind": "Bucket", "name": "b" } });
    let spec: IngressSpec = from_value(json!({
        "defaultBackend": { "service": { "name": "s", "port": { "number": 80 } } },
        "rules": [
            { "host": "a", "http": { "paths": [
                { "path": "/x", "pathType": "Exact",
                    "backend": { "service": { "name": "s", "port": { "name": "web" } } } },
                { "path": "/y", "pathType": "Prefix", "backend": resource },
            ] } },
        ],
        "tls": [{ "hosts": ["a"], "secretName": "cert" }, {}],
    }))
    .unwrap();
    let mut desired = wanted(&fixture());
    desired.routes = spec;
    let document = made(&desired, None);
    let routes = document.routes.iter();
    let routes: Vec<String> = routes
        .map(|route| {
            let port = &route.backend.port;
            format!("{}{} {} {port}", route.host, route.path, route.path_type)
        })
        .collect();
    assert_eq!(routes, ["a/x Exact web", "a/ Prefix 80", "/ Prefix 80"]);
    assert_eq!(
        json!(document.tls),
        json!([{ "hosts": ["a"], "secretName": "cert" }, { "hosts": [], "secretName": "" }])
    );
    let [by_number, by_name] = &*document.backends else {
        panic!("{document:?}");
    };
    assert_eq!(by_number.endpoints, by_name.endpoints);
    desired.routes.rules = None;
    assert_eq!(made(&desired, None).routes.len(), 1);
}

/// Clusters that are blocked, leave or are unknown have no addresses, whatever is held of them.
#[test]
fn only_serving_clusters_have_addresses() {
    let held = made(&wanted(&fixture()), None);
    assert_eq!(addresses(&held), ["10.0.0.1", "10.0.0.2"]);
    for (first, expected) in [
        (Some(blocked("m1")), &["10.0.0.2"][..]),
        (Some(deleting(cluster("m1"))), &["10.0.0.2"]),
        (None, &["10.0.0.2"]),
    ] {
        let mut fixture = fixture();
        fixture.clusters.remove("m1");
        fixture.unread_slices.insert("m1-s-x".to_owned());
        fixture.unread_templates.insert("s".to_owned());
        fixture
            .clusters
            .extend(first.map(|one| ("m1".to_owned(), one)));
        let document = made(&wanted(&fixture), Some(&held));
        assert_eq!(addresses(&document), expected);
        assert_ne!(document.revision, held.revision);
    }
}

/// An unreadable slice keeps its addresses, and one that is gone does not.
#[test]
fn unread_parts_keep_addresses() {
    let held = made(&wanted(&fixture()), None);
    let mut without_m1 = fixture();
    without_m1.slices.remove(0);
    assert_eq!(
        addresses(&made(&wanted(&without_m1), Some(&held))),
        ["10.0.0.2"]
    );
    without_m1.unread_slices.insert("m1-s-x".to_owned());
    let kept = made(&wanted(&without_m1), Some(&held));
    assert_eq!(kept, held);
    let mut unread = fixture();
    unread.templates.clear();
    assert_eq!(addresses(&made(&wanted(&unread), Some(&held))), [""; 0]);
    unread.unread_templates.insert("s".to_owned());
    assert_eq!(made(&wanted(&unread), Some(&held)), held);
    assert_eq!(addresses(&made(&wanted(&unread), None)), [""; 0]);
}

/// An address that two clusters share is sent once, ready if it is ready in one of them.
#[test]
fn shared_address_is_sent_once() {
    let mut fixture = fixture();
    let ends = [(false, true, true)];
    let first = with_conditions(slice("s", "m1", "x", &["10.0.0.9"]), &ends);
    fixture.slices = Vec::new();
    let fixture = fixture.with_slices(&[first, slice("s", "m2", "x", &["10.0.0.9"])]);
    let document = made(&wanted(&fixture), None);
    assert_eq!(addresses(&document), ["10.0.0.9"]);
    assert_eq!(document.backends[0].endpoints[0].cluster, "m2");
}

/// Endpoints that end get no new request while another is ready, and those that do not serve are left out.
#[test]
fn ending_endpoints_serve_last() {
    let ips = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    let (ready, ends, dead) = (
        (true, true, false),
        (false, true, true),
        (false, false, false),
    );
    for (conditions, expected) in [
        ([ready, ends, dead], &["10.0.0.1", "10.0.0.2 ends"][..]),
        ([ends, dead, dead], &["10.0.0.1"]),
        ([dead, dead, dead], &[]),
    ] {
        let mut fixture = fixture();
        let slice = with_conditions(slice("s", "m1", "x", &ips), &conditions);
        fixture.slices = Vec::new();
        let document = made(&wanted(&fixture.with_slices(&[slice])), None);
        assert_eq!(addresses(&document), expected);
    }
}

/// Unreachable endpoints are left out: a host name, a port out of range, a slice without the port.
#[test]
fn unusable_addresses_are_left_out() {
    let mut names = slice("s", "m1", "names", &["lb.example.com", "FD00::1"]);
    names.address_type = "FQDN".to_owned();
    let mut out_of_range = slice("s", "m1", "range", &["10.0.0.3"]);
    out_of_range.ports.as_mut().unwrap()[0].port = Some(70_000);
    let mut other_ports = slice("s", "m1", "other", &["10.0.0.4"]);
    let ports = other_ports.ports.as_mut().unwrap();
    ports[0].name = Some("metrics".to_owned());
    ports.push(ports[0].clone());
    let mut fixture = fixture();
    fixture.slices = Vec::new();
    let fixture = fixture.with_slices(&[names, out_of_range, other_ports]);
    assert_eq!(addresses(&made(&wanted(&fixture), None)), ["fd00::1"]);
}

/// Of a document, only the clusters that are cut go, and one that has none of them stays as it is.
#[test]
fn cut_takes_only_that() {
    let held = made(&wanted(&fixture()), None);
    let both = BTreeSet::from(["m1".to_owned(), "m2".to_owned()]);
    assert_eq!(clusters(&held), [("s".to_owned(), both)].into());
    let rest = without(&held, |service, cluster| service == "s" && cluster == "m1");
    let rest = rest.unwrap().unwrap();
    assert_eq!(addresses(&rest), ["10.0.0.2"]);
    assert_ne!(rest.revision, held.revision);
    assert_eq!(without(&rest, |_, cluster| cluster == "m1").unwrap(), None);
    assert_eq!(without(&held, |service, _| service == "t").unwrap(), None);
}

/// A cluster that is blocked gets no request either for a Service that no route names any more.
#[test]
fn forgotten_services_are_cut() {
    let mut desired = wanted(&fixture().with_cluster(blocked("m1")));
    desired.excluded = BTreeSet::from(["m1".to_owned()]);
    for (service, cluster, expected) in [
        ("s", "m1", true),
        ("s", "m2", false),
        ("old", "m1", true),
        ("old", "m2", false),
    ] {
        let found = is_excluded(&desired, service, cluster);
        assert_eq!(found, expected, "{service} {cluster}");
    }
}
