use k8s_openapi::api::networking::v1::IngressSpec;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use serde_json::{Value, from_value, json};

use super::shown;
use crate::ingress::gateway_api::{addresses, gateway_problems, route_problems};

fn gateway(spec: &Value, status: &Value) -> Gateway {
    let metadata = json!({ "name": "web", "namespace": "infra" });
    from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
}

fn class() -> GatewayClass {
    from_value(json!({ "spec": { "controllerName": "example.com/theirs" } })).unwrap()
}

/// Returns our route in its third generation with the entries of controllers.
fn route(parents: &[Value]) -> HttpRoute {
    from_value(json!({
        "metadata": { "name": "r", "namespace": "ns", "generation": 3 },
        "status": { "parents": parents },
    }))
    .unwrap()
}

fn entry(controller: &str, parent: &Value, conditions: &Value) -> Value {
    json!({ "controllerName": controller, "parentRef": parent, "conditions": conditions })
}

fn condition(kind: &str, status: &str, generation: i64) -> Value {
    json!({ "type": kind, "status": status, "observedGeneration": generation,
        "reason": "Why", "message": "so" })
}

/// Only the entry of the Gateway's own controller about the newest route at this Gateway counts.
#[test]
fn only_current_entry_counts() {
    let (ours, theirs) = (
        json!({ "name": "web", "namespace": "infra" }),
        json!({ "name": "else", "namespace": "infra" }),
    );
    let listener = json!({ "name": "web", "namespace": "infra", "sectionName": "http" });
    let refused = "Gateway infra/web does not serve all of HTTPRoute ns/r: Why: so";
    let accepted = |generation| json!([condition("Accepted", "True", generation)]);
    let not = |generation| json!([condition("Accepted", "False", generation)]);
    let name = "example.com/theirs";
    for (parents, expected, is_served) in [
        (vec![], None, false),
        (vec![entry(name, &ours, &accepted(3))], None, true),
        (vec![entry(name, &ours, &not(3))], Some(refused), false),
        (vec![entry(name, &ours, &accepted(2))], None, true),
        // Of an older route, of another parent, of one listener, of another controller.
        (vec![entry(name, &ours, &not(2))], None, false),
        (vec![entry(name, &theirs, &not(3))], None, false),
        (vec![entry(name, &listener, &not(3))], None, false),
        (
            vec![entry("example.com/other", &ours, &accepted(3))],
            None,
            false,
        ),
        (
            vec![
                entry(name, &theirs, &accepted(3)),
                entry(name, &ours, &not(3)),
            ],
            Some(refused),
            false,
        ),
        (
            vec![entry(
                name,
                &ours,
                &json!([
                    condition("Accepted", "True", 3),
                    condition("ResolvedRefs", "False", 3)
                ]),
            )],
            Some(refused),
            true,
        ),
        (
            vec![entry(
                name,
                &ours,
                &json!([condition("PartiallyInvalid", "True", 3)]),
            )],
            Some(refused),
            false,
        ),
    ] {
        let status = json!({ "addresses": [
            { "value": "192.0.2.1" },
            { "type": "Hostname", "value": "lb.example.com" },
            { "type": "example.com/own", "value": "x" },
        ] });
        let gateway = gateway(&json!({}), &status);
        let route = route(&parents);
        let found = shown(&route_problems(&route, &gateway, Some(&class())));
        assert_eq!(found, Vec::from_iter(expected), "{parents:?}");
        let found = addresses([&route], &gateway, Some(&class()));
        let served = json!([{ "ip": "192.0.2.1" }, { "hostname": "lb.example.com" }]);
        assert_eq!(
            found.ingress.map(|all| json!(all)),
            is_served.then_some(served),
            "{parents:?}"
        );
        assert_eq!(shown(&route_problems(&route, &gateway, None)), [""; 0]);
    }
}

/// A Gateway that nobody has taken up is told, unless it serves the route all the same.
#[test]
fn idle_gateway_is_told() {
    let pending = json!({ "conditions": [
        { "type": "Accepted", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller" },
    ] });
    let idle = gateway(&json!({}), &pending);
    let said = "Gateway infra/web is not in service: Pending: Waiting for controller";
    assert_eq!(
        shown(&route_problems(&route(&[]), &idle, Some(&class()))),
        [said]
    );
    let parent = json!({ "name": "web", "namespace": "infra" });
    let accepted = json!([condition("Accepted", "True", 3)]);
    let served = route(&[entry("example.com/theirs", &parent, &accepted)]);
    assert_eq!(
        shown(&route_problems(&served, &idle, Some(&class()))),
        [""; 0]
    );
    let silent = gateway(&json!({}), &json!(null));
    assert_eq!(
        shown(&route_problems(&route(&[]), &silent, Some(&class()))),
        [""; 0]
    );
}

fn listener(name: &str, protocol: &str, host: &Value) -> Value {
    json!({ "name": name, "protocol": protocol, "hostname": host })
}

/// A host with TLS needs a listener that serves it.
#[test]
fn tls_needs_a_listener() {
    let listeners = json!({ "listeners": [
        listener("http", "HTTP", &json!(null)),
        listener("one", "HTTPS", &json!("a.example.com")),
        listener("wide", "HTTPS", &json!("*.example.org")),
        listener("broken", "HTTPS", &json!("b.example.com")),
    ] });
    let broken = json!({ "listeners": [{ "name": "broken", "conditions": [
        { "type": "ResolvedRefs", "status": "False" },
    ] }] });
    let gateway = gateway(&listeners, &broken);
    let of = |tls: Value| {
        let rules = json!([{ "host": "c.example.com" }, { "host": "x.example.org" }]);
        let spec: IngressSpec = from_value(json!({ "tls": tls, "rules": rules })).unwrap();
        let problems = shown(&gateway_problems(&spec, &gateway)).into_iter();
        let hosts = problems.map(|said| said.split(' ').nth(6).unwrap().to_owned());
        hosts.collect::<Vec<_>>()
    };
    assert_eq!(of(json!([])), [""; 0]);
    assert_eq!(
        of(json!([{ "hosts": ["a.example.com", "deep.x.example.org", "*.example.org"] }])),
        [""; 0]
    );
    assert_eq!(
        of(json!([{ "hosts": ["b.example.com", "d.example.com", "A b"] }])),
        ["b.example.com", "d.example.com"]
    );
    // Without hosts, those of the rules.
    assert_eq!(of(json!([{ "secretName": "cert" }])), ["c.example.com"]);
}
