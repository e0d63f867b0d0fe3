//! Templates whose Pods differ.

use karmada_api::TargetComponent;

use super::room::spread;
use super::*;
use crate::schedule::Room;

fn fitting() -> Scheduler {
    Scheduler {
        fits_sets: true,
        ..scheduler()
    }
}

/// Returns the binding of a job with a manager of 2 CPUs and as many workers of 1 CPU, to go to one cluster.
fn job(workers: i32) -> Value {
    let parts = [("manager", 1, "2"), ("worker", workers, "1")].map(|(name, replicas, cpu)| {
        let needs = json!({ "resourceRequest": { "cpu": cpu } });
        json!({ "name": name, "replicas": replicas, "replicaRequirements": needs })
    });
    let mut binding = unscheduled(&spread(None, (1, 1)), 0);
    binding["spec"].as_object_mut().unwrap().remove("replicas");
    binding["spec"]["components"] = json!(parts);
    binding
}

/// Returns `member1`, `member2` and so on with so many free CPUs.
fn with_cpus(cpus: &[&str]) -> Vec<ClusterView> {
    let clusters = cpus.iter().enumerate().map(|(index, cpus)| {
        let mut cluster = cluster(&format!("member{}", index + 1));
        let summary = json!({ "allocatable": { "cpu": cpus, "pods": "100" } });
        cluster.status.resource_summary = from_value(summary).unwrap();
        cluster
    });
    clusters.collect()
}

/// Returns the binding after everything that follows, with estimators that say so much.
fn decided(binding: Value, clusters: &[ClusterView], answers: &[(&str, i32)]) -> Value {
    decided_by(&fitting(), binding, clusters, answers)
}

fn decided_by(
    scheduler: &Scheduler,
    mut binding: Value,
    clusters: &[ClusterView],
    answers: &[(&str, i32)],
) -> Value {
    let answers = answers.iter();
    let estimates = answers.map(|(name, sets)| ((*name).to_owned(), *sets));
    let estimates = estimates.collect();
    let pass = Pass {
        estimates: Some(&estimates),
        ..pass()
    };
    let first = planned_by(scheduler, &binding, clusters, pass);
    apply_plan(&mut binding, &first, false);
    let again = planned_by(scheduler, &binding, clusters, pass);
    assert_eq!(again, SchedulePlan::Unchanged, "{binding:#}");
    binding
}

/// Returns the clusters of a job that is whole in the `member` of this number.
fn whole(member: usize, workers: i32) -> Value {
    let components = [("manager", 1), ("worker", workers)].map(|(name, replicas)| {
        json!(TargetComponent {
            name: name.to_owned(),
            replicas
        })
    });
    json!([{ "name": format!("member{member}"), "components": components }])
}

#[track_caller]
fn assert_refused(binding: &Value) {
    let (value, reason, message) = scheduled_condition(binding);
    assert_eq!((&*value, &*reason), ("False", "SchedulerError"));
    assert_eq!(
        message,
        "failed to select clusters: no enough resource when selecting 1 clusters"
    );
}

/// A set goes to the roomiest cluster that has room for all of it: two clusters with room for a half each have none. Case
/// I86.
#[test]
fn whole_set_finds_room() {
    for (cpus, answers, member) in [
        (["3", "4", "9"], &[][..], 3),
        (["9", "4", "3"], &[], 1),
        (["4", "3", "3"], &[], 1),
        (["9", "8", "3"], &[("member1", 0)], 2),
        (["9", "8", "3"], &[("member1", 1), ("member2", 2)], 2),
        (["9", "8", "3"], &[("member1", -1)], 1),
    ] {
        let after = decided(job(2), &with_cpus(&cpus), answers);
        assert_eq!(after["spec"]["clusters"], whole(member, 2), "{cpus:?}");
        assert_is_scheduled(&after);
    }
    let none = decided(job(2), &with_cpus(&["3", "3"]), &[]);
    assert_refused(&none);
    assert_eq!(none["spec"].get("clusters"), None);
    let dead = decided(job(2), &with_cpus(&["9"]), &[("member1", 0)]);
    assert_refused(&dead);
    // A cluster that reports no room has none, whatever is asked for.
    assert_refused(&decided(job(2), &fleet(), &[]));
}

fn nodes(count: i64) -> Vec<ClusterView> {
    let mut clusters = with_cpus(&["1000"]);
    clusters[0].spec.resource_models = from_value(json!([
        { "grade": 0, "ranges": [{ "name": "cpu", "min": "0", "max": "1Ti" }] },
        { "grade": 1, "ranges": [{ "name": "cpu", "min": "3", "max": "1Ti" }] },
    ]))
    .unwrap();
    let summary = clusters[0].status.resource_summary.as_mut().unwrap();
    summary.allocatable_modelings = from_value(json!([
        { "grade": 1, "count": count }, { "grade": 0, "count": 99 },
    ]))
    .unwrap();
    clusters
}

/// Nodes of 3 CPUs take a manager and a worker each, whatever the sum of the rest. Case I86.
#[test]
fn whole_nodes_take_sets() {
    let scheduler = Scheduler {
        room: Room::Models,
        ..fitting()
    };
    for (workers, count, expected) in [
        (1, 0, false),
        (1, 1, true),
        (2, 1, false),
        (4, 2, true),
        (5, 2, false),
        // The sum decides where nodes are many.
        (9, 500, true),
        (2000, 5000, false),
    ] {
        let plan = planned_by(&scheduler, &job(workers), &nodes(count), pass());
        let fits = matches!(plan, SchedulePlan::Write { spec: Some(_), .. });
        assert_eq!(fits, expected, "{workers} {count}");
    }
}

fn grown(cpus: &[&str], workers: i32) -> Value {
    let mut before = decided(job(2), &with_cpus(&["4"]), &[]);
    assert_eq!(before["spec"]["clusters"], whole(1, 2));
    before["spec"]["components"] = job(workers)["spec"]["components"].clone();
    before["metadata"]["generation"] = json!(9);
    decided(before, &with_cpus(cpus), &[])
}

/// A set that grows stays where it has room for its new Pods, moves where it has all of its room, and stays as it is where
/// there is none at all. Case I88.
#[test]
fn grown_set_asks_for_rest() {
    for (cpus, workers, expected) in [
        (&["3", "99"][..], 5, whole(1, 5)),
        (&["2", "99"], 5, whole(2, 5)),
        // Less takes no room.
        (&["0", "99"], 1, whole(1, 1)),
        (&["0", "99"], 2, whole(1, 2)),
    ] {
        let after = grown(cpus, workers);
        assert_eq!(after["spec"]["clusters"], expected, "{cpus:?} {workers}");
        assert_eq!(scheduled_condition(&after).0, "True");
    }
    let short = grown(&["2", "6"], 5);
    assert_eq!(short["spec"]["clusters"], whole(1, 2));
    assert_refused(&short);
}

/// A set that has to leave a cluster goes to another that has room for all of it, and stays while there is none. Case I87.
#[test]
fn evicted_set_moves_whole() {
    let evicting = Scheduler {
        evicts: true,
        ..fitting()
    };
    let before = decided(job(2), &with_cpus(&["4"]), &[]);
    assert_eq!(before["spec"]["clusters"], whole(1, 2));
    for (cpus, expected) in [
        (["9", "3", "4"], whole(3, 2)),
        (["9", "3", "3"], whole(1, 2)),
    ] {
        let mut clusters = with_cpus(&cpus);
        clusters[0].spec.taints =
            from_value(json!([{ "key": "k", "effect": "NoExecute" }])).unwrap();
        let after = decided_by(&evicting, before.clone(), &clusters, &[]);
        assert_eq!(after["spec"]["clusters"], expected, "{cpus:?}");
    }
}

/// A set that runs since before anybody counted stays where it is, and is counted from then on; one that a policy wants to be
/// elsewhere moves. Case I88.
#[test]
fn uncounted_set_stays() {
    let mut binding = job(2);
    binding["spec"]["clusters"] = json!([{ "name": "member1" }]);
    let clusters = with_cpus(&["0", "9"]);
    let counted = decided(binding, &clusters, &[]);
    assert_eq!(counted["spec"]["clusters"], whole(1, 2));
    let mut edited = counted;
    edited["spec"]["placement"]["clusterAffinity"] = names(&["member2"]);
    let moved = decided(edited, &clusters, &[]);
    assert_eq!(moved["spec"]["clusters"], whole(2, 2));
}

/// A set that may go to several clusters goes to all that are selected, whatever room they have. Case I86.
#[test]
fn several_clusters_are_not_counted() {
    let clusters = with_cpus(&["0", "0", "9"]);
    for (placement, expected) in [
        (json!({}), 3),
        (spread(None, (1, 2)), 2),
        (spread(None, (2, 2)), 2),
        (divided(&json!({})), 3),
    ] {
        let mut binding = job(2);
        binding["spec"]["placement"] = placement;
        let after = decided(binding, &clusters, &[]);
        let targets = after["spec"]["clusters"].as_array().unwrap().clone();
        assert_eq!(targets.len(), expected);
        assert_eq!(targets[0], json!({ "name": "member1" }));
    }
}

/// Without the feature a set goes to one cluster as anything without replicas. Case I89.
#[test]
fn sets_are_off_by_default() {
    let after = settled(job(2), &with_cpus(&["0", "9"]));
    assert_eq!(after["spec"]["clusters"], json!([{ "name": "member1" }]));
}
