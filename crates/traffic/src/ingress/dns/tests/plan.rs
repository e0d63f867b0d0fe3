//! The writes to the objects, of one ingress and of two that name a host.

use objects::patch::JsonPatch;
use objects::write::{Action, Plan, Write};

use super::*;
use crate::ingress::{ServedClusters, kubernetes::Managed};

fn two_clusters() -> Fixture {
    fixture(&[(
        "s",
        &[("m1", ips(&["192.0.2.1"])), ("m2", ips(&["192.0.2.2"]))],
    )])
}

fn wanted(fixture: &Fixture, name: &str) -> (Key, Wanted) {
    let desired = desired_of(
        fixture,
        &ingress(name, &["s"], None),
        WhenAllBlocked::FailOpen,
    );
    let wanted = publisher().wanted(&desired, &[]);
    (desired.key, wanted)
}

fn planned(ingress: &Key, wanted: Wanted, existing: &[Arc<DnsEndpoint>]) -> Plan<DnsProblem> {
    plan(ingress, wanted, existing).unwrap()
}

/// Returns the edits of the only write.
fn edits(writes: &[Write]) -> &JsonPatch {
    match writes {
        [
            Write {
                action: Action::Json(edits),
                ..
            },
        ] => edits,
        _ => panic!("{writes:?}"),
    }
}

/// Asserts that the writes delete `objects`.
fn assert_deleted(writes: &[Write], objects: &[Arc<DnsEndpoint>]) {
    assert!(writes.iter().all(|write| write.action == Action::Delete));
    let keys = writes.iter().map(|write| write.object.key.clone());
    assert!(keys.eq(objects.iter().map(|object| Key::of(&**object))));
}

/// A record is written once, a difference is one update, and additions of others to an object stay.
#[test]
fn only_differences_are_written() {
    let (key, wanted) = wanted(&two_clusters(), "i");
    let plan = planned(&key, wanted.clone(), &[]);
    let actions: Vec<_> = plan.writes.iter().map(|write| &write.action).collect();
    assert!(matches!(*actions, [Action::Create(_)]), "{actions:?}");
    let mut stored = wanted.endpoints[0].clone();
    let label = ("team".to_owned(), "a".to_owned());
    stored.metadata.labels.as_mut().unwrap().extend([label]);
    let existing = arcs(&[stored]);
    let plan = planned(&key, wanted, &existing);
    assert_eq!(plan, Plan::default());
    let blocked = self::wanted(&two_clusters().with_cluster(blocked("m1")), "i").1;
    let plan = planned(&key, blocked, &existing);
    let edits = json!(edits(&plan.writes)).to_string();
    assert!(
        edits.contains("/spec/endpoints") && !edits.contains("team"),
        "{edits}"
    );
    let plan = planned(&key, Wanted::default(), &existing);
    assert_deleted(&plan.writes, &existing);
}

/// A host has one object in the whole fleet. A second ingress that leads it elsewhere is refused and changes nothing; one that
/// leads it to the same addresses is served by it.
#[test]
fn host_has_one_owner() {
    let (_, first) = wanted(&two_clusters(), "first");
    let existing = arcs(&first.endpoints);
    let (second, same) = wanted(&two_clusters(), "second");
    let plan = planned(&second, same, &existing);
    assert_eq!(plan, Plan::default());
    let elsewhere = fixture(&[("s", &[("m1", ips(&["192.0.2.1"]))])]);
    let (second, other) = wanted(&elsewhere, "second");
    let plan = planned(&second, other, &existing);
    assert_eq!(plan.writes, []);
    let (host, by) = (HOST.to_owned(), Key::new("ns", "first"));
    assert_eq!(plan.events, [DnsProblem::Taken { host, by }]);
    // Its own objects alone are those that it removes.
    let plan = planned(&second, Wanted::default(), &existing);
    assert_eq!(plan, Plan::default());
}

fn held(clusters: &[&str]) -> ServedClusters {
    let clusters = clusters.iter().map(|&name| name.to_owned()).collect();
    [(HOST.to_owned(), clusters)].into()
}

/// Of an ingress that is left as it is only the cut clusters go, and the object with the last of them.
#[test]
fn cut_takes_only_that() {
    let (_, wanted) = wanted(&two_clusters(), "i");
    let existing = arcs(&wanted.endpoints);
    assert_eq!(clusters(&existing), held(&["m1", "m2"]));
    let writes = cutting(&existing, &held(&["m1"])).unwrap();
    let mut stored = json!(*existing[0]);
    json_patch::patch(&mut stored, edits(&writes).operations()).unwrap();
    let left: DnsEndpoint = serde_json::from_value(stored).unwrap();
    assert_eq!(
        records(std::slice::from_ref(&left)),
        ["A example.com 192.0.2.2"]
    );
    assert_eq!(clusters(&arcs(&[left])), held(&["m2"]));
    let writes = cutting(&existing, &held(&["m1", "m2"])).unwrap();
    assert_deleted(&writes, &existing);
    assert_eq!(cutting(&existing, &ServedClusters::new()).unwrap(), []);
}

/// Somebody has spoilt an object of ours: it is written anew, and nothing fails.
#[test]
fn spoilt_object_is_mended() {
    let (key, wanted) = wanted(&two_clusters(), "i");
    let mut spoilt = json!(wanted.endpoints[0]);
    spoilt["metadata"]["annotations"]["karmada-rs.io/dns-targets"] = json!("nonsense");
    spoilt["spec"] = json!({ "endpoints": [null, 7] });
    let spoilt: DnsEndpoint = serde_json::from_value(spoilt).unwrap();
    assert_eq!(host_of(&spoilt), "");
    let existing = arcs(&[spoilt]);
    assert_eq!(clusters(&existing), ServedClusters::new());
    let edits = wanted.endpoints[0].edits(&existing[0]).unwrap();
    assert!(!edits.is_empty());
    let plan = planned(&key, wanted, &existing);
    assert_eq!(plan.writes.len(), 1);
}
