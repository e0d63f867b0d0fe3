use karmada_api::PropagationPolicy;
use serde_json::{Value, json};

use super::*;

fn found(namespace: Option<&str>, fields: &Value) -> Vec<String> {
    let mut policy = json!({
        "metadata": { "name": "p", "namespace": namespace },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "Pod", "name": "a" }] },
    });
    json_patch::merge(&mut policy["spec"], fields);
    let policy: PropagationPolicy = serde_json::from_value(policy).unwrap();
    let problems = problems(&Candidate::from(&policy));
    problems
        .iter()
        .map(|problem| match problem {
            Problem::Invalid(message) => format!("! {message}"),
            Problem::Unsupported(message) => message.clone(),
        })
        .collect()
}

#[track_caller]
fn expect(fields: &Value, expected: &[&str]) {
    assert_eq!(found(Some("ns"), fields), expected, "{fields}");
}

/// A policy of Karmada has no problem.
#[test]
fn karmadas_policy_has_none() {
    for text in [
        include_str!("../fixtures/propagationpolicy.json"),
        include_str!("../fixtures/clusterpropagationpolicy.json"),
    ] {
        let policy: PropagationPolicy = serde_json::from_str(text).unwrap();
        assert_eq!(problems(&Candidate::from(&policy)), []);
    }
}

#[test]
fn selectors_are_checked() {
    let selector = |fields: Value| {
        let mut selector = json!({ "apiVersion": "v1", "kind": "Pod" });
        json_patch::merge(&mut selector, &fields);
        json!([selector])
    };
    expect(
        &json!({ "resourceSelectors": [] }),
        &["! resourceSelectors should have at least 1 items"],
    );
    let elsewhere = json!({ "resourceSelectors": selector(json!({ "namespace": "other" })) });
    expect(
        &elsewhere,
        &["! namespace of resource selector must be the same as the namespace of the policy"],
    );
    assert_eq!(found(None, &elsewhere), [""; 0]);
    expect(
        &json!({ "resourceSelectors": selector(json!({ "namespace": "" })) }),
        &[],
    );
    let always = json!({ "preemption": "Always", "resourceSelectors": selector(json!({})) });
    expect(
        &always,
        &[
            "! name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption",
        ],
    );
    expect(&json!({ "preemption": "Always" }), &[]);
    let source = |name: &str| json!({ "schedulePriority": { "priorityClassSource": name, "priorityClassName": "a" } });
    expect(&source("KubePriorityClass"), &[]);
    expect(
        &source("Newer"),
        &["priorityClassSource Newer is not supported by karmada-rs"],
    );
    expect(
        &json!({ "preemption": "Sometimes" }),
        &["preemption Sometimes is not supported by karmada-rs"],
    );
}

/// A pause is of all clusters or of some.
#[test]
fn pause_has_one_scope() {
    let message =
        "! suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames";
    for (dispatching, names, expected) in [
        (true, json!(["m1"]), Some(message)),
        (true, json!([]), None),
        (false, json!(["m1"]), None),
    ] {
        let on_clusters = json!({ "clusterNames": names });
        let pause = json!({ "dispatching": dispatching, "dispatchingOnClusters": on_clusters });
        expect(&json!({ "suspension": pause }), expected.as_slice());
    }
}

fn groups(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| json!({ "affinityName": name }))
        .collect()
}

#[test]
fn affinities_are_checked() {
    let placed = |placement: Value| json!({ "placement": placement });
    let both = json!({ "clusterAffinity": {}, "clusterAffinities": groups(&["a"]) });
    expect(
        &placed(both),
        &["! clusterAffinities cannot co-exist with clusterAffinity"],
    );
    expect(
        &placed(json!({ "clusterAffinities": groups(&["a", "a"]) })),
        &["! each affinity term in a policy must have a unique name"],
    );
    for name in ["", "-a", "a b", "A/", "x".repeat(33).as_str()] {
        let names = found(
            None,
            &placed(json!({ "clusterAffinities": groups(&[name]) })),
        );
        assert_eq!(names.len(), 1, "{name}: {names:?}");
    }
    for name in ["a", "a.b_c-D", "x.io/a", "x".repeat(32).as_str()] {
        expect(
            &placed(json!({ "clusterAffinities": groups(&[name]) })),
            &[],
        );
    }
    let fields = json!({ "fieldSelector": { "matchExpressions": [
        { "key": "k", "operator": "op", "values": [] },
        { "key": "zone", "operator": "NotIn", "values": ["z"] },
    ] } });
    let messages = [
        "! unsupported key \"k\", must be provider, region, or zone",
        "! unsupported operator \"op\", must be In or NotIn",
    ];
    expect(&placed(json!({ "clusterAffinity": fields })), &messages);
    let mut term = fields;
    term["affinityName"] = json!("a");
    expect(&placed(json!({ "clusterAffinities": [term] })), &messages);
}

fn overflowing(inline: &Value, tiers: &[&str], scheduling: &Value) -> Value {
    let tiers = tiers.iter().map(|name| json!({ "affinityName": name }));
    let mut term = inline.clone();
    term["affinityName"] = json!("a");
    term["overflowAffinities"] = tiers.collect();
    json!({ "placement": { "clusterAffinities": [term], "replicaScheduling": scheduling } })
}

/// Overflow needs a group that overflows, names of its own, and replicas that go where there is room. Case I92.
#[test]
fn overflow_is_checked() {
    let in_m1 = json!({ "clusterNames": ["m1"] });
    let aggregated = json!({ "replicaDivisionPreference": "Aggregated" });
    let dynamic = json!({ "weightPreference": { "dynamicWeight": "AvailableReplicas" } });
    for scheduling in [&aggregated, &dynamic] {
        expect(&overflowing(&in_m1, &["b", "c"], scheduling), &[]);
    }
    let by_room = "! overflowAffinities can only be used together with dynamic weight or aggregated scheduling";
    let duplicated =
        json!({ "replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Aggregated" });
    for scheduling in [&Value::Null, &json!({}), &duplicated] {
        expect(&overflowing(&in_m1, &["b"], scheduling), &[by_room]);
        expect(&overflowing(&in_m1, &[], scheduling), &[]);
    }
    expect(
        &overflowing(&json!({}), &["b"], &dynamic),
        &["! overflowAffinities can only be used together with the inline ClusterAffinity"],
    );
    for tiers in [["b", "b"], ["a", "b"]] {
        expect(
            &overflowing(&in_m1, &tiers, &dynamic),
            &[
                "! overflow affinity name must be unique and must not duplicate the primary group's affinityName",
            ],
        );
    }
    expect(
        &overflowing(&in_m1, &["-"], &dynamic),
        &["! affinityName \"-\" must be a qualified name of 1 to 32 characters"],
    );
}

#[test]
fn spread_constraints_are_checked() {
    let by = |field: &str, min: i64, max: i64| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max });
    let needs_cluster = "! the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled";
    let table: [(Value, &[&str]); 14] = [
        (json!([{}]), &[]),
        (json!([by("cluster", 1, 2)]), &[]),
        (
            json!([by("cluster", 3, 2)]),
            &["! maxGroups lower than minGroups is not allowed"],
        ),
        (json!([by("cluster", 3, 0)]), &[]),
        (
            json!([by("cluster", -1, -1)]),
            &[
                "! minGroups lower than 0 is not allowed",
                "! maxGroups lower than 0 is not allowed",
            ],
        ),
        (
            json!([
                by("cluster", 1, 2),
                by("cluster", 1, 2),
                by("cluster", 1, 2)
            ]),
            &["! multiple cluster spread constraints are not allowed"],
        ),
        (json!([by("zone", 1, 2)]), &[needs_cluster]),
        (json!([by("provider", 1, 2), by("cluster", 1, 2)]), &[]),
        (json!([by("zone", 1, 2), by("cluster", 1, 2)]), &[]),
        (
            json!([by("rack", 1, 2), by("cluster", 1, 2)]),
            &["spreadByField rack is not supported by karmada-rs"],
        ),
        (json!([{ "spreadByLabel": "a" }]), &[]),
        (json!([by("region", 1, 2), by("cluster", 1, 2)]), &[]),
        (json!([by("region", 1, 2)]), &[needs_cluster]),
        (
            json!([{ "spreadByField": "cluster", "spreadByLabel": "a" }]),
            &["! spreadByLabel should not co-exist with spreadByField"],
        ),
    ];
    for (constraints, expected) in table {
        expect(
            &json!({ "placement": { "spreadConstraints": constraints } }),
            expected,
        );
    }
}

/// Workloads are grouped by labels, and cannot be together and apart. Case I91.
#[test]
fn workload_affinity_is_checked() {
    let grouped = |affinity: Value| json!({ "placement": { "workloadAffinity": affinity } });
    let by = |key: &str| json!({ "groupByLabelKey": key });
    let both = |together: &str, apart: &str| {
        grouped(json!({ "affinity": by(together), "antiAffinity": by(apart) }))
    };
    expect(&grouped(json!({})), &[]);
    expect(&grouped(json!({ "affinity": by("app") })), &[]);
    expect(&both("app.io/group", "tier"), &[]);
    expect(
        &both("app", "app"),
        &["! affinity and antiAffinity must not use the same groupByLabelKey"],
    );
    expect(
        &both("app", "a b"),
        &["! groupByLabelKey \"a b\" must be the key of a label"],
    );
    expect(
        &grouped(json!({ "affinity": {} })),
        &["! groupByLabelKey \"\" must be the key of a label"],
    );
}

#[test]
fn tolerations_and_weights_are_checked() {
    let unsupported = "! unsupported toleration operator \"Gt\", must be Exists or Equal";
    for (operator, expected) in [("Equal", None), ("Gt", Some(unsupported))] {
        let tolerations = json!({ "clusterTolerations": [{ "operator": operator }] });
        expect(&json!({ "placement": tolerations }), expected.as_slice());
    }
    let weight = json!({ "weightPreference": { "staticWeightList": [{ "targetCluster": {}, "weight": 0 }] } });
    expect(
        &json!({ "placement": { "replicaScheduling": weight } }),
        &["! weight should be greater than or equal to 1"],
    );
}

/// Features that are not supported are named.
#[test]
fn unsupported_features_are_named() {
    let table = [
        (
            json!({ "replicaDivisionPreference": "New" }),
            "replicaDivisionPreference New",
        ),
        (
            json!({ "weightPreference": { "dynamicWeight": "New" } }),
            "dynamicWeight New",
        ),
        (
            json!({ "replicaSchedulingType": "New" }),
            "replicaSchedulingType New",
        ),
    ];
    for (division, feature) in table {
        let fields = json!({ "placement": { "replicaScheduling": division } });
        let problem = format!("{feature} is not supported by karmada-rs");
        expect(&fields, &[&problem]);
    }
    let duplicated = json!({ "placement": { "replicaScheduling": {
        "replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Aggregated" } } });
    expect(&duplicated, &[]);
    let unreadable = found(None, &json!({ "placement": { "clusterAffinities": 1 } }));
    assert_eq!(unreadable.len(), 1);
    assert!(unreadable[0].starts_with("a placement of another form: "));
}
