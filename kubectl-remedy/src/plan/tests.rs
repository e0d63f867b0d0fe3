mod carried_out;

use super::*;
use crate::args::Format;
use crate::fixtures::{controllers, fleet, maintenance, remedy};

use karmada_api::remedy::OBSERVE_ONLY;
use serde_json::{Value, json};

#[test]
fn a_remedy_that_takes_the_last_cluster_of_a_backend_cuts_it_off() {
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

#[test]
fn by_fail_open_a_cluster_that_a_condition_blocked_takes_over() {
    let plan = Plan::of(fleet(), vec![maintenance(&["member2"])], &controllers(&[]));
    assert!(!plan.cuts_off());
    let row = "shop        shop      web       member2   member1   member1 (blocked, readmitted)";
    assert!(plan.to_string().lines().any(|line| line == row), "{plan}");
}

#[test]
fn a_remedy_that_is_replaced_gives_back_what_it_took() {
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

#[test]
fn a_remedy_that_changes_nothing_says_so_and_what_may_be_wrong_with_it() {
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

#[test]
fn ingresses_of_another_controller_are_named_as_left_out() {
    let flags = controllers(&["--ingress-class-controller=example.com/other"]);
    let plan = Plan::of(fleet(), vec![maintenance(&["member2"])], &flags);
    let warning =
        "1 MultiClusterIngresses are not considered: example.com/other does not serve them";
    assert_eq!(plan.warnings, [warning]);
    assert_eq!(plan.backends, []);
}

#[test]
fn the_bound_keeps_a_cluster_in_service_and_is_named() {
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

#[test]
fn what_a_remedy_would_do_that_only_observes_is_shown_and_changes_nothing() {
    let mut observing = maintenance(&["member2"]);
    let annotations = observing.annotations_mut();
    annotations.insert(OBSERVE_ONLY.to_owned(), "true".to_owned());
    let plan = Plan::of(fleet(), vec![observing], &controllers(&[]));
    let row = "member2   TrafficControl would be set by Remedy maintenance, which only observes: it names no condition";
    assert!(plan.to_string().lines().any(|line| line == row), "{plan}");
    assert_eq!(plan.backends, []);
}

#[test]
fn the_plan_is_for_programs_too() {
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
