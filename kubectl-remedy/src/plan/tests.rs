mod carried_out;

use super::*;
use crate::fixtures::{controllers, fleet, maintenance, remedy};
use crate::manifest::Format;

use karmada_api::remedy::OBSERVE_ONLY;
use serde_json::{Value, json};

/// A remedy that takes the last cluster of a backend cuts it off.
#[test]
fn last_cluster_cuts_off() {
    let plan = Plan::of(
        fleet(),
        vec![maintenance(&["member2"])],
        &controllers(&["--when-all-blocked=fail-closed"]),
    );
    assert!(plan.cuts_off());
    assert_eq!(
        plan.to_string(),
        "\
CLUSTER   CHANGE
member2   TrafficControl set by Remedy maintenance: it names no condition

NAMESPACE   INGRESS   BACKEND   LOST      GAINED   LEFT
shop        shop      web       member2   <none>   <none>

Service web of shop/shop has no cluster left.
"
    );
}

/// By fail open a cluster that a condition blocked takes over.
#[test]
fn failing_open_takes_over() {
    let plan = Plan::of(fleet(), vec![maintenance(&["member2"])], &controllers(&[]));
    assert!(!plan.cuts_off());
    let row = "shop        shop      web       member2   member1   member1 (blocked, readmitted)";
    assert!(plan.to_string().lines().any(|line| line == row), "{plan}");
}

/// A remedy that is replaced gives back the clusters that it took.
#[test]
fn replaced_remedy_gives_back() {
    let none = remedy("dns", &json!({ "actions": [] }));
    let plan = Plan::of(fleet(), vec![none], &controllers(&[]));
    assert_eq!(plan.backends[0].gained, ["member1"]);
    assert_eq!(listed(&plan.backends[0].left), "member1, member2");
    let cleared = "member1   TrafficControl cleared: no Remedy asks for it any more";
    assert!(
        plan.to_string().lines().any(|line| line == cleared),
        "{plan}"
    );
}

/// A remedy that changes nothing says so and names its likely mistake.
#[test]
fn idle_remedy_explains_itself() {
    let plan = Plan::of(fleet(), vec![maintenance(&[])], &controllers(&[]));
    assert_eq!(plan.to_string(), "No cluster gets or loses an action.\n");
    assert_eq!(plan.warnings.len(), 1);
    let plan = Plan::of(
        fleet(),
        vec![maintenance(&["elsewhere"])],
        &controllers(&[]),
    );
    assert_eq!(
        plan.warnings,
        ["Remedy maintenance: there is no cluster elsewhere"]
    );
}

/// Ingresses of another controller are named as left out.
#[test]
fn foreign_ingresses_are_named() {
    let flags = controllers(&["--ingress-class-controller=example.com/other"]);
    let plan = Plan::of(fleet(), vec![maintenance(&["member2"])], &flags);
    let warning =
        "1 MultiClusterIngresses are not considered: example.com/other does not serve them";
    assert_eq!(plan.warnings, [warning]);
    assert_eq!(plan.backends, []);
}

/// The bound keeps a cluster in service and is named.
#[test]
fn bound_is_named() {
    let all_failing = json!({ "decisionMatches": [{ "clusterConditionMatch": {
        "conditionType": "ServiceDomainNameResolutionReady", "operator": "NotEqual",
        "conditionStatus": "Unknown" } }], "actions": ["TrafficControl"] });
    let remedies = vec![remedy("all", &all_failing)];
    let plan = Plan::of(
        fleet(),
        remedies,
        &controllers(&["--max-blocked-clusters=1"]),
    );
    let kept = "member2   TrafficControl not set: --max-blocked-clusters=1 lets conditions block 1 of 2 clusters, and that many are blocked";
    assert!(plan.to_string().lines().any(|line| line == kept), "{plan}");
    assert_eq!(plan.backends, []);
}

/// The effect of a remedy that only observes is shown and changes nothing.
#[test]
fn observing_remedy_changes_nothing() {
    let mut observing = maintenance(&["member2"]);
    let annotations = observing.annotations_mut();
    annotations.insert(OBSERVE_ONLY.to_owned(), "true".to_owned());
    let plan = Plan::of(fleet(), vec![observing], &controllers(&[]));
    let row = "member2   TrafficControl would be set by Remedy maintenance, which only observes: it names no condition";
    assert!(plan.to_string().lines().any(|line| line == row), "{plan}");
    assert_eq!(plan.backends, []);
}

/// The plan is for programs too.
#[test]
fn plan_is_machine_readable() {
    let mut observing = remedy("try", &json!({ "actions": ["Other"] }));
    let annotations = observing.annotations_mut();
    annotations.insert(OBSERVE_ONLY.to_owned(), "true".to_owned());
    let remedies = vec![maintenance(&["member2"]), observing];
    let plan = Plan::of(fleet(), remedies, &controllers(&[]));
    let would_set = json!({ "type": "WouldSet", "actions": ["Other"], "remedy": "try",
        "message": "Other would be set by Remedy try, which only observes: it names no condition" });
    let set = json!({ "type": "Set", "actions": ["TrafficControl"], "remedy": "maintenance",
        "message": "TrafficControl set by Remedy maintenance: it names no condition" });
    let text = manifest::text(&plan, Format::Json).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read["clusters"],
        json!([
            { "name": "member1", "actions": ["TrafficControl"], "changes": [would_set] },
            { "name": "member2", "actions": ["TrafficControl"], "changes": [set, would_set] },
        ])
    );
    assert_eq!(
        read["backends"],
        json!([{
            "namespace": "shop", "ingress": "shop", "service": "web",
            "lost": ["member2"], "gained": ["member1"], "cutOff": false,
            "left": [{ "name": "member1", "state": "Readmitted" }],
        }])
    );
    assert_eq!(read["warnings"], json!(plan.warnings));
    let yaml = manifest::text(&plan, Format::Yaml).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), read);
}
