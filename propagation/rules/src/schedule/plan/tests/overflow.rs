use super::room::running;
use super::*;
use crate::schedule::wake::{concerns, is_observed};

/// Returns the placement of a group of `member1` and `member2` that overflows into `member3`, and then into clusters that have
/// the label `cloud`.
fn overflowing(aggregated: bool) -> Value {
    let mut placement = by_room(aggregated);
    placement["clusterAffinities"] = json!([{
        "affinityName": "private", "clusterNames": ["member1", "member2"],
        "overflowAffinities": [
            // A cluster of two tiers belongs to the first of them.
            { "affinityName": "near", "clusterNames": ["member3", "member1"] },
            { "affinityName": "far", "labelSelector": { "matchLabels": { "cloud": "true" } } },
        ],
    }]);
    placement
}

/// Returns four clusters with room for so many pods, the last of which is in the cloud.
fn with_rooms(rooms: [u32; 4]) -> Vec<ClusterView> {
    let mut clusters = with_room(&rooms);
    let labels = clusters[3].metadata.labels.as_mut().unwrap();
    labels.insert("cloud".to_owned(), "true".to_owned());
    clusters
}

/// Each tier gets the replicas that those before lack room for, and the last is the first that loses some. Case I92.
#[test]
fn tiers_fill_in_order() {
    let cases = [
        (2, [2, 2, 9, 9], [0; 4], [1, 1, 0, 0]),
        (4, [2, 2, 9, 9], [0; 4], [2, 2, 0, 0]),
        (6, [2, 2, 9, 9], [0; 4], [2, 2, 2, 0]),
        (9, [2, 2, 3, 9], [0; 4], [2, 2, 3, 2]),
        // More replicas fill the rest of the earlier tiers.
        (8, [0, 1, 1, 9], [2, 1, 2, 0], [2, 2, 3, 1]),
        // Fewer leave the last tier first.
        (5, [0, 0, 0, 0], [2, 2, 3, 2], [2, 2, 1, 0]),
        (2, [0, 0, 0, 0], [2, 2, 3, 0], [1, 1, 0, 0]),
        // A tier whose clusters are full is passed over.
        (2, [0, 0, 0, 9], [0; 4], [0, 0, 0, 2]),
    ];
    for (replicas, rooms, before, expected) in cases {
        let mut binding = unscheduled(&overflowing(false), replicas);
        binding["spec"]["clusters"] = running(&before);
        let after = settled(binding, &with_rooms(rooms));
        let clusters = &after["spec"]["clusters"];
        assert_eq!(clusters, &running(&expected), "{replicas} in {rooms:?}");
        assert_is_scheduled(&after);
        assert_eq!(after["status"]["schedulerObservingAffinityName"], "private");
    }
}

/// Within a tier the strategy decides: few clusters where replicas are aggregated. Case I92.
#[test]
fn tiers_are_aggregated() {
    let binding = unscheduled(&overflowing(true), 7);
    let after = settled(binding, &with_rooms([2, 3, 9, 9]));
    assert_eq!(after["spec"]["clusters"], running(&[2, 3, 2, 0]));
    let binding = unscheduled(&overflowing(true), 3);
    let after = settled(binding, &with_rooms([2, 3, 9, 9]));
    assert_eq!(after["spec"]["clusters"], running(&[0, 3, 0, 0]));
}

/// A template that is divided by fixed weights, or not at all, overflows, too. Copies need no room of their own: the
/// first tier that has some for one has it for all. Case I92.
#[test]
fn other_strategies_overflow() {
    let mut weighted = overflowing(false);
    weighted["replicaScheduling"]["weightPreference"] = Value::Null;
    let mut duplicated = overflowing(false);
    duplicated["replicaScheduling"] = json!({ "replicaSchedulingType": "Duplicated" });
    let cases = [
        (&weighted, [2, 2, 9, 9], [2, 2, 2, 0]),
        (&weighted, [9, 9, 9, 9], [3, 3, 0, 0]),
        (&duplicated, [2, 2, 9, 9], [6, 6, 0, 0]),
        (&duplicated, [9, 9, 9, 9], [6, 6, 0, 0]),
        (&duplicated, [0, 0, 9, 9], [0, 0, 6, 0]),
    ];
    for (placement, rooms, expected) in cases {
        let after = settled(unscheduled(placement, 6), &with_rooms(rooms));
        assert_eq!(after["spec"]["clusters"], running(&expected), "{rooms:?}");
    }
    let short = settled(unscheduled(&duplicated, 6), &with_rooms([0, 0, 2, 2]));
    assert_eq!(scheduled_condition(&short).1, "Unschedulable");
}

/// All tiers together lack room: nothing moves. Case I92.
#[test]
fn full_tiers_move_nothing() {
    let mut binding = unscheduled(&overflowing(false), 9);
    binding["spec"]["clusters"] = running(&[2, 2, 0, 0]);
    let short = settled(binding, &with_rooms([0, 0, 2, 2]));
    assert_eq!(short["spec"]["clusters"], running(&[2, 2, 0, 0]));
    let (value, reason, message) = scheduled_condition(&short);
    assert_eq!((&*value, &*reason), ("False", "Unschedulable"));
    assert_eq!(
        message,
        "failed to assign replicas: Clusters available replicas are not enough to schedule."
    );
    assert_is_scheduled(&settled(short, &with_rooms([0, 0, 2, 3])));
}

/// A bound of the number of clusters is met by the earlier tiers first, whatever room later ones have. Case I92.
#[test]
fn bounds_prefer_earlier_tiers() {
    let mut placement = overflowing(false);
    json_patch::merge(&mut placement, &spread(None, (1, 2)));
    let after = settled(unscheduled(&placement, 4), &with_rooms([2, 2, 9, 9]));
    assert_eq!(after["spec"]["clusters"], running(&[2, 2, 0, 0]));
}

/// A template without replicas needs no room, and stays in the group itself. Case I92.
#[test]
fn non_workload_does_not_overflow() {
    let mut binding = unscheduled(&overflowing(false), 0);
    binding["spec"]["replicas"] = Value::Null;
    let after = settled(binding, &with_rooms([0; 4]));
    let names: Vec<_> = targets(&after).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["member1", "member2"]);
}

/// Karmada wakes a binding only for the clusters of its group. Case I92.
/// A cluster that is relabelled into a later tier, or out of it, wakes the binding, too.
#[test]
fn relabelled_overflow_wakes() {
    let binding: ResourceBinding = from_value(unscheduled(&overflowing(false), 2)).unwrap();
    let clusters = with_rooms([1; 4]);
    let elsewhere = cluster("member5");
    for (cluster, expected) in clusters
        .iter()
        .map(|it| (it, true))
        .chain([(&elsewhere, false)])
    {
        assert_eq!(concerns((&binding).into(), cluster), expected);
        assert_eq!(is_observed((&binding).into(), cluster), expected);
    }
}
