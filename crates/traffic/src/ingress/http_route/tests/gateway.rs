use jiff::Timestamp;

use super::*;

/// Returns the conditions of Gateway `infra/web` with `routes`, which are accepted.
fn report(facts: &World, routes: &[HttpRoute]) -> Option<GatewayReport> {
    gateway_report(&facts.gateways[0], routes, facts, &ours())
}

/// Returns the status of Gateway `infra/web` as it is written where there was none.
fn written(facts: &World, routes: &[HttpRoute]) -> Value {
    let report = report(facts, routes).unwrap();
    let mut object = json!({});
    let steps = report.patch(&facts.gateways[0], Timestamp::UNIX_EPOCH);
    objects::patch::apply(steps.operations(), &mut object).unwrap();
    object["status"].take()
}

/// Returns the conditions of a Gateway or a listener, each as `type status reason message`.
fn said(status: &Value) -> Vec<String> {
    let conditions = status["conditions"].as_array().unwrap().iter();
    let texts = conditions.map(|condition| {
        let fields = ["type", "status", "reason", "message"];
        fields
            .map(|field| condition[field].as_str().unwrap())
            .join(" ")
    });
    texts.map(|text| text.trim_end().to_owned()).collect()
}

/// A listener has the routes that name it, or no listener at all, and a host of it, each once.
#[test]
fn routes_are_counted() {
    let facts = fleet(&json!([
        listener("all", json!({})),
        listener("shop", json!({ "hostname": "*.example.com" })),
        listener("own", json!({ "allowedRoutes": {} })),
        listener("tcp", json!({ "protocol": "TCP" })),
    ]));
    let section = json!({ "namespace": "infra", "name": "web", "sectionName": "shop" });
    let routes = [
        route(&json!([to("web")]), json!({})),
        route(
            &json!([to("web"), section]),
            json!({ "hostnames": ["a.example.com"] }),
        ),
        route(&json!([to("web")]), json!({ "hostnames": ["example.org"] })),
        route(&json!([section]), json!({})),
        route(&json!([to("theirs")]), json!({})),
    ];
    let status = written(&facts, &routes);
    let listeners = status["listeners"].as_array().unwrap().iter();
    let counts = listeners.map(|it| (it["name"].as_str().unwrap(), &it["attachedRoutes"]));
    let counts: Vec<String> = counts.map(|(name, n)| format!("{name} {n}")).collect();
    assert_eq!(counts, ["all 3", "shop 3", "own 0", "tcp 0"]);
}

/// A listener that is not served says why, and the Gateway is accepted for the others.
#[test]
fn unserved_listener_is_told() {
    let certificate = json!({ "kind": "Vault", "name": "cert" });
    let facts = fleet(&json!([
        listener("http", json!({})),
        listener("tcp", json!({ "protocol": "TCP" })),
        listener(
            "passed",
            json!({ "protocol": "HTTPS", "tls": { "mode": "Passthrough" } }),
        ),
        listener(
            "chosen",
            json!({ "allowedRoutes": { "namespaces": { "from": "Selector" } } }),
        ),
        listener(
            "grpc",
            json!({ "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }] } }),
        ),
        listener(
            "vault",
            json!({ "protocol": "HTTPS", "tls": { "certificateRefs": [certificate] } }),
        ),
    ]));
    let status = written(&facts, &[]);
    assert_eq!(
        said(&status),
        [
            "Accepted True ListenersNotValid listeners that are not served: tcp, passed, chosen, grpc, vault",
            "Programmed True Programmed Where its requests arrive, the condition LoadBalanced of each HTTPRoute says",
        ]
    );
    let yes = ["Accepted", "ResolvedRefs", "Programmed"].map(|kind| format!("{kind} True {kind}"));
    assert_eq!(said(&status["listeners"][0]), yes);
    let refused = [
        "Accepted False UnsupportedProtocol protocol TCP is not served; write HTTP or HTTPS",
        "Accepted False UnsupportedValue tls.mode Passthrough is not served; write Terminate",
        "Accepted False UnsupportedValue allowedRoutes selects namespaces by label, which is not served; write Same or All",
        "ResolvedRefs False InvalidRouteKinds routes of kind GRPCRoute are not served; write HTTPRoute",
        "ResolvedRefs False InvalidCertificateRef certificate cert is no Secret",
    ];
    for (listener, expected) in status["listeners"].as_array().unwrap()[1..]
        .iter()
        .zip(refused)
    {
        let said = said(listener);
        let wrong: Vec<&String> = said.iter().filter(|one| one.contains(" False ")).collect();
        assert_eq!(wrong[0], expected);
        let message = expected.splitn(4, ' ').nth(3).unwrap();
        assert_eq!(wrong[1..], [&format!("Programmed False Invalid {message}")]);
    }
    assert_eq!(
        status["listeners"][0]["supportedKinds"],
        json!([{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute" }])
    );
    assert_eq!(status["listeners"][4]["supportedKinds"], json!([]));
}

/// A Gateway of which no listener is served is not accepted.
#[test]
fn gateway_needs_served_listener() {
    let facts = fleet(&json!([listener("tcp", json!({ "protocol": "TCP" }))]));
    assert_eq!(
        said(&written(&facts, &[])),
        [
            "Accepted False ListenersNotValid listeners that are not served: tcp",
            "Programmed False Invalid listeners that are not served: tcp",
        ]
    );
}

/// Nothing is said of a Gateway whose class is another's, is gone, or cannot be read.
#[test]
fn foreign_gateway_is_left() {
    let mut facts = fleet(&json!([listener("http", json!({}))]));
    let theirs = &facts.gateways[1];
    assert_eq!(gateway_report(theirs, [], &facts, &ours()), None);
    facts.classes.remove(0);
    assert_eq!(report(&facts, &[]), None);
    facts.are_unread = true;
    assert_eq!(report(&facts, &[]), None);
}

/// An equal status is not written again, and entries of others stay.
#[test]
fn told_gateway_is_left() {
    let mut facts = fleet(&json!([listener("http", json!({}))]));
    let others = json!({ "type": "example.com/Checked", "status": "True", "reason": "Checked",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    // As the API server fills it in.
    let pending = json!({ "type": "Accepted", "status": "Unknown", "reason": "Pending",
        "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z" });
    let status =
        json!({ "addresses": [{ "value": "192.0.2.1" }], "conditions": [pending, others] });
    facts.gateways[0].status = Some(from_value(status.clone()).unwrap());
    let told = report(&facts, &[]).unwrap();
    let steps = told.patch(&facts.gateways[0], Timestamp::UNIX_EPOCH);
    let mut object = json!({ "status": status });
    objects::patch::apply(steps.operations(), &mut object).unwrap();
    let status = &object["status"];
    assert_eq!(status["conditions"][1], others);
    assert_eq!(status["addresses"], json!([{ "value": "192.0.2.1" }]));
    let said = said(status);
    assert!(said[0].starts_with("Accepted True"), "{said:?}");
    assert!(said[2].starts_with("Programmed True"), "{said:?}");

    facts.gateways[0].status = Some(from_value(status.clone()).unwrap());
    let later = Timestamp::from_second(60).unwrap();
    let again = report(&facts, &[]).unwrap();
    assert!(again.patch(&facts.gateways[0], later).is_empty());
    let routes = [route(&json!([to("web")]), json!({}))];
    let more = report(&facts, &routes).unwrap();
    let steps = more.patch(&facts.gateways[0], later);
    let paths: Vec<String> = steps.paths().map(ToString::to_string).collect();
    assert_eq!(paths, ["/status/listeners"]);
}
