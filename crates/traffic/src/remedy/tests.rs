mod semantics;
mod status;
mod when;

use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::DNS_READY;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// All is read, and the bound is not reached.
const FREE: Allowance = Allowance {
    complete: true,
    may_block: true,
};
const UNREAD: Allowance = Allowance {
    complete: false,
    ..FREE
};
const BOUND: Allowance = Allowance {
    may_block: false,
    ..FREE
};

fn cluster(name: &str, conditions: &[(&str, &str)], actions: Option<&[&str]>) -> Cluster {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| {
            json!({"type": kind, "status": status, "reason": "R", "message": "",
                   "lastTransitionTime": "2026-11-20T08:00:00Z"})
        })
        .collect();
    from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name}, "spec": {},
        "status": {"conditions": conditions, "remedyActions": actions},
    }))
    .unwrap()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the spec in place"
)]
fn remedy(name: &str, spec: Value) -> Remedy {
    from_value(json!({
        "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

fn when(operator: &str, status: &str) -> Value {
    json!({"clusterConditionMatch": {
        "conditionType": DNS_READY, "operator": operator, "conditionStatus": status}})
}

fn acts(spec: Value, conditions: &[(&str, &str)]) -> bool {
    let cluster = cluster("member1", conditions, None);
    cause(&remedy("r", spec), &cluster, NOW).is_some()
}

/// Returns the actions that a plan writes.
#[expect(clippy::needless_pass_by_value, reason = "callers plan in place")]
fn written(plan: Plan<ActionChange>) -> Vec<String> {
    let [write] = &*plan.writes else {
        panic!("nothing to write");
    };
    let actions = write.body()["status"]["remedyActions"].clone();
    from_value::<Option<_>>(actions)
        .unwrap()
        .unwrap_or_default()
}

/// Returns the field that a plan writes; `None` if it writes nothing.
fn field(plan: &Plan<ActionChange>) -> Option<&Value> {
    let write = plan.writes.first()?;
    Some(&write.body()["status"]["remedyActions"])
}

/// A remedy without matches acts at once and one with an empty list never.
#[test]
fn empty_matches_never_act() {
    assert!(acts(json!({}), &[]));
    assert!(acts(json!({"decisionMatches": null}), &[]));
    assert!(!acts(json!({"decisionMatches": []}), &[]));
    assert!(!acts(
        json!({"decisionMatches": []}),
        &[(DNS_READY, "False")]
    ));
}

/// A remedy without an affinity covers every cluster and one without names none.
#[test]
fn absent_affinity_covers_all() {
    assert!(acts(json!({"clusterAffinity": null}), &[]));
    for no_names in [
        json!({}),
        json!({"clusterNames": null}),
        json!({"clusterNames": []}),
    ] {
        assert!(!acts(json!({"clusterAffinity": no_names}), &[]));
    }
    assert!(acts(
        json!({"clusterAffinity": {"clusterNames": ["member1"]}}),
        &[]
    ));
    assert!(!acts(
        json!({"clusterAffinity": {"clusterNames": ["member2"]}}),
        &[]
    ));
}

/// Equal and not equal compare the status.
#[test]
fn operators_compare_the_status() {
    for (operator, status, found, expected) in [
        ("Equal", "False", "False", true),
        ("Equal", "False", "True", false),
        ("NotEqual", "True", "Unknown", true),
        ("NotEqual", "True", "True", false),
        // The status is null.
        ("NotEqual", "True", "", true),
        ("Equal", "False", "", false),
    ] {
        let spec = json!({"decisionMatches": [when(operator, status)]});
        let acts = acts(spec, &[(DNS_READY, found)]);
        assert_eq!(acts, expected, "{found:?} {operator} {status}");
    }
}

/// A condition the cluster does not have never matches.
#[test]
fn missing_condition_never_matches() {
    assert!(!acts(
        json!({"decisionMatches": [when("Equal", "False")]}),
        &[("Ready", "False")]
    ));
    assert!(!acts(
        json!({"decisionMatches": [when("NotEqual", "True")]}),
        &[("Ready", "False")]
    ));
}

/// Any one match suffices and an empty one matches nothing.
#[test]
fn any_match_suffices() {
    assert!(!acts(
        json!({"decisionMatches": [{}]}),
        &[(DNS_READY, "False")]
    ));
    let spec = json!({"decisionMatches": [{}, when("Equal", "Unknown"), when("Equal", "False")]});
    assert!(acts(spec, &[(DNS_READY, "False")]));
}

/// A requirement that lacks a field matches nothing.
#[test]
fn incomplete_match_matches_nothing() {
    for field in ["conditionType", "operator", "conditionStatus"] {
        let mut requirement = when("Equal", "False");
        requirement["clusterConditionMatch"][field] = Value::Null;
        let spec = json!({"decisionMatches": [requirement]});
        assert!(!acts(spec, &[(DNS_READY, "False")]), "{field}");
    }
}

/// A cluster with a condition that cannot be read.
fn unclear(condition: &Value, actions: &Value) -> Cluster {
    from_value(json!({
        "metadata": {"name": "member1"},
        "status": {"conditions": [condition], "remedyActions": actions},
    }))
    .unwrap()
}

/// A condition that cannot be read neither sets nor clears an action.
#[test]
fn unreadable_condition_changes_nothing() {
    for (operator, odd) in [
        ("Equal", json!({"type": DNS_READY, "status": 7})),
        ("NotEqual", json!({"type": DNS_READY, "status": 7})),
        ("Equal", json!({"type": 7, "status": "False"})),
        ("NotEqual", json!(7)),
    ] {
        let matching =
            json!({"actions": [TRAFFIC_CONTROL], "decisionMatches": [when(operator, "False")]});
        let dns = remedy("dns", matching);
        for actions in [json!(null), json!([TRAFFIC_CONTROL])] {
            let plan = plan(&unclear(&odd, &actions), [&dns], NOW, FREE);
            assert_eq!(plan, Plan::default(), "{operator} {actions}");
        }
        // The decisions of other remedies hold.
        let alert = remedy("alert", json!({"actions": ["Alert"]}));
        let member = unclear(&odd, &json!(["Drain", TRAFFIC_CONTROL]));
        let plan = plan(&member, [&dns, &alert], NOW, FREE);
        assert_eq!(written(plan), ["Alert", TRAFFIC_CONTROL]);
    }
}

/// Actions that cannot be read are written over once all that decides is known.
#[test]
fn unclear_actions_are_overwritten() {
    let acting = remedy("r", json!({"actions": [TRAFFIC_CONTROL]}));
    for garbage in [json!(7), json!([7]), json!([TRAFFIC_CONTROL, 7])] {
        let mut member = cluster("member1", &[], None);
        member.status = from_value(json!({"remedyActions": garbage})).unwrap();
        assert_eq!(
            written(plan(&member, [&acting], NOW, FREE)),
            [TRAFFIC_CONTROL],
            "{garbage}"
        );
        assert_eq!(written(plan(&member, [], NOW, FREE)), [""; 0], "{garbage}");
        assert_eq!(plan(&member, [], NOW, UNREAD), Plan::default(), "{garbage}");
        let dns = remedy(
            "dns",
            json!({"actions": ["A"], "decisionMatches": [when("Equal", "False")]}),
        );
        let unclear = unclear(&json!(7), &garbage);
        assert_eq!(
            plan(&unclear, [&dns], NOW, FREE),
            Plan::default(),
            "{garbage}"
        );
    }
}

/// A remedy without actions and one being deleted require nothing.
#[test]
fn deleted_remedy_requires_nothing() {
    let mut deleting = remedy("r", json!({"actions": [TRAFFIC_CONTROL]}));
    deleting.metadata.deletion_timestamp = Some(from_value(json!("2026-11-20T08:00:00Z")).unwrap());
    let member = cluster("member1", &[], None);
    assert_eq!(plan(&member, [&deleting], NOW, FREE), Plan::default());
    assert_eq!(
        plan(&member, [&remedy("r", json!({"actions": []}))], NOW, FREE),
        Plan::default()
    );
}

/// A cluster being deleted is left alone.
#[test]
fn deleted_cluster_is_left_alone() {
    let mut member = cluster("member1", &[], None);
    member.metadata.deletion_timestamp = Some(from_value(json!("2026-11-20T08:00:00Z")).unwrap());
    let acting = remedy("r", json!({"actions": [TRAFFIC_CONTROL]}));
    assert_eq!(plan(&member, [&acting], NOW, FREE), Plan::default());
}

/// Unknown actions are passed on sorted and unique.
#[test]
fn unknown_actions_are_passed_on() {
    let a = remedy(
        "a",
        json!({"actions": [TRAFFIC_CONTROL, "Drain", TRAFFIC_CONTROL]}),
    );
    let b = remedy("b", json!({"actions": ["Drain", "Alert"]}));
    let plan = plan(&cluster("member1", &[], None), [&b, &a], NOW, FREE);
    assert_eq!(written(plan), ["Alert", "Drain", TRAFFIC_CONTROL]);
}

/// The last action cleared leaves no field behind.
#[test]
fn last_action_removes_field() {
    let actions: [Option<&[&str]>; 3] = [Some(&[TRAFFIC_CONTROL]), Some(&[]), None];
    let [last, empty, none] =
        actions.map(|actions| plan(&cluster("member1", &[], actions), [], NOW, FREE));
    let cleared = ActionChange::Cleared {
        action: TRAFFIC_CONTROL.to_owned(),
    };
    assert_eq!(
        (field(&last), &*last.events),
        (Some(&Value::Null), &[cleared][..])
    );
    assert_eq!(
        (field(&empty), &*empty.events),
        (Some(&Value::Null), &[][..])
    );
    assert_eq!(none, Plan::default());
}

/// An unsorted or duplicated list is corrected.
#[test]
fn unsorted_list_is_corrected() {
    let both = remedy("r", json!({"actions": ["A", "B"]}));
    let member = cluster("member1", &[], Some(&["B", "A", "A"]));
    assert_eq!(written(plan(&member, [&both], NOW, FREE)), ["A", "B"]);
}

/// While a remedy is unread actions are added but not cleared.
#[test]
fn unread_remedy_clears_nothing() {
    let alert = remedy("r", json!({"actions": ["Alert"]}));
    let member = cluster("member1", &[], Some(&[TRAFFIC_CONTROL]));
    assert_eq!(
        written(plan(&member, [&alert], NOW, UNREAD)),
        ["Alert", TRAFFIC_CONTROL]
    );
    assert_eq!(plan(&member, [], NOW, UNREAD), Plan::default());
}

/// A change names the remedy and condition that caused it.
#[test]
fn change_names_its_cause() {
    let dns = remedy(
        "dns",
        json!({"actions": [TRAFFIC_CONTROL], "decisionMatches": [when("Equal", "False")]}),
    );
    let failing = cluster("member1", &[(DNS_READY, "False")], None);
    let plan = plan(&failing, [&dns], NOW, FREE);
    assert_eq!(
        plan.events[0].to_string(),
        "TrafficControl set by Remedy dns: ServiceDomainNameResolutionReady is False"
    );
}

/// A cluster over the bound gets the other actions only.
#[test]
fn bound_withholds_only_blocks() {
    let both = remedy("r", json!({"actions": ["Alert", TRAFFIC_CONTROL]}));
    let member = cluster("member1", &[], None);
    assert_eq!(written(plan(&member, [&both], NOW, BOUND)), ["Alert"]);
}

fn arbitrary_remedy() -> impl Strategy<Value = Value> {
    let names = prop::option::of(prop::collection::vec(
        prop::sample::select(vec!["m0", "m1", "m2"]),
        0..3,
    ));
    let matching = (
        prop::sample::select(vec!["Equal", "NotEqual"]),
        prop::sample::select(vec!["True", "False"]),
    );
    let matches = prop::option::of(prop::collection::vec(matching, 0..3));
    let actions = prop::option::of(prop::collection::vec(
        prop::sample::select(vec!["A", "B", "C"]),
        0..3,
    ));
    (names, matches, actions).prop_map(|(names, matches, actions)| {
        let matches = matches.map(|m| m.into_iter().map(|(o, s)| when(o, s)).collect::<Vec<_>>());
        json!({"clusterAffinity": {"clusterNames": names}, "decisionMatches": matches, "actions": actions})
    })
}

proptest! {
    /// Order does not matter and deciding twice changes nothing.
    #[test]
    fn order_does_not_matter(
        specs in prop::collection::vec(arbitrary_remedy(), 0..6),
        status in prop::option::of(prop::sample::select(vec!["True", "False"])),
        current in prop::option::of(prop::collection::vec(prop::sample::select(vec!["A", "B", "X"]), 0..4)),
        complete in any::<bool>(),
    ) {
        let remedies: Vec<Remedy> = specs.into_iter().enumerate().map(|(i, spec)| remedy(&format!("r{i}"), spec)).collect();
        let conditions: Vec<_> = status.map(|status| (DNS_READY, status)).into_iter().collect();
        let mut member = cluster("m1", &conditions, current.as_deref());
        let allowance = Allowance { complete, ..FREE };
        let forward = plan(&member, &remedies, NOW, allowance);
        prop_assert_eq!(&forward, &plan(&member, remedies.iter().rev(), NOW, allowance));
        if let Some(actions) = field(&forward) {
            member.status.as_mut().unwrap().remedy_actions = from_value(actions.clone()).unwrap();
            prop_assert_eq!(plan(&member, &remedies, NOW, allowance), Plan::default());
        }
    }

    /// The index finds exactly the remedies that cover a cluster.
    #[test]
    fn index_finds_covering_remedies(
        changes in prop::collection::vec((0_usize..4, prop::option::of(arbitrary_remedy())), 0..20),
    ) {
        let mut index = RemedyIndex::default();
        let mut last = std::collections::BTreeMap::new();
        for (i, spec) in changes {
            let name = format!("r{i}");
            let changed = spec.map(|spec| remedy(&name, spec));
            index.replace(&name, changed.as_ref().map(Scope::of));
            last.insert(name, changed);
        }
        for member in ["m0", "m1", "m2", "m3"] {
            let found: BTreeSet<&String> = index.covering(member).collect();
            let covering = last.iter().filter(|(_, r)| r.as_ref().is_some_and(|r| Scope::of(r).covers(member)));
            prop_assert_eq!(found, covering.map(|(name, _)| name).collect());
        }
    }
}
