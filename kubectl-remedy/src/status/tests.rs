use jiff::Timestamp;
use serde_json::{from_value, json};

use super::*;
use crate::fixtures::{fleet, maintenance};
use crate::fleet::put;

fn now() -> Timestamp {
    "2026-11-20T08:12:00Z".parse().unwrap()
}

/// Every cluster is a line with its verdict its remedies and its blocked ingresses.
#[test]
fn every_cluster_is_a_line() {
    assert_eq!(
        Report::of(&fleet()).table(false, now()),
        "\
NAME      DNS     SINCE   REPORTER   SINCE    ACTIONS          REMEDIES   BLOCKED
member1   False   12m     <none>     <none>   TrafficControl   dns        1/1
member2   True    12m     <none>     <none>   <none>           <none>     0/1
"
    );
}

/// The wide table has the reason and the message of the verdict.
#[test]
fn wide_table_explains_verdicts() {
    let table = Report::of(&fleet()).table(true, now());
    let member1 = table.lines().nth(1).unwrap();
    assert!(
        member1.ends_with(
            "1/1       ServiceDomainNameResolutionFailed   service domain name resolution is unready"
        ),
        "{member1}"
    );
}

fn names(line: &Line) -> Vec<String> {
    line.remedies
        .iter()
        .map(|acting| acting.name.clone())
        .collect()
}

/// All that acts on a cluster is named.
#[test]
fn acting_remedies_are_named() {
    let mut fleet = fleet();
    put(&mut fleet.remedies, maintenance(&["member1", "member2"]));
    let report = Report::of(&fleet);
    assert_eq!(names(&report.clusters[0]), ["dns", "maintenance"]);
    assert_eq!(names(&report.clusters[1]), ["maintenance"]);
    assert_eq!(report.clusters[1].actions, [""; 0], "not done yet");
}

/// A drain stands below the table, and is told when nobody has taken it back in time.
#[test]
fn drain_is_told() {
    let mut drained = maintenance(&["member2"]);
    let annotations = drained.annotations_mut();
    for (key, value) in [
        (DRAIN, "member2"),
        (REASON, "kernel"),
        ("remedy.karmada-rs.io/expires-at", "2026-11-20T08:00:00Z"),
    ] {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    for (now, expected) in [
        (
            "2026-11-20T07:00:00Z",
            "is drained until 2026-11-20T08:00:00Z (kernel)",
        ),
        (
            "2026-11-20T08:00:00Z",
            "was drained until 2026-11-20T08:00:00Z (kernel), and still is",
        ),
    ] {
        let mut fleet = fleet();
        fleet.now = now.parse().unwrap();
        put(&mut fleet.remedies, drained.clone());
        let table = Report::of(&fleet).table(false, fleet.now);
        let line = table.lines().last().unwrap();
        let end = "`kubectl remedy uncordon member2` takes that back";
        assert_eq!(line, format!("member2 {expected}: {end}"));
    }
}

/// The report is for programs too.
#[test]
fn report_is_machine_readable() {
    let text = manifest::text(&Report::of(&fleet()), Format::Json).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let member1 = &read["clusters"][0];
    assert_eq!(member1["name"], "member1");
    assert_eq!(member1["actions"][0], "TrafficControl");
    assert_eq!(member1["remedies"][0]["name"], "dns");
    assert_eq!(
        member1["remedies"][0]["cause"],
        "ServiceDomainNameResolutionReady is False"
    );
    assert_eq!(
        member1["conditions"][0]["lastTransitionTime"],
        "2026-11-20T08:00:00Z"
    );
    assert_eq!(member1["ingresses"]["blocked"], 1);
    let yaml = manifest::text(&Report::of(&fleet()), Format::Yaml).unwrap();
    assert_eq!(
        serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap(),
        read
    );
}

/// A fleet without clusters says so.
#[test]
fn empty_fleet_says_so() {
    let shown = Report::of(&FleetSnapshot::default()).table(false, now());
    assert_eq!(shown, "No clusters found\n");
}

fn numbers(line: &Line) -> (usize, usize) {
    (line.ingresses.blocked, line.ingresses.located)
}

/// An ingress counts once for a cluster however many of its services run there.
#[test]
fn ingress_counts_once_per_cluster() {
    let mut fleet = fleet();
    let twice = from_value(json!({
        "metadata": { "name": "twice", "namespace": "shop" }, "spec": {},
        "status": {
            "serviceLocations": [
                { "name": "web", "clusters": ["member1"] }, { "name": "api", "clusters": ["member1"] },
            ],
            "trafficBlockClusters": ["member2"],
        },
    }));
    put(&mut fleet.ingresses, twice.unwrap());
    let report = Report::of(&fleet);
    assert_eq!(numbers(&report.clusters[0]), (1, 2));
    assert_eq!(numbers(&report.clusters[1]), (1, 1));
}
