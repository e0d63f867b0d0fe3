use jiff::ToSpan;
use karmada_api::ResourceBinding;
use serde_json::{Value, from_value, json};

use super::super::assumed::Assumed;
use super::*;

const NOW: &str = "2026-11-22T08:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Returns a Deployment's binding with so many replicas in clusters, and the health of its copies.
fn binding(targets: &[(&str, i32)], health: &[(&str, &str)]) -> ResourceBinding {
    let targets = targets.iter();
    let targets: Vec<_> = targets
        .map(|(name, replicas)| json!({ "name": name, "replicas": replicas }))
        .collect();
    let health = health.iter();
    let health: Vec<_> = health
        .map(|(name, health)| json!({ "clusterName": name, "health": health }))
        .collect();
    from_value(json!({
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop" },
            "replicaRequirements": { "resourceRequest": { "cpu": "1" } },
            "clusters": targets,
        },
        "status": { "aggregatedStatus": health },
    }))
    .unwrap()
}

/// Returns a job's binding with a manager and so many workers, on these clusters.
fn job(workers: i32, clusters: &Value) -> ResourceBinding {
    let mut job = binding(&[], &[]);
    let parts =
        json!([{ "name": "manager", "replicas": 1 }, { "name": "worker", "replicas": workers }]);
    job.spec.components = from_value(parts).unwrap();
    job.spec.clusters = from_value(clusters.clone()).unwrap();
    job
}

/// Returns the assumptions after these versions of a binding, which follow each other at once.
fn after(versions: &[ResourceBinding]) -> Assumptions {
    let nothing = Assumptions::first((&versions[0]).into(), now());
    versions.windows(2).fold(nothing, |assumed, pair| {
        assumed.after((&pair[0]).into(), (&pair[1]).into(), now())
    })
}

/// Returns the replicas of each component by cluster.
fn replicas(assumptions: &Assumptions) -> Vec<(String, i32)> {
    let workloads = assumptions.workloads().flat_map(|(cluster, workload)| {
        let components = workload.components.iter();
        components.map(move |one| (format!("{cluster}/{}", one.name), one.replicas))
    });
    workloads.collect()
}

#[track_caller]
fn assert_assumed(assumptions: &Assumptions, expected: &[(&str, i32)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, replicas)| ((*name).to_owned(), *replicas))
        .collect();
    assert_eq!(replicas(assumptions), expected);
}

/// New replicas of a binding are assumed until its copy is Healthy, its target shrinks or goes. Case I98.
#[test]
fn placed_pods_are_assumed() {
    let new = binding(&[], &[]);
    let placed = |health: &str| binding(&[("m1", 3), ("m2", 2)], &[("m1", health)]);
    let both = [("m1/web", 3), ("m2/web", 2)];
    assert_assumed(&after(std::slice::from_ref(&new)), &[]);
    let assumed = after(&[new.clone(), placed("Unknown")]);
    assert_assumed(&assumed, &both);
    let (_, workload) = assumed.workloads().next().unwrap();
    assert_eq!(workload.namespace, "shop");
    let needs = json!({ "resourceRequest": { "cpu": "1" } });
    assert_eq!(workload.components[0].replica_requirements, Some(needs));

    let unhealthy = [new.clone(), placed("Unknown"), placed("Unhealthy")];
    assert_assumed(&after(&unhealthy), &both);
    let healthy = [new.clone(), placed("Unknown"), placed("Healthy")];
    assert_assumed(&after(&healthy), &[("m2/web", 2)]);
    let shrunk = [new.clone(), placed("Unknown"), binding(&[("m1", 1)], &[])];
    assert_assumed(&after(&shrunk), &[("m1/web", 1)]);
    let gone = [new.clone(), placed("Unknown"), binding(&[], &[])];
    assert!(after(&gone).is_empty());
    // A template without replicas takes no room.
    let mut config = new.clone();
    config.spec.clusters = from_value(json!([{ "name": "m1" }])).unwrap();
    assert!(after(&[new.clone(), config]).is_empty());
}

/// A workload that grows takes room for its new replicas, and not again for those that its cluster reports. Case I98.
#[test]
fn growth_alone_is_assumed() {
    let of = |replicas: i32, health: &str| binding(&[("m1", replicas)], &[("m1", health)]);
    let grown = [
        binding(&[], &[]),
        of(3, ""),
        of(3, "Healthy"),
        of(5, "Healthy"),
    ];
    assert_assumed(&after(&grown), &[("m1/web", 2)]);
    // The copy was Healthy with the replicas it had: only once it is so again it has the new ones.
    let again = |health: &[&str]| {
        let later = health.iter().map(|health| of(5, health));
        let versions: Vec<_> = grown.iter().cloned().chain(later).collect();
        after(&versions)
    };
    assert_assumed(&again(&["Healthy"]), &[("m1/web", 2)]);
    assert_assumed(&again(&["Unhealthy"]), &[("m1/web", 2)]);
    assert_assumed(&again(&["Unhealthy", "Healthy"]), &[]);
    // Nobody knows of the first yet when the second comes.
    let twice = [binding(&[], &[]), of(3, ""), of(5, "")];
    assert_assumed(&after(&twice), &[("m1/web", 5)]);
    let back = [
        binding(&[], &[]),
        of(3, ""),
        of(3, "Healthy"),
        of(5, "Healthy"),
        of(4, "Healthy"),
    ];
    assert_assumed(&after(&back), &[("m1/web", 1)]);
}

fn targets_with(workers: i32) -> Value {
    let parts =
        json!([{ "name": "manager", "replicas": 1 }, { "name": "worker", "replicas": workers }]);
    json!([{ "name": "m1", "components": parts }])
}

/// The Pods of a job that differ are assumed each with its number, as far as the target counts them. Case I98.
#[test]
fn components_are_assumed() {
    let none = job(2, &json!([]));
    let placed = after(&[none.clone(), job(2, &targets_with(2))]);
    assert_assumed(&placed, &[("m1/manager", 1), ("m1/worker", 2)]);
    let grown = [
        job(2, &targets_with(2)),
        job(5, &targets_with(2)),
        job(5, &targets_with(5)),
    ];
    assert_assumed(&after(&grown), &[("m1/worker", 3)]);
    let uncounted = after(&[none.clone(), job(2, &json!([{ "name": "m1" }]))]);
    assert_assumed(&uncounted, &[("m1/manager", 1), ("m1/worker", 2)]);
}

/// Five minutes end it, counted from the last growth there. Case I98.
#[test]
fn time_ends_assumptions() {
    let versions = [
        binding(&[], &[]),
        binding(&[("m1", 3)], &[]),
        binding(&[("m1", 3), ("m2", 1)], &[]),
    ];
    let [new, first, second] = &versions;
    let later = now() + 2.minutes();
    let assumed = Assumptions::first(new.into(), now());
    let assumed = assumed.after(new.into(), first.into(), now());
    let assumed = assumed.after(first.into(), second.into(), later);
    assert_eq!(assumed.next_end(), Some(now() + 5.minutes()));
    let just_before = assumed.clone().ended(now() + 299.seconds());
    assert_assumed(&just_before, &[("m1/web", 3), ("m2/web", 1)]);
    let ended = assumed.ended(now() + 5.minutes());
    assert_assumed(&ended, &[("m2/web", 1)]);
    assert_eq!(ended.next_end(), Some(later + 5.minutes()));
    assert!(ended.ended(later + 5.minutes()).is_empty());
}

fn first_of(scheduled: &str) -> Assumptions {
    let mut known = binding(
        &[("m1", 3), ("m2", 2)],
        &[("m1", "Healthy"), ("m2", "Unhealthy")],
    );
    let status = known.status.as_mut().unwrap();
    status.last_scheduled_time = from_value(json!(scheduled)).unwrap();
    Assumptions::first((&known).into(), now())
}

/// After a restart, a copy that was scheduled within five minutes and is not Healthy is assumed for the rest of that time. Case
/// I98.
#[test]
fn restart_forgets_nothing() {
    let recent = first_of("2026-11-22T07:58:00Z");
    assert_assumed(&recent, &[("m2/web", 2)]);
    assert_eq!(recent.next_end(), Some(now() + 3.minutes()));
    // One that was asked for at a later time.
    assert_eq!(
        first_of("2026-11-22T09:00:00Z").next_end(),
        Some(now() + 5.minutes())
    );
    assert!(first_of("2026-11-22T07:55:00Z").is_empty());
    // One of the same name is another.
    let mut other = binding(&[("m1", 3)], &[]);
    other.metadata.uid = Some("2".to_owned());
    assert!(after(&[binding(&[], &[]), other]).is_empty());
}

fn freed(before: &Assumptions, after: &Assumptions) -> Vec<String> {
    let freed = before.freed(after);
    freed.into_iter().collect::<Vec<_>>()
}

/// While nobody knows whether a decision was written, its replicas are assumed beside those that are there. Case I98.
#[test]
fn decisions_are_assumed() {
    let shown = binding(&[("m1", 3)], &[]);
    let assumed = after(&[binding(&[], &[]), shown.clone()]);
    let decided = binding(&[("m1", 5), ("m2", 2)], &[]).spec.clusters.unwrap();
    let with = assumed.with(&shown.spec, &decided, now());
    assert_assumed(&with, &[("m1/web", 5), ("m2/web", 2)]);
    let moved = assumed.with(&shown.spec, &decided[1..], now());
    assert_assumed(&moved, &[("m1/web", 3), ("m2/web", 2)]);
    assert_eq!(freed(&with, &assumed), ["m1", "m2"]);
    assert_eq!(freed(&moved, &assumed), ["m2"]);
    assert_eq!(freed(&assumed, &with), [""; 0]);
}

/// The room that all bindings take together is kept as each of them comes and goes. Case I98.
#[test]
fn whole_follows_its_parts() {
    let new = binding(&[], &[]);
    let parts = [
        after(&[new.clone(), binding(&[("m1", 3), ("m2", 2)], &[])]),
        after(&[new.clone(), binding(&[("m1", 5)], &[])]),
    ];
    let mut all = Assumed::default();
    for part in &parts {
        all.extend(part.workloads());
    }
    let pods = |all: &Assumed, cluster: &str| {
        let pods = all.pods_in(cluster).iter();
        pods.map(|(_, count)| *count).collect::<Vec<_>>()
    };
    assert_eq!(all.workloads_in("m1").len(), 2);
    assert_eq!((pods(&all, "m1"), pods(&all, "m2")), (vec![8], vec![2]));
    all.remove(parts[0].workloads());
    assert_eq!(all.workloads_in("m1").len(), 1);
    assert_eq!((pods(&all, "m1"), pods(&all, "m2")), (vec![5], vec![]));
    all.remove(parts[1].workloads());
    assert!(all.workloads_in("m1").is_empty());
}
