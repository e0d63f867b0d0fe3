use super::evict::{leaving, rested, tainted};
use super::*;

fn failing_back() -> Scheduler {
    Scheduler {
        fails_back: true,
        ..scheduler()
    }
}

/// Returns a binding that runs in `backup`, `member2`, and prefers `primary`.
fn in_backup(placement: Value, primary: &[&str]) -> Value {
    let mut placement = placement;
    let groups = json!([group("primary", primary), group("backup", &["member2"])]);
    placement["clusterAffinities"] = groups;
    let mut binding = unscheduled(&placement, 3);
    binding["status"] = json!({ "schedulerObservingAffinityName": "backup" });
    settled(binding, &with_room(&[3, 3]))
}

/// Returns the binding as it is once it stays where it is.
fn after(binding: &Value, clusters: &[ClusterView]) -> Value {
    rested(&failing_back(), binding.clone(), clusters).0
}

fn is_back(binding: &Value) -> bool {
    targets(binding) == [("member1".to_owned(), 3)]
}

/// A workload returns to an earlier group that fits again, if it may.
#[test]
fn fitting_group_is_returned_to() {
    let clusters = with_room(&[3, 3]);
    for placement in [
        json!({}),
        divided(&json!({})),
        by_room(true),
        by_room(false),
    ] {
        let running = in_backup(placement, &["member1"]);
        assert_eq!(targets(&running), [("member2".to_owned(), 3)]);
        let (stays, passes) = rested(&scheduler(), running.clone(), &clusters);
        assert_eq!((stays, passes), (running.clone(), 0), "without the flag");

        let (back, passes) = rested(&failing_back(), running, &clusters);
        assert_eq!(passes, 1);
        assert!(is_back(&back));
        assert_eq!(back["status"]["schedulerObservingAffinityName"], "primary");
        let task = &back["spec"]["gracefulEvictionTasks"][0];
        assert_eq!(task["fromCluster"], "member2");
        assert_eq!(task["reason"], "AffinityFailBack");
        assert_eq!(task["message"], "the group primary fits again");
        assert_eq!(task["purgeMode"], "Gracefully");

        // The copy in the backup goes once that in the primary is healthy.
        let mut healthy = back;
        let items =
            ["member1", "member2"].map(|name| json!({ "clusterName": name, "health": "Healthy" }));
        healthy["status"]["aggregatedStatus"] = json!(items);
        assert_eq!(leaving(&after(&healthy, &clusters)), [""; 0]);
    }
}

/// A workload stays in its group while no earlier one fits.
#[test]
fn unfit_group_keeps_workload() {
    let running = in_backup(by_room(true), &["member1"]);
    assert!(!is_back(&after(&running, &with_room(&[2, 3]))));
    let running = in_backup(json!({}), &["member1"]);
    assert!(!is_back(&after(&running, &tainted(&["member1"]))));
    let mut tolerating = running.clone();
    let toleration = json!([{ "operator": "Exists", "tolerationSeconds": 60 }]);
    tolerating["spec"]["placement"]["clusterTolerations"] = toleration;
    assert!(
        !is_back(&after(&tolerating, &tainted(&["member1"]))),
        "it would have to leave at once"
    );
    assert!(is_back(&after(&running, &fleet())));
}

/// A workload returns once its former copy is gone.
#[test]
fn return_awaits_former_copy() {
    let mut running = in_backup(json!({}), &["member1"]);
    let former = json!({ "clusterName": "member1", "health": "Healthy", "applied": true });
    running["status"]["aggregatedStatus"] = json!([former]);
    assert_eq!(after(&running, &fleet()), running);
    running["status"]["aggregatedStatus"] = json!([]);
    assert!(is_back(&after(&running, &fleet())));
}

/// A workload returns when dispatching to the clusters that it leaves is resumed.
#[test]
fn return_awaits_resumed_dispatching() {
    let everywhere = json!({ "dispatching": true });
    let there = json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    for suspension in [everywhere, there] {
        let mut running = in_backup(json!({}), &["member1"]);
        running["spec"]["suspension"] = suspension;
        assert!(!is_back(&after(&running, &fleet())));
        running["spec"]["suspension"] = json!(null);
        assert!(is_back(&after(&running, &fleet())));
    }
}

/// A workload that returns leaves no cluster of the group to which it does.
#[test]
fn shared_clusters_are_not_left() {
    let running = in_backup(json!({}), &["member1", "member2"]);
    let back = after(&running, &fleet());
    assert_eq!(
        targets(&back),
        ["member1", "member2"].map(|name| (name.to_owned(), 3))
    );
    assert_eq!(leaving(&back), [""; 0]);
}

/// Replicas in the group in use do not move because others may return.
#[test]
fn replicas_stay_without_return() {
    let groups = json!([
        group("primary", &["x"]),
        group("backup", &["member1", "member2"])
    ]);
    let running = settled(
        unscheduled(&divided(&json!({ "clusterAffinities": groups })), 4),
        &fleet(),
    );
    let mut odd = running;
    odd["spec"]["clusters"] = json!([{ "name": "member1", "replicas": 4 }]);
    assert_eq!(after(&odd, &fleet()), odd);
}

/// Ends the evictions of a binding, as time and healthy copies do.
fn without_tasks(mut binding: Value) -> Value {
    let spec = binding["spec"].as_object_mut().unwrap();
    spec.remove("gracefulEvictionTasks");
    binding
}

fn group_in_use(binding: &Value) -> Option<&str> {
    binding["status"]["schedulerObservingAffinityName"].as_str()
}

proptest! {
    /// Taints come and go, and so does room.
    /// A workload that may return comes to rest in no later group than a new one.
    #[test]
    fn rest_matches_new_workload(
        times in prop::collection::vec(
            (prop::collection::vec((0..5_u32, any::<bool>()), 3), 1..4_i32), 1..6,
        ),
        groups in prop::collection::vec(
            prop::sample::subsequence(vec!["member1", "member2", "member3"], 1..=2), 1..4,
        ),
        way in prop::sample::select(vec![json!({}), divided(&json!({})), by_room(false), by_room(true)]),
    ) {
        let mut placement = way;
        let named = groups.iter().enumerate();
        placement["clusterAffinities"] = named.map(|(index, members)| group(&index.to_string(), members)).collect();
        let both = Scheduler { evicts: true, ..failing_back() };
        let mut binding = unscheduled(&placement, 1);
        for (clusters, replicas) in times {
            let rooms: Vec<u32> = clusters.iter().map(|(room, _)| *room).collect();
            let mut fleet = with_room(&rooms);
            for (cluster, (_, is_tainted)) in fleet.iter_mut().zip(&clusters) {
                let taints = is_tainted.then(|| json!({ "key": "dns", "effect": "NoExecute" }));
                cluster.spec.taints = from_value(json!(Vec::from_iter(taints))).unwrap();
            }
            binding["spec"]["replicas"] = json!(replicas);
            // Each end of an eviction may make room for the next move.
            for _ in 0..3 {
                binding = without_tasks(rested(&both, binding, &fleet).0);
            }
            prop_assert_eq!(&without_tasks(rested(&both, binding.clone(), &fleet).0)["spec"], &binding["spec"]);
            let new = settled(unscheduled(&placement, replicas), &fleet);
            if scheduled_condition(&new).0 == "True" {
                prop_assert!(group_in_use(&binding) <= group_in_use(&new), "{:#}", binding);
            }
        }
    }
}
