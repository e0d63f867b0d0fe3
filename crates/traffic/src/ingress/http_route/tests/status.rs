use jiff::Timestamp;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::gateway_api::HttpRouteStatus;
use objects::patch::apply;

use super::*;
use crate::ingress::StatusPatch;
use crate::ingress::fixtures::location;

/// Returns the route as the API has it after the write.
fn written(report: &RouteReport, mut object: Value) -> Value {
    let steps = report.patch(&object["status"], &ours(), Timestamp::UNIX_EPOCH);
    apply(steps.operations(), &mut object).unwrap();
    object
}

/// Returns a report at these parents of a route that is served.
fn served(parents: &Value) -> RouteReport {
    let route = route(parents, json!({}));
    let facts = fleet(&json!([]));
    let report = RouteReport::new(&route, &attachment(&route, &facts, &ours()).parents);
    report.with_verdict(None, &[])
}

/// Returns each condition of our entry at `place` as `type status reason message`.
fn conditions(object: &Value, place: usize) -> Vec<String> {
    let conditions = object["status"]["parents"][place]["conditions"].as_array();
    let shown = conditions.unwrap().iter().map(|condition| {
        assert_eq!(condition["observedGeneration"], 3, "{condition}");
        let fields = ["type", "status", "reason", "message"];
        fields.map(|it| condition[it].as_str().unwrap()).join(" ")
    });
    shown.collect()
}

/// Entries of others stay to the byte, whatever is written beside them, and with the last of our parents ours go.
#[test]
fn entries_of_others_stay() {
    let other = json!({ "controllerName": "example.com/theirs", "parentRef": to("theirs"),
        "conditions": [{ "type": "Accepted", "status": 7, "new": [] }] });
    let stale = json!({ "controllerName": OURS, "parentRef": to("before"), "conditions": [] });
    let odd = json!("odd");
    let object = json!({ "status": { "parents": [stale, other, odd, stale], "more": 1 } });
    let report = served(&json!([to("web")]));
    let object = written(&report, object);
    let parents = object["status"]["parents"].as_array().unwrap();
    assert_eq!(parents[..2], [other.clone(), odd.clone()]);
    assert_eq!(
        (parents.len(), &parents[2]["parentRef"]["name"]),
        (3, &json!("web"))
    );
    assert_eq!(
        conditions(&object, 2),
        ["Accepted True Accepted ", "ResolvedRefs True ResolvedRefs "]
    );
    assert_eq!(written(&report, object.clone()), object, "a second time");
    let object = written(&RouteReport::default(), object);
    assert_eq!(
        object,
        json!({ "status": { "parents": [other, odd], "more": 1 } })
    );
}

/// A first entry is written whether there is a status or not, and the API may fill in the defaults of a reference.
#[test]
fn first_entry_is_written() {
    let report = served(&json!([to("web")]));
    for object in [
        json!({}),
        json!({ "status": {} }),
        json!({ "status": { "parents": [] } }),
    ] {
        let mut object = written(&report, object);
        let entry = &mut object["status"]["parents"][0];
        entry["parentRef"]["group"] = json!("gateway.networking.k8s.io");
        entry["parentRef"]["kind"] = json!("Gateway");
        assert_eq!(written(&report, object.clone()), object);
        let mut known = route(&json!([to("web")]), json!({}));
        let status: HttpRouteStatus = from_value(object["status"].clone()).unwrap();
        known.status = Some(status);
        assert!(report.is_shown(&known, &ours()));
        assert!(!served(&json!([])).is_shown(&known, &ours()));
    }
}

/// The conditions about the traffic are read back as the status of an ingress.
#[test]
fn traffic_is_read_back() {
    let status = StatusPatch {
        service_locations: Some(vec![location("s", &["m1", "m2"]), location("t", &[])]),
        traffic_block_clusters: Some(vec!["m1".to_owned()]),
    };
    let addresses: IngressLoadBalancerStatus =
        from_value(json!({ "ingress": [{ "ip": "192.0.2.1" }, { "hostname": "lb.example.com" }] }))
            .unwrap();
    let report = served(&json!([to("web")]));
    let report = report
        .with_traffic(&status)
        .with_addresses(Some(&addresses));
    let object = written(&report, json!({}));
    assert_eq!(
        conditions(&object, 0)[2..],
        [
            "networking.karmada-rs.io/TrafficBlocked True ClusterBlocked m1",
            "networking.karmada-rs.io/Located True Propagated s: m1, m2; t: ",
            "networking.karmada-rs.io/LoadBalanced True AddressAssigned 192.0.2.1, lb.example.com",
        ]
    );
    let mut known = route(&json!([to("web")]), json!({}));
    known.status = Some(from_value(object["status"].clone()).unwrap());
    let read = as_ingress(&known, IngressSpec::default(), &ours())
        .status
        .unwrap();
    assert_eq!(StatusPatch::current(&read), status);
    assert_eq!(read.load_balancer, Some(addresses.clone()));
    assert_eq!(as_shown(&addresses), addresses);

    let told = reported_ingress(&known).unwrap();
    assert_eq!(told.status, Some(read));
    assert_eq!(told.metadata.name.as_deref(), Some("httproute:r"));
    assert_eq!(reported_ingress(&route(&json!([]), json!({}))), None);

    let nothing = StatusPatch::default();
    let none = served(&json!([to("web")]));
    let none = none.with_traffic(&nothing).with_addresses(None);
    let object = written(&none, object);
    known.status = Some(from_value(object["status"].clone()).unwrap());
    let read = as_ingress(&known, IngressSpec::default(), &ours()).status;
    assert_eq!(
        read,
        Some(karmada_api::MultiClusterIngressStatus::default())
    );
}

/// A refused route says which condition is False and why, and a missing Service is said of one that is served.
#[test]
fn refusal_is_said() {
    let (facts, parents) = (
        fleet(&json!([listener("http", json!({}))])),
        json!([to("web")]),
    );
    let said = |rule: Value| {
        let route = route(&parents, json!({ "rules": [rule] }));
        let attachment = attachment(&route, &facts, &ours());
        let refusal = ingress_spec(&route, &attachment.parents).err();
        let report = RouteReport::new(&route, &attachment.parents);
        let report = report.with_verdict(refusal.as_ref(), &["s"]);
        let object = written(&report, json!({}));
        let said = conditions(&object, 0).into_iter();
        said.map(|one| one.split(' ').take(3).collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let mut filtered = rule("s", &json!([]));
    filtered["filters"] = json!([{}]);
    let foreign = json!({ "backendRefs": [{ "kind": "Bucket", "group": "x", "name": "b" }] });
    for (rule, expected) in [
        (
            rule("s", &json!([])),
            [
                "Accepted True Accepted",
                "ResolvedRefs False BackendNotFound",
            ],
        ),
        (
            filtered,
            [
                "Accepted False UnsupportedValue",
                "ResolvedRefs False BackendNotFound",
            ],
        ),
        (
            foreign,
            [
                "Accepted False UnsupportedValue",
                "ResolvedRefs False InvalidKind",
            ],
        ),
    ] {
        assert_eq!(said(rule.clone()), expected, "{rule}");
    }
}
