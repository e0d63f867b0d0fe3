use objects::write::Action;

use super::*;

/// Returns the clusters of the fleet, those of these names with a taint.
pub(super) fn tainted(names: &[&str]) -> Vec<ClusterView> {
    let mut clusters = fleet();
    for cluster in &mut clusters {
        if names.contains(&cluster.metadata.name.as_deref().unwrap()) {
            let taint =
                json!({ "key": "dns", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z" });
            cluster.spec.taints = from_value(json!([taint])).unwrap();
        }
    }
    clusters
}

fn evicting() -> Scheduler {
    Scheduler {
        evicts: true,
        ..scheduler()
    }
}

fn evicted(binding: Value, clusters: &[ClusterView]) -> (Value, usize) {
    rested(&evicting(), binding, clusters)
}

/// Returns the binding as it is once everything was written, and the number of passes that wrote.
pub(super) fn rested(
    scheduler: &Scheduler,
    mut binding: Value,
    clusters: &[ClusterView],
) -> (Value, usize) {
    for passes in 0..9 {
        match planned_by(scheduler, &binding, clusters, pass()) {
            SchedulePlan::Unchanged => return (binding, passes),
            SchedulePlan::EndEvictions(write) => {
                let Action::Json(patch) = write.action else {
                    panic!("no patch");
                };
                apply(&mut binding, &patch);
            }
            plan => apply_plan(&mut binding, &plan, false),
        }
    }
    panic!("never settled: {binding:#}");
}

pub(super) fn leaving(binding: &Value) -> Vec<&str> {
    let tasks = binding["spec"]["gracefulEvictionTasks"].as_array();
    let tasks = tasks.into_iter().flatten();
    tasks
        .map(|task| task["fromCluster"].as_str().unwrap())
        .collect()
}

fn unready(names: &[&str], wanted: &[&str]) -> Vec<ClusterView> {
    let mut clusters = tainted(wanted);
    for cluster in &mut clusters {
        if names.contains(&cluster.metadata.name.as_deref().unwrap()) {
            let taint = json!({ "key": "cluster.karmada.io/not-ready", "effect": "NoExecute" });
            cluster.spec.taints.push(from_value(taint).unwrap());
        }
    }
    clusters
}

/// While most of the fleet is not ready, the fault may be on the way to it: no workload leaves a cluster for that, while a
/// move that somebody wants goes on. Case P90.
#[test]
fn outage_of_most_moves_nothing() {
    let groups = json!([
        group("primary", &["member1"]),
        group("backup", &["member2"]),
    ]);
    let running = settled(
        unscheduled(&json!({ "clusterAffinities": groups }), 3),
        &fleet(),
    );
    for (names, wanted, leaves) in [
        (&["member1"][..], &[][..], true),
        (&["member1", "member3"], &[], false),
        (&["member1", "member3"], &["member1"], true),
    ] {
        let (after, _) = evicted(running.clone(), &unready(names, wanted));
        let expected = if leaves { &["member1"][..] } else { &[] };
        assert_eq!(leaving(&after), *expected, "{names:?} {wanted:?}");
    }
}

/// A workload leaves a taint for the next group, with one write of its clusters.
#[test]
fn taint_moves_to_next_group() {
    let groups = json!([
        group("primary", &["member1"]),
        group("backup", &["member2"])
    ]);
    for placement in [json!({}), divided(&json!({}))] {
        let mut placement = placement;
        placement["clusterAffinities"] = groups.clone();
        let running = settled(unscheduled(&placement, 3), &fleet());
        assert_eq!(targets(&running), [("member1".to_owned(), 3)]);
        let (moved, passes) = evicted(running, &tainted(&["member1"]));
        assert_eq!(passes, 1);
        assert_eq!(targets(&moved), [("member2".to_owned(), 3)]);
        assert_eq!(leaving(&moved), ["member1"]);
        assert_eq!(moved["status"]["schedulerObservingAffinityName"], "backup");

        // Once it is well there the copy goes, and the workload stays without the taint, too.
        let mut healthy = moved;
        healthy["status"]["aggregatedStatus"] =
            json!([{ "clusterName": "member2", "health": "Healthy" }]);
        let (over, _) = evicted(healthy, &fleet());
        assert_eq!(leaving(&over), [""; 0]);
        assert_eq!(targets(&over), [("member2".to_owned(), 3)]);
    }
}

/// A workload without another place stays.
#[test]
fn nowhere_to_go_stays() {
    let only = json!({ "clusterAffinity": names(&["member1"]) });
    for (placement, taints) in [
        (only, vec!["member1"]),
        (divided(&json!({})), vec!["member1", "member2", "member3"]),
    ] {
        let running = settled(unscheduled(&placement, 3), &fleet());
        let (after, passes) = evicted(running.clone(), &tainted(&taints));
        assert_eq!((after, passes), (running, 0));
    }
}

/// The other clusters take over the replicas that leave one.
#[test]
fn others_take_over_replicas() {
    let running = settled(unscheduled(&divided(&json!({})), 3), &fleet());
    let (moved, _) = evicted(running, &tainted(&["member1"]));
    let replicas: i64 = targets(&moved).iter().map(|(_, replicas)| replicas).sum();
    assert_eq!((targets(&moved).len(), replicas), (2, 3));
    let running = settled(unscheduled(&json!({}), 3), &fleet());
    let (moved, _) = evicted(running, &tainted(&["member1", "member3"]));
    assert_eq!(targets(&moved), [("member2".to_owned(), 3)]);
    assert_eq!(leaving(&moved), ["member1", "member3"]);
}

/// Case P27: a workload does not leave a cluster to which dispatching is suspended.
#[test]
fn suspended_cluster_is_not_left() {
    let everywhere = json!({ "dispatching": true });
    let there = json!({ "dispatchingOnClusters": { "clusterNames": ["member1"] } });
    let elsewhere = json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    let placement = divided(&json!({}));
    for (suspension, left) in [
        (everywhere, vec![]),
        (there, vec![]),
        (elsewhere, vec!["member1"]),
    ] {
        let mut running = settled(unscheduled(&placement, 3), &fleet());
        running["spec"]["suspension"] = suspension;
        let (after, _) = evicted(running, &tainted(&["member1"]));
        assert_eq!(leaving(&after), left);
        // The resume leads to it.
        let mut resumed = after;
        resumed["spec"]["suspension"] = json!(null);
        let (after, _) = evicted(resumed, &tainted(&["member1"]));
        assert_eq!(leaving(&after), ["member1"]);
    }
}

/// A workload does not come back under a taint that it does not tolerate any longer.
#[test]
fn expired_toleration_bars_return() {
    let toleration = json!({ "operator": "Exists", "tolerationSeconds": 60 });
    let running = settled(
        unscheduled(&json!({ "clusterTolerations": [toleration] }), 3),
        &fleet(),
    );
    let clusters = tainted(&["member1"]);
    let (mut moved, _) = evicted(running, &clusters);
    assert_eq!(leaving(&moved), ["member1"]);
    moved["status"]["aggregatedStatus"] = ["member2", "member3"]
        .map(|name| json!({ "clusterName": name, "health": "Healthy" }))
        .into();
    let (over, _) = evicted(moved.clone(), &clusters);
    assert_eq!(leaving(&over), [""; 0]);
    assert_eq!(targets(&over), targets(&moved));
}

/// A workload goes to no cluster that its former copy has not left.
#[test]
fn former_copy_bars_cluster() {
    let groups = json!([
        group("a", &["member1"]),
        group("b", &["member2"]),
        group("c", &["member3"])
    ]);
    let mut running = settled(
        unscheduled(&json!({ "clusterAffinities": groups }), 3),
        &fleet(),
    );
    // Its health would end the eviction at once.
    let former = json!({ "clusterName": "member2", "health": "Healthy", "applied": true });
    running["status"]["aggregatedStatus"] = json!([former]);
    let (after, _) = evicted(running.clone(), &tainted(&["member1"]));
    assert_eq!(targets(&after), [("member3".to_owned(), 3)]);
    let required = json!([{ "name": "other", "clusters": [{ "name": "member2" }] }]);
    running["spec"]["requiredBy"] = required;
    let (after, _) = evicted(running, &tainted(&["member1"]));
    assert_eq!(targets(&after), [("member2".to_owned(), 3)]);
}
