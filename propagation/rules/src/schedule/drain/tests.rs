use karmada_api::{ResourceBinding, names};
use serde_json::{Value, from_value};

use super::*;

const NOW: &str = "2026-11-22T08:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Returns a cluster with room for so many CPUs.
fn cluster(name: &str, cpu: u32) -> ClusterView {
    let kinds = json!([{ "groupVersion": "apps/v1", "resources": [{ "kind": "Deployment" }] }]);
    from_value(json!({
        "metadata": { "name": name },
        "status": {
            "apiEnablements": kinds,
            "resourceSummary": { "allocatable": { "cpu": cpu.to_string(), "pods": "100" } },
        },
    }))
    .unwrap()
}

fn aggregated() -> Value {
    json!({ "replicaScheduling": { "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" } })
}

/// Returns a workload whose replicas, of one CPU each, are in these clusters.
fn workload(name: &str, placement: &Value, clusters: &[(&str, i32)]) -> ResourceBinding {
    let total: i32 = clusters.iter().map(|(_, replicas)| replicas).sum();
    let targets: Vec<_> = clusters
        .iter()
        .map(|(name, replicas)| json!({ "name": name, "replicas": replicas }))
        .collect();
    from_value(json!({
        "metadata": {
            "name": name, "namespace": "shop", "generation": 1, "resourceVersion": "7",
            "labels": { names::POLICY_ID: "1" },
        },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name },
            "replicas": total, "replicaRequirements": { "resourceRequest": { "cpu": "1" } },
            "placement": placement, "clusters": targets,
        },
        "status": { "lastScheduledTime": NOW, "schedulerObservedGeneration": 1 },
    }))
    .unwrap()
}

fn short(bindings: &[ResourceBinding], rooms: [u32; 3], drained: &[&str]) -> Shortage {
    let clusters = [
        cluster("m1", rooms[0]),
        cluster("m2", rooms[1]),
        cluster("m3", rooms[2]),
    ];
    let views: Vec<_> = clusters.iter().collect();
    let drained = drained.iter().map(|name| (*name).to_owned()).collect();
    shortage(
        bindings.iter().map(BindingRef::from),
        &views,
        &drained,
        now(),
    )
}

/// Workloads that would each find room do not all find it, and their joint requests are told. Case T23.
#[test]
fn room_is_counted_once() {
    let all = ["a", "b"].map(|name| workload(name, &aggregated(), &[("m1", 3)]));
    let enough = short(&all, [9, 6, 0], &["m1"]);
    assert_eq!(enough.homeless, []);
    let short = short(&all, [9, 4, 1], &["m1"]);
    let homeless: Vec<_> = short
        .homeless
        .iter()
        .map(|one| (&*one.template, one.replicas))
        .collect();
    assert_eq!(homeless, [("Deployment b", 3)]);
    assert!(short.homeless[0].reason.contains("not enough"), "{short:?}");
    assert_eq!((&*short.needed["cpu"], &*short.free["cpu"]), ("6", "5"));
}

/// Of two clusters that are drained at once neither is room for the other. Case T23.
#[test]
fn drained_clusters_are_no_room() {
    let all = [workload("a", &aggregated(), &[("m1", 2)])];
    assert_eq!(short(&all, [9, 9, 0], &["m1"]).homeless, []);
    assert_eq!(short(&all, [9, 9, 0], &["m1", "m2"]).homeless.len(), 1);
}

/// A cluster that gets nothing new is no room either, which counts only where there was some. Case T23.
#[test]
fn closed_cluster_is_no_room() {
    let binding = workload("a", &aggregated(), &[("m1", 2)]);
    let drained = ["m1".to_owned()].into();
    for (rooms, homeless) in [([9, 0], 1), ([9, 9], 0), ([0, 0], 0)] {
        let clusters = [
            cluster("m1", 9),
            cluster("m2", rooms[0]),
            cluster("m3", rooms[1]),
        ];
        let views: Vec<_> = clusters.iter().collect();
        let bindings = [BindingRef::from(&binding)];
        let short = shortage_without("m2", &bindings, &views, &drained, now());
        assert_eq!(short.homeless.len(), homeless, "{rooms:?}");
    }
}

/// A copy in each cluster needs no other room, but another cluster; one that tolerates the taint stays.
#[test]
fn last_copy_has_no_place() {
    let everywhere = json!({});
    let one = json!({ "clusterAffinity": { "clusterNames": ["m1"] } });
    let tolerant = json!({ "clusterTolerations": [{ "operator": "Exists" }] });
    for (placement, clusters, homeless) in [
        (&everywhere, &[("m1", 2), ("m2", 2)][..], 0),
        (&one, &[("m1", 2)][..], 1),
        (&tolerant, &[("m1", 2)][..], 0),
    ] {
        let all = [workload("a", placement, clusters)];
        let short = short(&all, [9, 9, 9], &["m1"]);
        assert_eq!(short.homeless.len(), homeless, "{placement}");
        assert_eq!(short.needed.len(), 0, "{placement}");
    }
}

/// The rest of a workload in a cluster follows from its clusters, its tasks and its policy.
#[test]
fn remaining_follows_binding() {
    let tolerant = json!({ "clusterTolerations": [{ "operator": "Exists" }] });
    let there = workload("a", &aggregated(), &[("m1", 2)]);
    let elsewhere = workload("a", &aggregated(), &[("m2", 2)]);
    let mut leaving = elsewhere.clone();
    leaving.spec.graceful_eviction_tasks = from_value(json!([{ "fromCluster": "m1" }])).unwrap();
    let mut unmanaged = there.clone();
    unmanaged.spec.placement = None;
    for (binding, expected) in [
        (there, Some(Remaining::Scheduled)),
        (elsewhere, None),
        (leaving, Some(Remaining::Leaving)),
        (unmanaged, Some(Remaining::Staying)),
        (
            workload("a", &tolerant, &[("m1", 2)]),
            Some(Remaining::Staying),
        ),
    ] {
        let binding = BindingRef::from(&binding);
        assert_eq!(remaining(binding, "m1"), expected);
        let is_noted = note(binding, "m1").is_some();
        assert_eq!(is_noted, expected == Some(Remaining::Scheduled));
    }
}

fn written(binding: &ResourceBinding, write: &Write) -> ResourceBinding {
    patched(binding, write.body())
}

fn patched(binding: &ResourceBinding, patch: &Value) -> ResourceBinding {
    let mut json = serde_json::to_value(binding).unwrap();
    json_patch::merge(&mut json, patch);
    from_value(json).unwrap()
}

/// The way back: a workload that has moved is scheduled anew once its former copy is gone, and the note goes when it
/// is back. Case T21.
#[test]
fn moved_workload_returns() {
    let step = |binding: &ResourceBinding, requested| {
        next_return(BindingRef::from(binding), "m1", requested, now())
    };
    let before = workload("a", &aggregated(), &[("m1", 2), ("m2", 1)]);
    assert_eq!(step(&before, 0), None);
    let noted = written(&before, &note(BindingRef::from(&before), "m1").unwrap());
    assert_eq!(note(BindingRef::from(&noted), "m1"), None);
    assert!(matches!(
        step(&noted, 0),
        Some(Return::Settled { is_back: true, .. })
    ));

    let mut moved = noted.clone();
    moved.spec.clusters = from_value(json!([{ "name": "m2", "replicas": 3 }])).unwrap();
    moved.spec.graceful_eviction_tasks = from_value(json!([{ "fromCluster": "m1" }])).unwrap();
    assert_eq!(step(&moved, 0), Some(Return::Leaving));
    moved.spec.graceful_eviction_tasks = None;
    let Some(Return::Reschedule(write)) = step(&moved, 0) else {
        panic!("{:?}", step(&moved, 0));
    };
    // One second after the last decision, so that it is a later one.
    assert_eq!(
        write.body()["spec"]["rescheduleTriggeredAt"],
        "2026-11-22T08:00:01Z"
    );
    let asked = written(&moved, &write);
    assert_eq!(step(&asked, 1), Some(Return::Scheduling));

    let decided = json!({ "status": { "lastScheduledTime": "2026-11-22T08:00:01Z" } });
    let overtaken = patched(&asked, &decided);
    assert!(matches!(step(&overtaken, 1), Some(Return::Reschedule(_))));
    assert!(matches!(
        step(&overtaken, MOST_REQUESTS),
        Some(Return::Settled { is_back: false, .. })
    ));
    let mut back = overtaken;
    back.spec.clusters = from_value(json!([{ "name": "m1", "replicas": 1 }])).unwrap();
    let Some(Return::Settled { write, is_back }) = step(&back, 1) else {
        panic!("{:?}", step(&back, 1));
    };
    assert!(is_back);
    assert_eq!(step(&written(&back, &write), 1), None);
}

/// Another drain's note is another one.
#[test]
fn drains_do_not_share_notes() {
    let both = workload("a", &aggregated(), &[("m1", 2), ("m2", 1)]);
    let noted = written(&both, &note(BindingRef::from(&both), "m1").unwrap());
    let noted = written(&noted, &note(BindingRef::from(&noted), "m2").unwrap());
    let annotations = noted.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["drain.karmada-rs.io/m1"], "2");
    assert_eq!(annotations["drain.karmada-rs.io/m2"], "1");

    // The first of the clusters is gone.
    let forgotten = written(&noted, &forget(BindingRef::from(&noted), "m1").unwrap());
    let annotations = forgotten.metadata.annotations.as_ref().unwrap();
    assert!(annotations.keys().eq(["drain.karmada-rs.io/m2"]));
    assert_eq!(forget(BindingRef::from(&forgotten), "m1"), None);
}
