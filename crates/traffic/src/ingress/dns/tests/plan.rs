//! The writes to the objects, of one ingress and of two that name a host.

use super::*;
use crate::ingress::kubernetes::Write;
use crate::ingress::{Held, kubernetes::Managed};

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

/// What is there is written once, another difference is one update, and what others add to an object stays.
#[test]
fn only_differences_are_written() {
    let (key, wanted) = wanted(&two_clusters(), "i");
    let plan = DnsPlan::new(&key, wanted.clone(), &[]).unwrap();
    assert!(matches!(&*plan.writes, [Write::Create(_)]));
    let mut stored = wanted.endpoints[0].clone();
    let label = ("team".to_owned(), "a".to_owned());
    stored.metadata.labels.as_mut().unwrap().extend([label]);
    let existing = arcs(&[stored]);
    let plan = DnsPlan::new(&key, wanted, &existing).unwrap();
    assert_eq!(plan, DnsPlan::default());
    let blocked = self::wanted(&two_clusters().with_cluster(blocked("m1")), "i").1;
    let plan = DnsPlan::new(&key, blocked, &existing).unwrap();
    let [Write::Update(update)] = &*plan.writes else {
        panic!("{plan:?}");
    };
    let edits = json!(update.edits).to_string();
    assert!(
        edits.contains("/spec/endpoints") && !edits.contains("team"),
        "{edits}"
    );
    let plan = DnsPlan::new(&key, Wanted::default(), &existing).unwrap();
    assert_eq!(plan.stale, existing);
}

/// A host has one object in the whole fleet. A second ingress that leads it elsewhere is refused and changes nothing; one that
/// leads it to the same addresses is served by it.
#[test]
fn host_has_one_owner() {
    let (_, first) = wanted(&two_clusters(), "first");
    let existing = arcs(&first.endpoints);
    let (second, same) = wanted(&two_clusters(), "second");
    let plan = DnsPlan::new(&second, same, &existing).unwrap();
    assert_eq!(plan, DnsPlan::default());
    let elsewhere = fixture(&[("s", &[("m1", ips(&["192.0.2.1"]))])]);
    let (second, other) = wanted(&elsewhere, "second");
    let plan = DnsPlan::new(&second, other, &existing).unwrap();
    assert!(plan.writes.is_empty() && plan.stale.is_empty());
    let (host, by) = (HOST.to_owned(), Key::new("ns", "first"));
    assert_eq!(plan.problems, [DnsProblem::Taken { host, by }].into());
    // Its own objects alone are those that it removes.
    let plan = DnsPlan::new(&second, Wanted::default(), &existing).unwrap();
    assert_eq!(plan, DnsPlan::default());
}

/// Of an ingress that is left as it is only the cut clusters go, and the object with the last of them.
#[test]
fn cut_takes_only_that() {
    let (_, wanted) = wanted(&two_clusters(), "i");
    let existing = arcs(&wanted.endpoints);
    let held = |clusters: &[&str]| -> Held {
        let clusters = clusters.iter().map(|&name| name.to_owned()).collect();
        [(HOST.to_owned(), clusters)].into()
    };
    assert_eq!(clusters(&existing), held(&["m1", "m2"]));
    let plan = cutting(&existing, &held(&["m1"])).unwrap();
    let [Write::Update(update)] = &*plan.writes else {
        panic!("{plan:?}");
    };
    let mut stored = json!(*existing[0]);
    json_patch::patch(&mut stored, update.edits.operations()).unwrap();
    let left: DnsEndpoint = serde_json::from_value(stored).unwrap();
    assert_eq!(
        records(std::slice::from_ref(&left)),
        ["A example.com 192.0.2.2"]
    );
    assert_eq!(clusters(&arcs(&[left])), held(&["m2"]));
    let plan = cutting(&existing, &held(&["m1", "m2"])).unwrap();
    assert!(plan.writes.is_empty() && plan.stale == existing);
    assert_eq!(
        cutting(&existing, &Held::new()).unwrap(),
        DnsPlan::default()
    );
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
    assert_eq!(clusters(&existing), Held::new());
    let edits = wanted.endpoints[0].edits(&existing[0]).unwrap();
    assert!(!edits.is_empty());
    let plan = DnsPlan::new(&key, wanted, &existing).unwrap();
    assert_eq!(plan.writes.len(), 1);
}
