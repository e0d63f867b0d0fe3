use serde_json::{from_value, json, to_value};

use super::*;
use crate::fixtures::{items, without_server_fields};

/// Cases F1, F2, F3, F22 and F23: the decisions of a running KubeFleet for the three members of its fleet, word for word.
#[test]
fn recorded_decisions_are_ours() {
    for (name, at) in [
        ("crp-1-policysnapshot-0", "2026-11-25T16:44:19Z"),
        ("crp-all-policysnapshot-0", "2026-11-25T16:44:16Z"),
        ("crp-five-policysnapshot-0", NOW),
        ("crp-fixed-policysnapshot-0", NOW),
        ("crp-taint-policysnapshot-0", "2026-11-25T16:47:07Z"),
        (
            "crp-taint-tolerated-policysnapshot-1",
            "2026-11-25T16:47:07Z",
        ),
    ] {
        let mut world = World::recorded(name);
        if name.starts_with("crp-taint") {
            let tainted = &mut world.clusters[2].spec.taints;
            *tainted = from_value(json!([{ "key": "dedicated", "value": "x",
                "effect": "NoSchedule" }]))
            .unwrap();
        }
        if name.contains("tolerated") {
            let mut before = World::recorded("crp-taint-policysnapshot-0");
            before.clusters.pop();
            before.schedule();
            world.bindings = before.bindings;
        }
        world.schedule();
        let mut status = to_value(&world.policy.status).unwrap();
        status["conditions"][0]["lastTransitionTime"] = json!(at);
        assert_eq!(status, fixture(name)["status"], "{name}");
    }
}

/// A fleet that changes hands keeps its bindings, and the decisions in its policy snapshots.
#[test]
fn recorded_fleet_needs_no_write() {
    for (name, bindings) in [
        ("crp-1-policysnapshot-0", "crp-1-bindings"),
        ("crp-all-policysnapshot-0", "crp-all-bindings"),
        ("crp-five-policysnapshot-1", "crp-five-bindings"),
    ] {
        let mut world = World::recorded(name);
        world.policy = from_value(fixture(name)).unwrap();
        let bindings = items(bindings).into_iter();
        world.bindings = bindings.map(|one| from_value(one).unwrap()).collect();
        assert_eq!(world.plan(), [vec![], vec![]], "{name}");
    }
}

#[test]
fn recorded_bindings_are_ours() {
    let mut world = World::recorded("crp-five-policysnapshot-0");
    let [bindings, _] = world.plan();
    let Some(Action::Create(created)) = bindings.first().map(|one| &one.action) else {
        panic!("{bindings:?}")
    };
    let mut expected = without_server_fields(fixture("binding-scheduled-2-strategy"));
    // The end of the recorded one is random.
    let name = created.name();
    assert!(name.starts_with("crp-five-kind-cluster-2-"), "{name}");
    expected["metadata"]["name"] = json!(name);
    assert_eq!(created, &expected);

    world.schedule();
    world.bind_all();
    world.number(1);
    world.schedule();
    let recorded = fixture("binding-unscheduled");
    let unscheduled = to_value(&world.bindings[1]).unwrap();
    assert_eq!(
        unscheduled["metadata"]["annotations"],
        recorded["metadata"]["annotations"]
    );
    assert_eq!(unscheduled["spec"]["state"], recorded["spec"]["state"]);
    assert_eq!(
        unscheduled["spec"]["clusterDecision"],
        recorded["spec"]["clusterDecision"]
    );
}
