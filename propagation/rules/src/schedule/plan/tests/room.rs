use super::*;

/// Returns a placement that divides replicas by the room of the clusters.
pub(super) fn by_room(aggregated: bool) -> Value {
    let scheduling = if aggregated {
        json!({ "replicaDivisionPreference": "Aggregated" })
    } else {
        json!({ "weightPreference": { "dynamicWeight": "AvailableReplicas" } })
    };
    divided(&json!({ "replicaScheduling": scheduling }))
}

/// Returns clusters `member1`, `member2` and so on with room for so many pods.
pub(super) fn with_room(rooms: &[u32]) -> Vec<ClusterView> {
    let clusters = rooms.iter().enumerate().map(|(index, room)| {
        let mut cluster = cluster(&format!("member{}", index + 1));
        cluster.status.resource_summary =
            from_value(json!({ "allocatable": { "pods": room.to_string() } })).unwrap();
        cluster
    });
    clusters.collect()
}

/// Returns the replicas of `member1`, `member2` and so on.
pub(super) fn running(replicas: &[i32]) -> Value {
    let members = replicas.iter().enumerate();
    let members = members.filter(|(_, replicas)| **replicas > 0);
    members
        .map(|(index, count)| json!({ "name": format!("member{}", index + 1), "replicas": count }))
        .collect()
}

/// The clusters by the room they have, and the replicas they run.
struct Stage<'a> {
    placement: &'a Value,
    clusters: Vec<ClusterView>,
    running: &'a [i32],
}

impl Stage<'_> {
    #[track_caller]
    fn assert(&self, replicas: i32, expected: &[i32]) {
        let mut binding = unscheduled(self.placement, replicas);
        binding["spec"]["clusters"] = running(self.running);
        let after = settled(binding, &self.clusters);
        let expected = json!({ "spec": { "clusters": running(expected) } });
        assert_eq!(targets(&after), targets(&expected));
        assert_is_scheduled(&after);
    }
}

fn stage<'a>(placement: &'a Value, rooms: &[u32], running: &'a [i32]) -> Stage<'a> {
    Stage {
        placement,
        clusters: with_room(rooms),
        running,
    }
}

/// Replicas are divided in proportion to the room of the clusters.
#[test]
fn room_divides_replicas() {
    let dynamic = by_room(false);
    stage(&dynamic, &[6, 3, 3], &[]).assert(4, &[2, 1, 1]);
    stage(&dynamic, &[2, 1, 3], &[]).assert(6, &[2, 1, 3]);
    // Only missing replicas are divided, and those too many leave in proportion.
    stage(&dynamic, &[0, 4, 0], &[3, 1, 0]).assert(6, &[3, 3, 0]);
    stage(&dynamic, &[9, 9, 9], &[6, 2, 0]).assert(4, &[3, 1, 0]);
    stage(&dynamic, &[9, 9, 9], &[0, 1, 3]).assert(4, &[0, 1, 3]);
}

/// Replicas are divided among as few clusters as have room.
#[test]
fn aggregated_uses_few_clusters() {
    let aggregated = by_room(true);
    stage(&aggregated, &[3, 5, 4], &[]).assert(5, &[0, 5, 0]);
    stage(&aggregated, &[3, 5, 4], &[]).assert(6, &[0, 3, 3]);
    // Those that run it come first.
    stage(&aggregated, &[2, 9, 9], &[1, 0, 0]).assert(3, &[3, 0, 0]);
    stage(&aggregated, &[1, 2, 9], &[1, 0, 0]).assert(4, &[1, 0, 3]);
    stage(&aggregated, &[9, 9, 9], &[5, 1, 1]).assert(4, &[4, 0, 0]);
}

/// Of clusters with equally much room that with more replicas comes first, and of those with equally many the one that the
/// binding lists first keeps its own: where all had as many, that is the one that had the most room.
#[test]
fn equal_clusters_have_order() {
    let aggregated = by_room(true);
    stage(&aggregated, &[4, 4], &[1, 2]).assert(5, &[1, 4]);
    let mut everywhere = settled(unscheduled(&json!({}), 3), &with_room(&[5, 9, 7]));
    let order = ["member2", "member3", "member1"];
    let order = order.map(|name| json!({ "name": name, "replicas": 3 }));
    assert_eq!(everywhere["spec"]["clusters"], json!(order));
    everywhere["spec"]["placement"] = aggregated;
    let after = settled(everywhere, &with_room(&[9, 9, 9]));
    assert_eq!(after["spec"]["clusters"], running(&[0, 3]));
}

/// More replicas do not go where nothing starts any more: those in such a cluster stay.
#[test]
fn tainted_cluster_gets_no_more() {
    for (aggregated, expected) in [(false, [2, 2, 2]), (true, [2, 4, 0])] {
        let mut clusters = with_room(&[9, 9, 9]);
        let taint = json!({ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" });
        clusters[0].spec.taints = from_value(json!([taint])).unwrap();
        let placement = by_room(aggregated);
        let stage = Stage {
            placement: &placement,
            clusters,
            running: &[2, 0, 0],
        };
        stage.assert(6, &expected);
    }
}

/// Where a constraint leaves no other cluster, replicas in one with a taint stay, and more wait.
#[test]
fn tainted_cluster_is_not_left() {
    let mut placement = by_room(true);
    let constraint = json!({ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 });
    placement["spreadConstraints"] = json!([constraint]);
    let mut clusters = with_room(&[9, 9]);
    let taint = json!({ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" });
    clusters[0].spec.taints = from_value(json!([taint])).unwrap();
    let mut binding = unscheduled(&placement, 4);
    binding["spec"]["clusters"] = running(&[3]);
    let after = settled(binding, &clusters);
    assert_eq!(after["spec"]["clusters"], running(&[3]));
    assert_eq!(scheduled_condition(&after).1, "Unschedulable");
}

/// A bound of which no end is named has none.
#[test]
fn least_of_clusters_is_enough() {
    let constraint = json!({ "spreadByField": "cluster", "minGroups": 2 });
    let placement = json!({ "spreadConstraints": [constraint] });
    stage(&placement, &[9, 9, 9], &[]).assert(2, &[2, 2, 2]);
}

/// A template without replicas goes wherever fixed weights bring its workload, though a constraint names fewer clusters.
#[test]
fn map_follows_fixed_weights() {
    let weights = ["member1", "member2", "member3"]
        .map(|name| json!({ "targetCluster": { "clusterNames": [name] }, "weight": 1 }));
    let mut placement = divided(&json!({
        "replicaScheduling": {
            "replicaDivisionPreference": "Weighted",
            "weightPreference": { "staticWeightList": weights },
        },
    }));
    let constraint = json!({ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 2 });
    placement["spreadConstraints"] = json!([constraint]);
    stage(&placement, &[9, 9, 9], &[]).assert(3, &[1, 1, 1]);
    let mut map = unscheduled(&placement, 0);
    map["spec"].as_object_mut().unwrap().remove("replicas");
    let after = settled(map, &with_room(&[9, 9, 9]));
    assert_eq!(targets(&after).len(), 3);
}

/// A template without replicas goes to the regions of the workload of its policy.
#[test]
fn map_follows_to_regions() {
    let mut placement = by_room(false);
    let bounds = spread(Some((1, 2)), (3, 4));
    json_patch::merge(&mut placement, &bounds);
    let mut clusters = with_room(&[9, 9, 9, 9]);
    for (cluster, region) in clusters.iter_mut().zip(["a", "z", "z", "z"]) {
        cluster.spec.region = region.to_owned();
    }
    let workload = settled(unscheduled(&placement, 6), &clusters);
    let mut map = unscheduled(&placement, 0);
    map["spec"].as_object_mut().unwrap().remove("replicas");
    let map = settled(map, &clusters);
    let (of_workload, of_map) = (target_names(&workload), target_names(&map));
    assert!(
        of_workload.contains(&"member1".to_owned()),
        "{of_workload:?}"
    );
    assert!(
        of_workload.iter().all(|name| of_map.contains(name)),
        "{of_map:?}"
    );
}

/// A trigger divides all replicas anew.
#[test]
fn trigger_divides_afresh() {
    for (aggregated, expected) in [(false, [4, 2]), (true, [6, 0])] {
        let mut binding = unscheduled(&by_room(aggregated), 6);
        binding["spec"]["clusters"] = running(&[0, 6]);
        let clusters = with_room(&[18, 3]);
        let binding = settled(binding, &clusters);
        assert_eq!(binding["spec"]["clusters"], running(&[0, 6]));
        let mut triggered = binding;
        triggered["spec"]["rescheduleTriggeredAt"] = json!("2026-11-22T09:00:00Z");
        let after = settled(triggered, &clusters);
        assert_eq!(after["spec"]["clusters"], running(&expected));
    }
}

/// A lack of room moves nothing, and is made good once there is some.
#[test]
fn lack_of_room_waits() {
    for aggregated in [false, true] {
        let mut binding = unscheduled(&by_room(aggregated), 6);
        binding["spec"]["clusters"] = running(&[1, 1]);
        let short = settled(binding, &with_room(&[1, 2]));
        assert_eq!(short["spec"]["clusters"], running(&[1, 1]));
        let (value, reason, message) = scheduled_condition(&short);
        assert_eq!((&*value, &*reason), ("False", "Unschedulable"));
        assert_eq!(
            message,
            "failed to assign replicas: failed to scale up: Clusters available replicas 3 are not enough to schedule."
        );
        assert_is_scheduled(&settled(short, &with_room(&[2, 2])));
    }
}

/// Cases P52 and P55: a group without room gives way to the next, and takes nothing away.
#[test]
fn full_group_gives_way() {
    let groups = json!([group("a", &["member1"]), group("b", &["member2"])]);
    let mut placement = by_room(true);
    placement["clusterAffinities"] = groups;
    let binding = unscheduled(&placement, 3);
    let after = settled(binding.clone(), &with_room(&[2, 3]));
    assert_eq!(after["spec"]["clusters"], running(&[0, 3]));
    assert_eq!(after["status"]["schedulerObservingAffinityName"], "b");
    let mut short = binding;
    short["spec"]["clusters"] = running(&[0, 0, 2]);
    let after = settled(short, &with_room(&[2, 2]));
    assert_eq!(after["spec"]["clusters"], running(&[0, 0, 2]));
    assert_eq!(scheduled_condition(&after).1, "Unschedulable");
}

/// Returns a placement with these bounds of the numbers of regions and clusters.
pub(super) fn spread(regions: Option<(i64, i64)>, clusters: (i64, i64)) -> Value {
    let by = |field: &str, (min, max): (i64, i64)| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max });
    let regions = regions.map(|bounds| by("region", bounds));
    let constraints = regions.into_iter().chain([by("cluster", clusters)]);
    json!({ "spreadConstraints": constraints.collect::<Vec<_>>() })
}

/// Returns five clusters in the regions `a`, `a`, `b`, `b` and `c`.
fn in_regions() -> Vec<ClusterView> {
    let mut clusters = with_room(&[9, 1, 4, 4, 2]);
    for (cluster, region) in clusters.iter_mut().zip(["a", "a", "b", "b", "c"]) {
        cluster.spec.region = region.to_owned();
    }
    clusters
}

/// Templates are spread over regions within the bounds of these.
#[test]
fn regions_stay_within_bounds() {
    let one = spread(Some((1, 1)), (2, 2));
    let two = |clusters| spread(Some((2, 2)), clusters);
    let mut by_room = by_room(false);
    json_patch::merge(&mut by_room, &two((2, 2)));
    let cases: [(&Value, &[i32], &[i32]); 7] = [
        (&two((2, 2)), &[], &[2, 0, 2]),
        // Where the bounds contradict each other, those of the regions count, as in Karmada.
        (&two((1, 1)), &[], &[2, 0, 2]),
        // The roomiest of the others.
        (&two((2, 3)), &[], &[2, 0, 2, 2]),
        // Without a bound, all of them.
        (&two((0, 0)), &[], &[2, 2, 2, 2]),
        // Running replicas stay in their region.
        (&two((2, 2)), &[0, 2, 0, 0, 2], &[0, 2, 2]),
        (&by_room, &[], &[1, 0, 1]),
        (&one, &[], &[0, 0, 2, 2]),
    ];
    for (placement, before, expected) in cases {
        let stage = Stage {
            placement,
            clusters: in_regions(),
            running: before,
        };
        stage.assert(2, expected);
    }
}

/// Running replicas make a region better: had it been scheduled already, one would have been enough.
#[test]
fn one_region_is_found_at_once() {
    let mut clusters = with_room(&[2, 15, 8, 14, 6]);
    for (cluster, region) in clusters.iter_mut().zip(["b", "a", "b", "b", "a"]) {
        cluster.spec.region = region.to_owned();
    }
    let placement = &spread(Some((1, 2)), (3, 3));
    let stage = Stage {
        placement,
        clusters,
        running: &[],
    };
    stage.assert(14, &[14, 0, 14, 14, 0]);
}

/// Its room changes all the time, and a start would move it otherwise.
/// Running replicas in regions within their bounds stay there, whatever room others have.
#[test]
fn regions_in_use_stay() {
    let mut clusters = in_regions();
    let rooms = with_room(&[0, 0, 0, 0, 2]);
    for (cluster, full) in clusters.iter_mut().zip(rooms) {
        cluster.status = full.status;
    }
    let one = spread(Some((1, 1)), (1, 2));
    let in_c = settled(unscheduled(&one, 2), &clusters);
    assert_eq!(in_c["spec"]["clusters"], running(&[0, 0, 0, 0, 2]));
    assert_eq!(settled(in_c.clone(), &in_regions()), in_c);

    // Unless another is asked for, or these are not enough.
    let mut edited = in_c.clone();
    json_patch::merge(
        &mut edited["spec"]["placement"],
        &spread(Some((1, 1)), (2, 2)),
    );
    let moved = settled(edited, &in_regions());
    assert_eq!(moved["spec"]["clusters"], running(&[0, 0, 2, 2]));
    let mut triggered = in_c;
    triggered["spec"]["rescheduleTriggeredAt"] = json!("2026-11-22T09:00:00Z");
    let moved = settled(triggered, &in_regions());
    assert_eq!(moved["spec"]["clusters"], running(&[0, 0, 2, 2]));
}

/// Too few regions, clusters, or room.
#[test]
fn spread_failures_are_named() {
    let errors = [
        (
            spread(Some((4, 4)), (1, 9)),
            "the number of feasible region is less than spreadConstraint.MinGroups",
        ),
        (
            spread(Some((1, 2)), (5, 9)),
            "the number of clusters is less than the cluster spreadConstraint.MinGroups",
        ),
        (
            spread(None, (1, 1)),
            "no enough resource when selecting 1 clusters",
        ),
    ];
    for (bounds, error) in errors {
        let mut placement = by_room(false);
        json_patch::merge(&mut placement, &bounds);
        let after = settled(unscheduled(&placement, 12), &in_regions());
        let (_, reason, message) = scheduled_condition(&after);
        let error = format!("failed to select clusters: {error}");
        assert_eq!((&*reason, &*message), ("SchedulerError", &*error));
    }
}

/// A cluster without room gives way to a roomier one.
#[test]
fn roomier_cluster_replaces_full() {
    let mut placement = by_room(false);
    json_patch::merge(&mut placement, &spread(None, (2, 2)));
    // member1 has room for four more, and stays.
    stage(&placement, &[4, 1, 6, 9], &[1, 1]).assert(10, &[4, 0, 0, 6]);
}
