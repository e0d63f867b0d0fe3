//! Room that is promised to others.

use super::room::{by_room, running, with_room};
use super::*;
use crate::schedule::{Assumed, Assumptions, Room};

/// Returns the assumptions of a Deployment that was placed a moment ago, with these replicas in a cluster.
fn others(cluster: &str, replicas: i32, cpu: &str) -> Assumed {
    let placed = json!([{ "name": cluster, "replicas": replicas }]);
    let [before, after] = [json!([]), placed].map(|clusters| {
        let mut binding = unscheduled(&json!({}), replicas);
        binding["spec"]["replicaRequirements"] = json!({ "resourceRequest": { "cpu": cpu } });
        binding["spec"]["clusters"] = clusters;
        read(&binding)
    });
    let assumptions = Assumptions::default();
    let assumptions = assumptions.after((&before).into(), (&after).into(), pass().now);
    let mut assumed = Assumed::default();
    assumed.extend(assumptions.workloads());
    assumed
}

fn read(binding: &Value) -> ResourceBinding {
    from_value(binding.clone()).unwrap()
}

/// Returns the clusters of a binding that was decided beside others, or the reason why it has none.
fn decided(
    scheduler: &Scheduler,
    binding: &Value,
    clusters: &[ClusterView],
    assumed: &Assumed,
) -> Result<Value, String> {
    let pass = Pass {
        assumed: Some(assumed),
        ..pass()
    };
    let clusters: Vec<_> = clusters.iter().collect();
    let fleet = KnownClusters {
        clusters: &clusters,
        complete: true,
    };
    let plan = plan(scheduler, (&read(binding)).into(), fleet, pass);
    let mut after = binding.clone();
    apply_plan(&mut after, &plan, false);
    let (value, reason, _) = scheduled_condition(&after);
    (value == "True")
        .then(|| after["spec"]["clusters"].clone())
        .ok_or(reason)
}

/// Room is no more than others leave that were promised some. Case I98.
#[test]
fn promised_room_is_taken() {
    let clusters = with_room(&[5, 3]);
    let binding = unscheduled(&by_room(true), 3);
    for (promised, expected) in [
        (0, Ok(running(&[3]))),
        (2, Ok(running(&[3]))),
        (3, Ok(running(&[0, 3]))),
        (99, Ok(running(&[0, 3]))),
    ] {
        let others = others("member1", promised, "0");
        let after = decided(&scheduler(), &binding, &clusters, &others);
        assert_eq!(after, expected, "{promised}");
    }
    let one = &clusters[..1];
    let after = decided(&scheduler(), &binding, one, &others("member1", 3, "0"));
    assert_eq!(after, Err("Unschedulable".to_owned()));
}

/// Promised room is taken from the first nodes that have it, as it will be in the cluster. Case I98.
#[test]
fn promised_nodes_are_taken() {
    let mut clusters = with_room(&[100]);
    clusters[0].spec.resource_models = from_value(json!([
        { "grade": 0, "ranges": [{ "name": "cpu", "min": "0", "max": "1Ti" }] },
        { "grade": 1, "ranges": [{ "name": "cpu", "min": "3", "max": "1Ti" }] },
    ]))
    .unwrap();
    let summary = clusters[0].status.resource_summary.as_mut().unwrap();
    summary.allocatable_modelings = from_value(json!([{ "grade": 1, "count": 2 }])).unwrap();
    summary.allocatable.extend(
        from_value::<karmada_api::cluster_view::Quantities>(json!({ "cpu": "6" })).unwrap(),
    );
    let mut binding = unscheduled(&by_room(true), 2);
    binding["spec"]["replicaRequirements"] = json!({ "resourceRequest": { "cpu": "2" } });
    for (promised, cpu, by_models, by_sum) in [
        (0, "1", true, true),
        (1, "1", true, true),
        // One on each node would leave room for both: the first takes them.
        (2, "1", false, true),
        (1, "2", false, true),
        (3, "1", false, false),
        // A Pod that no node has room for stays out of its cluster.
        (1, "4", true, false),
    ] {
        let others = others("member1", promised, cpu);
        let fits = [Room::Models, Room::Summary].map(|room| {
            let scheduler = Scheduler {
                room,
                ..scheduler()
            };
            decided(&scheduler, &binding, &clusters, &others).is_ok()
        });
        assert_eq!(fits, [by_models, by_sum], "{promised} of {cpu}");
    }
}

/// Running replicas stay, whatever others were promised beside them. Case I98.
#[test]
fn promises_move_nothing() {
    let clusters = with_room(&[10, 10]);
    let settled = settled(unscheduled(&by_room(false), 6), &clusters);
    let others = others("member1", 99, "0");
    let after = decided(&scheduler(), &settled, &clusters, &others);
    assert_eq!(after, Ok(running(&[3, 3])));
    let mut grown = settled;
    grown["spec"]["replicas"] = json!(8);
    grown["metadata"]["generation"] = json!(9);
    let after = decided(&scheduler(), &grown, &clusters, &others);
    assert_eq!(after, Ok(running(&[3, 5])));
}
