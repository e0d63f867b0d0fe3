//! Objects as a real Karmada serves them, with any one value changed.

use karmada_api::TRAFFIC_CONTROL;
use lab_parts::mutations::mutations;
use objects::write::Plan;
use traffic::remedy::{ActionChange, Allowance, plan};

use super::*;

/// Returns the fixture, without most of its many elements of the same shape.
fn cluster_fixture() -> Value {
    let text = include_str!("../../../../tests/fixtures/cluster.json");
    let mut cluster: Value = serde_json::from_str(text).unwrap();
    for list in ["/status/apiEnablements", "/spec/resourceModels"] {
        let list = cluster.pointer_mut(list).and_then(Value::as_array_mut);
        list.unwrap().truncate(2);
    }
    cluster
}

fn remedy_fixture() -> Value {
    serde_json::from_str(include_str!("../../../../tests/fixtures/remedy.json")).unwrap()
}

/// Decodes an object as it arrives.
fn arrive<K: Resource + serde::de::DeserializeOwned>(object: &Value) -> Event<Decoded<K>> {
    Event::Apply(serde_json::from_str(&object.to_string()).unwrap())
}

fn decide(watched: &Watched, cluster: &str) -> Plan<ActionChange> {
    let snapshot = watched.snapshot(cluster).unwrap();
    let remedies = snapshot.remedies.iter().map(|remedy| &**remedy);
    plan(
        &snapshot.cluster,
        remedies,
        snapshot.now,
        Allowance {
            complete: snapshot.complete,
            may_block: snapshot.over_bound.is_none(),
        },
    )
}

fn sets_the_action(plan: &Plan<ActionChange>) -> bool {
    let set = json!([TRAFFIC_CONTROL]);
    let mut writes = plan.writes.iter();
    writes.any(|write| write.body()["status"]["remedyActions"] == set)
}

fn keeps_the_action(plan: &Plan<ActionChange>) -> bool {
    plan.writes.is_empty() || sets_the_action(plan)
}

/// A cluster is acted on whatever any value that is not ours is.
#[test]
fn foreign_values_hinder_nothing() {
    let mut cluster = cluster_fixture();
    cluster["status"]["remedyActions"].take();
    // The parts that name the object, the condition that the agent owns, and the maps that contain them.
    let ours = [
        "",
        "/metadata",
        "/metadata/name",
        "/status",
        "/status/conditions",
        "/status/conditions/2",
        "/status/conditions/2/type",
        "/status/conditions/2/status",
    ];
    let mutations = mutations(&cluster).into_iter();
    let foreign: Vec<_> = mutations
        .filter(|mutation| !ours.contains(&mutation.path.as_str()))
        .collect();
    assert!(foreign.len() > 500, "{}", foreign.len());
    for mutation in foreign {
        let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
        watched.remedy(arrive(&remedy_fixture()));
        watched.cluster(arrive(&mutation.object));
        let plan = decide(&watched, "member1");
        let element = mutation.object.pointer(&mutation.path);
        assert!(
            sets_the_action(&plan),
            "{} {element:?}: {plan:?}",
            mutation.path
        );
    }
}

/// An unreadable part of a cluster or a remedy clears no action.
#[test]
fn unreadable_values_clear_nothing() {
    let (cluster, remedy) = (cluster_fixture(), remedy_fixture());
    for mutation in mutations(&cluster).iter().filter(|m| m.mistyped) {
        let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
        watched.remedy(arrive(&remedy));
        watched.cluster(arrive(&cluster));
        watched.cluster(arrive(&mutation.object));
        let plan = decide(&watched, "member1");
        assert!(keeps_the_action(&plan), "{}: {plan:?}", mutation.path);
    }
    for mutation in mutations(&remedy).iter().filter(|m| m.mistyped) {
        for read_once in [true, false] {
            let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
            watched.cluster(arrive(&cluster));
            if read_once {
                watched.remedy(arrive(&remedy));
            }
            watched.remedy(arrive(&mutation.object));
            let plan = decide(&watched, "member1");
            assert!(
                keeps_the_action(&plan),
                "{} {read_once}: {plan:?}",
                mutation.path
            );
        }
    }
}

/// A remedy acts whatever its other values are and hinders no other.
#[test]
fn other_values_hinder_nothing() {
    let mut cluster = cluster_fixture();
    cluster["status"]["remedyActions"].take();
    let mut other = cluster.clone();
    other["metadata"]["name"] = json!("member2");
    for mutation in mutations(&remedy_fixture()) {
        let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
        watched.cluster(arrive(&cluster));
        watched.cluster(arrive(&other));
        watched.remedy(Event::Apply(remedy("other", 1, Some(&["member2"]))));
        watched.remedy(arrive(&mutation.object));
        let plan = decide(&watched, "member2");
        assert!(!plan.writes.is_empty(), "{}", mutation.path);
        let decides = ["", "/metadata", "/metadata/name"].contains(&mutation.path.as_str())
            || mutation.path.starts_with("/spec");
        if !decides {
            let plan = decide(&watched, "member1");
            assert!(sets_the_action(&plan), "{}: {plan:?}", mutation.path);
        }
    }
}
