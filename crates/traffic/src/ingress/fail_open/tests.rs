use objects::Key;
use proptest::prelude::*;

use super::super::fixtures::{Fixture, binding, blocked, cluster, deleting, ingress, slice};
use super::super::{Settings, desired};
use super::*;

fn settings(when_all_blocked: WhenAllBlocked) -> Settings {
    let controller = "karmada-rs.io/ingress-controller".parse().unwrap();
    Settings {
        when_all_blocked,
        ..Settings::new(controller)
    }
}

fn admissions(fixture: &Fixture, when: WhenAllBlocked) -> Vec<(String, Admission)> {
    let ingress = ingress("i", &["s"], None);
    let (key, nothing) = (Key::new("ns", "i"), BTreeSet::new());
    let desired = desired(&key, &ingress, &nothing, fixture, &settings(when));
    let clusters = desired.backends[0].clusters.iter();
    clusters.map(|c| (c.cluster.clone(), c.admission)).collect()
}

#[track_caller]
fn assert_open(fixture: &Fixture, expected: &[(&str, Admission)]) {
    let expected: Vec<_> = expected.iter().map(|&(c, a)| (c.to_owned(), a)).collect();
    assert_eq!(admissions(fixture, WhenAllBlocked::FailOpen), expected);
}

fn fixture(clusters: &[&str]) -> Fixture {
    Fixture::default().with_binding("s", binding("s", clusters))
}

/// When all clusters of a service are blocked those that a condition blocked are readmitted.
#[test]
fn all_blocked_are_readmitted() {
    let fixture = fixture(&["m1", "m2"])
        .with_cluster(blocked("m1"))
        .with_cluster(blocked("m2"));
    let readmitted = Admission::Readmitted;
    assert_open(&fixture, &[("m1", readmitted), ("m2", readmitted)]);
    let closed = admissions(&fixture, WhenAllBlocked::FailClosed);
    assert!(closed.iter().all(|(_, a)| *a == Admission::Blocked));
}

/// While one cluster serves the blocked ones stay blocked.
#[test]
fn served_backend_keeps_blocks() {
    let fixture = fixture(&["m1", "m2"])
        .with_cluster(blocked("m1"))
        .with_cluster(cluster("m2"));
    let expected = [("m1", Admission::Blocked), ("m2", Admission::Admitted)];
    assert_open(&fixture, &expected);
}

/// Pods that lack the port of their Service serve nobody, however ready they are.
#[test]
fn portless_endpoints_serve_nobody() {
    let mut portless = slice("s", "m1", "x", &["10.0.0.1"]);
    portless.ports = Some(Vec::new());
    let fixture = fixture(&["m1", "m2"])
        .with_cluster(cluster("m1"))
        .with_cluster(blocked("m2"))
        .with_slices(&[portless, slice("s", "m2", "x", &["10.0.0.2"])]);
    let expected = [("m1", Admission::Admitted), ("m2", Admission::Readmitted)];
    assert_open(&fixture, &expected);
}

fn one_open_of_three() -> Fixture {
    fixture(&["m1", "m2", "m3"])
        .with_cluster(cluster("m1"))
        .with_cluster(blocked("m2"))
        .with_cluster(blocked("m3"))
}

fn with_m2(m2: Admission) -> [(&'static str, Admission); 3] {
    [
        ("m1", Admission::Admitted),
        ("m2", m2),
        ("m3", Admission::Blocked),
    ]
}

/// Where no admitted cluster has ready endpoints a blocked one that has is readmitted.
#[test]
fn ready_endpoints_are_readmitted() {
    let in_m2 = slice("s", "m2", "b", &["10.0.0.2"]);
    let mut unready = slice("s", "m1", "a", &["10.0.0.1"]);
    for endpoint in unready.endpoints.iter_mut().flatten() {
        endpoint.conditions.as_mut().unwrap().ready = Some(false);
    }
    for in_m1 in [None, Some(slice("s", "m1", "a", &[])), Some(unready)] {
        let slices: Vec<_> = in_m1.into_iter().chain([in_m2.clone()]).collect();
        let fixture = one_open_of_three().with_slices(&slices);
        assert_open(&fixture, &with_m2(Admission::Readmitted));
        let closed = admissions(&fixture, WhenAllBlocked::FailClosed);
        assert_eq!(closed[1].1, Admission::Blocked);
        let mut unread = fixture.clone();
        unread.unread_slices = ["unread".to_owned()].into();
        assert_open(&unread, &with_m2(Admission::Blocked));
        let mut decided = fixture;
        decided.decided = ["m2".to_owned()].into();
        assert_open(&decided, &with_m2(Admission::Blocked));
    }
    let served = one_open_of_three().with_slices(&[slice("s", "m1", "a", &["10.0.0.1"]), in_m2]);
    assert_open(&served, &with_m2(Admission::Blocked));
}

/// In a rolling update the only pod of m2 ends, and serves until then: m1 stays blocked. Once it serves no more, m1 has to.
#[test]
fn terminating_endpoints_take_requests() {
    for (serving, terminating, m1) in [
        (Some(true), Some(true), Admission::Blocked),
        (Some(false), Some(true), Admission::Readmitted),
        (None, Some(true), Admission::Readmitted),
        // Not ready though it serves: of a Service that publishes such addresses.
        (Some(true), None, Admission::Readmitted),
    ] {
        let mut ending = slice("s", "m2", "b", &["10.0.0.2"]);
        for endpoint in ending.endpoints.iter_mut().flatten() {
            endpoint.conditions = Some(EndpointConditions {
                ready: Some(false),
                serving,
                terminating,
            });
        }
        let fixture = fixture(&["m1", "m2"])
            .with_cluster(blocked("m1"))
            .with_cluster(cluster("m2"))
            .with_slices(&[slice("s", "m1", "a", &["10.0.0.1"]), ending]);
        let expected = [("m1", m1), ("m2", Admission::Admitted)];
        assert_open(&fixture, &expected);
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Of an unreadable ingress excluded clusters are cut unless failing open keeps them.
#[test]
fn unreadable_ingress_is_cut() {
    let mut fixture = Fixture::default()
        .with_cluster(cluster("open"))
        .with_cluster(blocked("b1"))
        .with_cluster(blocked("b2"))
        .with_cluster(blocked("decided"))
        .with_cluster(deleting(blocked("leaving")));
    fixture.decided = ["decided".to_owned()].into();
    fixture.unread_clusters = ["unread".to_owned()].into();
    let (open, closed) = (WhenAllBlocked::FailOpen, WhenAllBlocked::FailClosed);
    for (held, when, expected) in [
        (&["open", "b1", "gone"][..], open, &["b1", "gone"][..]),
        (&["b1", "b2"], open, &[]),
        (&["b1", "b2"], closed, &["b1", "b2"]),
        (
            &["b1", "decided", "leaving", "gone"],
            open,
            &["decided", "leaving", "gone"],
        ),
        (&["unread", "b1"], open, &["b1"]),
        (&["open"], closed, &[]),
    ] {
        let held = ServedClusters::from([
            ("s".to_owned(), set(held)),
            ("t".to_owned(), set(&["open"])),
        ]);
        let found = cut(held, when, &fixture);
        assert_eq!(found.get("s").cloned().unwrap_or_default(), set(expected));
        assert_eq!(found.len(), usize::from(!expected.is_empty()));
    }
}

/// A cluster blocked by a person is never readmitted.
#[test]
fn decided_block_is_kept() {
    let mut fixture = fixture(&["m1", "m2"])
        .with_cluster(blocked("m1"))
        .with_cluster(blocked("m2"));
    fixture.decided = ["m1".to_owned()].into();
    let expected = [("m1", Admission::Blocked), ("m2", Admission::Readmitted)];
    assert_open(&fixture, &expected);
}

/// A cluster that leaves or is unknown neither serves nor is readmitted.
#[test]
fn leaving_cluster_never_serves() {
    let mut fixture = fixture(&["gone", "leaving", "leaving-blocked", "m1", "unread"])
        .with_cluster(deleting(cluster("leaving")))
        .with_cluster(deleting(blocked("leaving-blocked")))
        .with_cluster(blocked("m1"));
    let expected = [
        ("gone", Admission::ClusterMissing),
        ("leaving", Admission::ClusterDeleting),
        ("leaving-blocked", Admission::Blocked),
        ("m1", Admission::Readmitted),
        ("unread", Admission::ClusterMissing),
    ];
    assert_open(&fixture, &expected);
    // Nothing is known of it but that it exists: it serves as it did.
    fixture.unread_clusters = ["unread".to_owned()].into();
    let found = admissions(&fixture, WhenAllBlocked::FailOpen);
    assert_eq!(found[3], ("m1".to_owned(), Admission::Blocked));
    assert_eq!(found[4], ("unread".to_owned(), Admission::Admitted));
}

proptest! {
    /// A blocked cluster serves only where no other does and no person blocked it.
    #[test]
    fn readmission_is_last_resort(
        states in proptest::collection::vec(0..4_u8, 1..5),
        decided in proptest::collection::btree_set("m[0-4]", 0..3),
    ) {
        let names: Vec<String> = (0..states.len()).map(|n| format!("m{n}")).collect();
        let located: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut fixture = fixture(&located);
        fixture.decided.clone_from(&decided);
        for (state, name) in states.iter().zip(&names) {
            fixture = match state {
                0 => fixture.with_cluster(cluster(name)),
                1 => fixture.with_cluster(blocked(name)),
                2 => fixture.with_cluster(deleting(blocked(name))),
                _ => fixture,
            };
        }
        let found = admissions(&fixture, WhenAllBlocked::FailOpen);
        let open = found.iter().any(|(_, a)| *a == Admission::Admitted);
        for ((name, admission), state) in found.iter().zip(states) {
            let readmitted = !open && state == 1 && !decided.contains(name);
            prop_assert_eq!(*admission == Admission::Readmitted, readmitted);
            prop_assert_eq!(admission.is_served(), state == 0 || readmitted);
        }
    }
}
