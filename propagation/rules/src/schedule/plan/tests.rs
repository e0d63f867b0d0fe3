use karmada_api::{ClusterResourceBinding, ClusterView, ResourceBinding, names};
use objects::patch::JsonPatch;
use proptest::prelude::*;
use serde_json::{from_str, from_value, json};

use self::room::{by_room, spread, with_room};
use super::*;
use crate::binding_ref::SCHEDULED;

mod affinity_groups;
mod assumed;
mod estimates;
mod evict;
mod fail_back;
mod overflow;
mod room;
mod sets;
mod zones;

fn scheduler() -> Scheduler {
    Scheduler {
        name: "default-scheduler".to_owned(),
        ..Scheduler::default()
    }
}

fn pass() -> Pass<'static> {
    Pass {
        now: "2026-11-22T08:00:00.5Z".parse().unwrap(),
        cluster_changed: false,
        affinity_groups: None,
        assumed: None,
        estimates: None,
    }
}

fn cluster(name: &str) -> ClusterView {
    let kinds = json!([
        { "groupVersion": "apps/v1", "resources": [{ "kind": "Deployment" }] },
        { "groupVersion": "rbac.authorization.k8s.io/v1", "resources": [{ "kind": "ClusterRole" }] },
    ]);
    from_value(json!({
        "metadata": { "name": name, "labels": { "name": name } },
        "status": { "apiEnablements": kinds },
    }))
    .unwrap()
}

fn fleet() -> Vec<ClusterView> {
    ["member1", "member2", "member3"].map(cluster).into()
}

/// Returns the binding of a Deployment that was never scheduled.
fn unscheduled(placement: &Value, replicas: i32) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": "web-deployment", "namespace": "shop", "generation": 1, "resourceVersion": "1",
            "labels": { names::POLICY_ID: "1" },
        },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u" },
            "replicas": replicas, "placement": placement,
        },
    })
}

fn planned(binding: &Value, clusters: &[ClusterView], pass: Pass<'_>) -> SchedulePlan {
    planned_by(&scheduler(), binding, clusters, pass)
}

fn planned_by(
    scheduler: &Scheduler,
    binding: &Value,
    clusters: &[ClusterView],
    pass: Pass<'_>,
) -> SchedulePlan {
    let binding: ResourceBinding = from_value(binding.clone()).unwrap();
    let clusters: Vec<_> = clusters.iter().collect();
    let fleet = KnownClusters {
        clusters: &clusters,
        complete: true,
    };
    plan(scheduler, (&binding).into(), fleet, pass)
}

/// Applies a JSON patch as an API server does that counts the generations of the spec.
fn apply(binding: &mut Value, patch: &JsonPatch) {
    let spec = binding["spec"].clone();
    let version = binding["metadata"]["resourceVersion"].clone();
    json_patch::patch(binding, patch.operations()).unwrap();
    let version = version.as_str().and_then(|text| text.parse::<u64>().ok());
    let next = version.unwrap_or(0) + 1;
    binding["metadata"]["resourceVersion"] = json!(next.to_string());
    if binding["spec"] != spec {
        let generation = binding["metadata"]["generation"].as_i64().unwrap();
        binding["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Applies the writes of a plan, or only the first.
fn apply_plan(binding: &mut Value, plan: &SchedulePlan, crashes: bool) {
    let SchedulePlan::Write { spec, status } = plan else {
        return;
    };
    if let Some(spec) = spec {
        let before: ResourceBinding = from_value(binding.clone()).unwrap();
        apply(binding, &spec.patch((&before).into()));
        if crashes {
            return;
        }
    }
    if let Some(status) = status {
        let before: ResourceBinding = from_value(binding.clone()).unwrap();
        let patch = status.patch(before.status.as_ref(), before.metadata.generation);
        apply(binding, &patch);
    }
}

/// Returns the binding as it is once everything was written.
fn settled(mut binding: Value, clusters: &[ClusterView]) -> Value {
    let plan = planned(&binding, clusters, pass());
    apply_plan(&mut binding, &plan, false);
    let again = planned(&binding, clusters, pass());
    assert!(
        !matches!(again, SchedulePlan::Write { .. }),
        "{again:?}\n{binding:#}"
    );
    binding
}

/// Returns the clusters by name.
fn targets(binding: &Value) -> Vec<(String, i64)> {
    let clusters = binding["spec"]["clusters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let targets = clusters.iter().map(|target| {
        let name = target["name"].as_str().unwrap().to_owned();
        (name, target["replicas"].as_i64().unwrap_or(-1))
    });
    let mut targets: Vec<_> = targets.collect();
    targets.sort();
    targets
}

fn target_names(binding: &Value) -> Vec<String> {
    let targets = targets(binding).into_iter();
    targets.map(|(name, _)| name).collect()
}

fn scheduled_condition(binding: &Value) -> (String, String, String) {
    let conditions = binding["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let condition = conditions
        .iter()
        .find(|condition| condition["type"] == SCHEDULED);
    let [status, reason, message] = ["status", "reason", "message"].map(|key| {
        let text = condition.and_then(|condition| condition[key].as_str());
        text.unwrap_or_default().to_owned()
    });
    (status, reason, message)
}

fn names(names: &[&str]) -> Value {
    json!({ "clusterNames": names })
}

fn group(name: &str, clusters: &[&str]) -> Value {
    json!({ "affinityName": name, "clusterNames": clusters })
}

fn divided(more: &Value) -> Value {
    let mut placement = json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" } });
    json_patch::merge(&mut placement, more);
    placement
}

/// Bindings that Karmada scheduled stay as they are.
#[test]
fn karmadas_bindings_stay() {
    let clusters = fleet();
    let clusters: Vec<_> = clusters.iter().collect();
    let fleet = KnownClusters {
        clusters: &clusters,
        complete: true,
    };
    let binding: ResourceBinding =
        from_str(include_str!("../fixtures/resourcebinding.json")).unwrap();
    assert_eq!(
        plan(&scheduler(), (&binding).into(), fleet, pass()),
        SchedulePlan::Unchanged
    );
    let binding: ClusterResourceBinding =
        from_str(include_str!("../fixtures/clusterresourcebinding.json")).unwrap();
    assert_eq!(
        plan(&scheduler(), (&binding).into(), fleet, pass()),
        SchedulePlan::Unchanged
    );
}

/// Checks the status of a binding that was just scheduled.
fn assert_is_scheduled(binding: &Value) {
    let status = &binding["status"];
    assert_eq!(
        status["schedulerObservedGeneration"],
        binding["metadata"]["generation"]
    );
    assert_eq!(status["lastScheduledTime"], "2026-11-22T08:00:00Z");
    let (value, reason, message) = scheduled_condition(binding);
    assert_eq!((&*value, &*reason), ("True", "Success"));
    assert_eq!(message, "Binding has been scheduled successfully.");
    let applied = &binding["metadata"]["annotations"][names::APPLIED_PLACEMENT];
    let applied: Value = from_str(applied.as_str().unwrap()).unwrap();
    assert_eq!(applied, binding["spec"]["placement"]);
}

/// A new binding gets clusters, and a status of the generation that they made.
#[test]
fn new_binding_is_scheduled() {
    let weights = json!({ "weightPreference": { "staticWeightList": [
        { "targetCluster": names(&["member1"]), "weight": 2 },
        { "targetCluster": names(&["member1", "member2"]), "weight": 1 },
    ] } });
    let cases = [
        (
            json!({}),
            2,
            vec![("member1", 2), ("member2", 2), ("member3", 2)],
        ),
        (
            json!({ "clusterAffinity": names(&["member2"]) }),
            2,
            vec![("member2", 2)],
        ),
        (
            divided(&json!({})),
            6,
            vec![("member1", 2), ("member2", 2), ("member3", 2)],
        ),
        (
            divided(&json!({ "replicaScheduling": weights })),
            6,
            vec![("member1", 4), ("member2", 2)],
        ),
        (
            divided(
                &json!({ "clusterAffinity": names(&["member3"]), "replicaScheduling": weights }),
            ),
            6,
            vec![("member3", 6)],
        ),
        (
            divided(&json!({ "clusterAffinity": names(&["member1", "member2"]) })),
            0,
            vec![],
        ),
        (
            json!({ "spreadConstraints": [{ "minGroups": 1, "maxGroups": 2 }] }),
            1,
            vec![("member1", 1), ("member2", 1)],
        ),
    ];
    for (placement, replicas, expected) in cases {
        let mut binding = unscheduled(&placement, replicas);
        // A workload without replicas has requirements all the same.
        binding["spec"]["replicaRequirements"] = json!({});
        let binding = settled(binding, &fleet());
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, replicas)| (name.to_owned(), replicas))
            .collect();
        assert_eq!(targets(&binding), expected);
        assert_is_scheduled(&binding);
    }
}

/// A template without replicas has targets without them.
#[test]
fn targets_without_replicas() {
    let mut binding = unscheduled(&json!({ "clusterAffinity": names(&["member1"]) }), 0);
    binding["spec"].as_object_mut().unwrap().remove("replicas");
    let binding = settled(binding, &fleet());
    assert_eq!(binding["spec"]["clusters"], json!([{ "name": "member1" }]));
}

/// A binding that is not ours, or not to be scheduled, is left alone.
#[test]
fn foreign_bindings_are_left_alone() {
    let edits = [
        json!({ "spec": { "placement": null } }),
        json!({ "spec": { "placement": "everywhere" } }),
        json!({ "spec": { "schedulerName": "other" } }),
        json!({ "spec": { "suspension": { "scheduling": true } } }),
        json!({ "metadata": { "labels": null } }),
        json!({ "metadata": { "deletionTimestamp": "2026-11-20T08:00:00Z" } }),
    ];
    let binding = unscheduled(&json!({}), 1);
    assert_ne!(planned(&binding, &fleet(), pass()), SchedulePlan::Unchanged);
    for edit in edits {
        let mut binding = binding.clone();
        json_patch::merge(&mut binding, &edit);
        assert_eq!(
            planned(&binding, &fleet(), pass()),
            SchedulePlan::Unchanged,
            "{edit}"
        );
    }
}

/// Divided replicas move only for a reason.
#[test]
fn divided_replicas_need_reason() {
    let placement = divided(&json!({ "clusterAffinity": names(&["member1", "member2"]) }));
    let running = settled(unscheduled(&placement, 4), &fleet());
    let mut odd = running.clone();
    odd["spec"]["clusters"] = json!([{ "name": "member1", "replicas": 4 }]);
    assert_eq!(planned(&odd, &fleet(), pass()), SchedulePlan::Unchanged);
    let reasons = [
        json!({ "spec": { "replicas": 5 } }),
        json!({ "spec": { "placement": { "clusterAffinity": names(&["member2"]) } } }),
        json!({ "spec": { "rescheduleTriggeredAt": "2026-11-22T09:00:00Z" } }),
    ];
    for reason in reasons {
        let mut binding = odd.clone();
        json_patch::merge(&mut binding, &reason);
        let moved = settled(binding.clone(), &fleet());
        assert_ne!(targets(&moved), targets(&odd), "{reason}");
    }
    // The trigger is spent: a second pass found nothing to write, although the clock was behind it.
    let mut leaving = fleet();
    leaving[0].metadata.deletion_timestamp =
        Some(from_value(json!("2026-11-20T08:00:00Z")).unwrap());
    assert_eq!(
        targets(&settled(odd, &leaving)),
        [("member2".to_owned(), 4)]
    );
}

/// A newer generation that changes no cluster is observed, and no more.
#[test]
fn newer_generation_is_observed() {
    let running = settled(unscheduled(&divided(&json!({})), 3), &fleet());
    let mut newer = running.clone();
    newer["metadata"]["generation"] = json!(9);
    let after = settled(newer, &fleet());
    assert_eq!(after["status"]["schedulerObservedGeneration"], 9);
    assert_eq!(after["spec"], running["spec"]);
    assert_eq!(
        after["status"]["conditions"],
        running["status"]["conditions"]
    );
}

/// A pass that a cluster caused moves the time, and not the clusters.
#[test]
fn cluster_change_moves_time() {
    let running = settled(unscheduled(&json!({}), 3), &fleet());
    let later = Pass {
        now: "2026-11-22T09:00:00Z".parse().unwrap(),
        cluster_changed: true,
        affinity_groups: None,
        assumed: None,
        estimates: None,
    };
    let mut after = running.clone();
    apply_plan(&mut after, &planned(&running, &fleet(), later), false);
    assert_eq!(after["status"]["lastScheduledTime"], "2026-11-22T09:00:00Z");
    assert_eq!(after["spec"], running["spec"]);
    let divided = settled(unscheduled(&divided(&json!({})), 3), &fleet());
    assert_eq!(planned(&divided, &fleet(), later), SchedulePlan::Unchanged);
}

/// The order of the clusters is nothing to write.
#[test]
fn target_order_is_ignored() {
    let mut running = settled(unscheduled(&json!({}), 3), &fleet());
    running["spec"]["clusters"]
        .as_array_mut()
        .unwrap()
        .reverse();
    assert_eq!(planned(&running, &fleet(), pass()), SchedulePlan::Unchanged);
}

/// An unsupported placement moves no running copy, and is the reason if there is none.
#[test]
fn unsupported_moves_nothing() {
    let newer = json!({ "weightPreference": { "dynamicWeight": "Newer" } });
    let clusters = fleet();
    let placements = [
        divided(&json!({ "replicaScheduling": newer })),
        json!({ "replicaScheduling": { "replicaSchedulingType": "Newer" } }),
        json!({ "clusterAffinity": 7 }),
    ];
    for placement in placements {
        let mut binding = unscheduled(&placement.clone(), 3);
        let (value, reason, message) = scheduled_condition(&settled(binding.clone(), &clusters));
        assert_eq!(
            (&*value, &*reason),
            ("False", "SchedulerError"),
            "{placement}"
        );
        assert!(message.starts_with("Unsupported: "), "{message}");
        binding["spec"]["clusters"] = json!([{ "name": "member1", "replicas": 1 }]);
        let plan = planned(&binding, &clusters, pass());
        assert!(
            matches!(plan, SchedulePlan::LeftAlone { .. }),
            "{placement}"
        );
    }
}

/// The bounds of the number of clusters hold, and keep running replicas.
#[test]
fn cluster_bounds_hold() {
    let mut running = unscheduled(&spread(None, (1, 2)), 1);
    running["spec"]["clusters"] = json!([{ "name": "member3", "replicas": 1 }]);
    let one_each = [("member1".to_owned(), 1), ("member3".to_owned(), 1)];
    assert_eq!(targets(&settled(running, &fleet())), one_each);
    let binding = settled(unscheduled(&spread(None, (4, 5)), 1), &fleet());
    let (_, reason, message) = scheduled_condition(&binding);
    let error = "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups";
    assert_eq!((&*reason, &*message), ("SchedulerError", error));
}

/// Cases P51 and P56: the first group that fits is used, and named.
#[test]
fn first_fitting_group_is_used() {
    let (a, b, none) = (
        group("a", &["member1"]),
        group("b", &["member2"]),
        group("none", &["x"]),
    );
    let cases = [
        ([&a, &b], None, "a", "member1"),
        ([&none, &b], None, "b", "member2"),
        // The group in use stays in use, although an earlier one fits as well.
        ([&a, &b], Some("b"), "b", "member2"),
        // A name that is gone begins at the first.
        ([&a, &b], Some("gone"), "a", "member1"),
        // None from the one in use to the last: the earlier ones are tried then.
        ([&a, &none], Some("none"), "a", "member1"),
    ];
    for (groups, observed, name, cluster) in cases {
        let placement = json!({ "clusterAffinities": groups });
        let mut binding = unscheduled(&placement, 1);
        binding["status"] = json!({ "schedulerObservingAffinityName": observed });
        let after = settled(binding, &fleet());
        assert_eq!(targets(&after), [(cluster.to_owned(), 1)], "{placement}");
        assert_eq!(after["status"]["schedulerObservingAffinityName"], name);
        assert_eq!(
            after["metadata"]["annotations"][names::SCHEDULED_AFFINITY],
            name
        );
    }
}

/// Case P58: a trigger leads back to the first group, and nothing else does, not even an edit of that group.
#[test]
fn trigger_restarts_groups() {
    let groups = json!([group("a", &["member1"]), group("b", &["member2"])]);
    let mut binding = unscheduled(&divided(&json!({ "clusterAffinities": groups })), 2);
    binding["status"] = json!({ "schedulerObservingAffinityName": "b" });
    let running = settled(binding, &fleet());
    let mut edited = running.clone();
    edited["spec"]["placement"]["clusterAffinities"][0]["clusterNames"] = json!(["member3"]);
    assert_eq!(planned(&edited, &fleet(), pass()), SchedulePlan::Unchanged);
    edited["spec"]["rescheduleTriggeredAt"] = json!("2026-11-22T10:00:00Z");
    let back = settled(edited, &fleet());
    assert_eq!(targets(&back), [("member3".to_owned(), 2)]);
    assert_eq!(back["status"]["schedulerObservingAffinityName"], "a");
    assert_eq!(back["status"]["lastScheduledTime"], "2026-11-22T10:00:00Z");
}

/// Cases P54 and P60: a placement without groups leaves no name of one.
#[test]
fn group_name_goes_with_groups() {
    let groups = json!([group("a", &["member1"])]);
    let mut binding = settled(
        unscheduled(&json!({ "clusterAffinities": groups }), 2),
        &fleet(),
    );
    binding["spec"]["placement"] = json!({ "clusterAffinity": names(&["member1"]) });
    let after = settled(binding, &fleet());
    assert_eq!(after["status"].get("schedulerObservingAffinityName"), None);
    assert_eq!(
        after["metadata"]["annotations"].get(names::SCHEDULED_AFFINITY),
        None
    );
}

/// Case P55: only if no cluster of any group fits, running copies are taken away.
#[test]
fn unfit_groups_take_away() {
    let unfit = group("unfit", &["x"]);
    let mut short = group("short", &["member1"]);
    short["clusterNames"] = json!(["member1"]);
    let bounds = json!([{ "spreadByField": "cluster", "minGroups": 2, "maxGroups": 2 }]);
    for groups in [[unfit.clone(), short.clone()], [short, unfit.clone()]] {
        let mut binding = unscheduled(
            &json!({ "clusterAffinities": groups, "spreadConstraints": bounds }),
            2,
        );
        binding["spec"]["clusters"] = json!([{ "name": "member3", "replicas": 2 }]);
        let after = settled(binding, &fleet());
        assert_eq!(targets(&after), [("member3".to_owned(), 2)]);
        assert_eq!(scheduled_condition(&after).1, "SchedulerError");
        assert_eq!(after["status"].get("schedulerObservedGeneration"), None);
    }
    let mut binding = unscheduled(&json!({ "clusterAffinities": [unfit] }), 2);
    binding["spec"]["clusters"] = json!([{ "name": "member3", "replicas": 2 }]);
    let after = settled(binding, &fleet());
    assert_eq!(targets(&after), []);
    assert_eq!(scheduled_condition(&after).1, "NoClusterFit");
}

/// Each failure of a group is told once.
#[test]
fn different_failures_are_told() {
    let unfit = "0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint.";
    let few = "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups";
    let bounds = json!([{ "spreadByField": "cluster", "minGroups": 2, "maxGroups": 2 }]);
    let cases = [
        (["x", "y"], unfit.to_owned()),
        (["member1", "member2"], few.to_owned()),
        (["x", "member1"], format!("[{unfit}, {few}]")),
    ];
    for (members, expected) in cases {
        let groups = members.map(|member| group(member, &[member]));
        let placement = json!({ "clusterAffinities": groups, "spreadConstraints": bounds });
        let (_, _, message) = scheduled_condition(&settled(unscheduled(&placement, 2), &fleet()));
        assert_eq!(message, expected);
    }
}

/// Clusters that cannot be seen take nothing away.
#[test]
fn unread_clusters_take_nothing_away() {
    let mut binding = unscheduled(&json!({}), 2);
    binding["spec"]["clusters"] = json!([{ "name": "unread", "replicas": 2 }]);
    let after = settled(binding.clone(), &[]);
    assert_eq!(targets(&after), targets(&binding));
    let (_, reason, message) = scheduled_condition(&after);
    assert_eq!(reason, "SchedulerError");
    assert_eq!(message, "0/0 clusters are available: no cluster exists.");
    let binding: ResourceBinding = from_value(binding).unwrap();
    let clusters = fleet();
    let clusters: Vec<_> = clusters.iter().collect();
    for complete in [false, true] {
        let fleet = KnownClusters {
            clusters: &clusters,
            complete,
        };
        let plan = plan(&scheduler(), (&binding).into(), fleet, pass());
        assert_eq!(plan != SchedulePlan::Unchanged, complete, "{plan:?}");
    }
}

/// The elements and fields of other writers stay.
#[test]
fn others_conditions_survive() {
    let other = json!({ "type": "FullyApplied", "status": "True", "reason": "R", "extra": 1 });
    let mut binding = unscheduled(&json!({}), 2);
    binding["status"] = json!({ "conditions": [other], "aggregatedStatus": [] });
    let after = settled(binding, &fleet());
    assert_eq!(after["status"]["conditions"][0], other);
    assert_eq!(after["status"]["conditions"][1]["type"], SCHEDULED);
    assert_eq!(after["status"]["aggregatedStatus"], json!([]));
}

fn placements() -> impl Strategy<Value = Value> {
    let member = prop::sample::subsequence(vec!["member1", "member2", "member3", "x"], 0..=4);
    let group = ("[ab]", member.clone()).prop_map(|(name, names)| group(&name, &names));
    let affinity = prop_oneof![
        Just(json!({})),
        member.prop_map(|members| json!({ "clusterAffinity": names(&members) })),
        prop::collection::vec(group, 1..3)
            .prop_map(|groups| json!({ "clusterAffinities": groups })),
    ];
    let spread = prop_oneof![
        Just(json!({})),
        (0..4_i64, 0..4_i64).prop_map(|(min, max)| json!({ "spreadConstraints": [
            { "spreadByField": "cluster", "minGroups": min, "maxGroups": max },
        ] })),
    ];
    let way = prop::sample::select(vec![
        json!({}),
        divided(&json!({})),
        by_room(false),
        by_room(true),
    ]);
    (affinity, spread, way).prop_map(|(affinity, spread, way)| {
        let mut placement = way;
        json_patch::merge(&mut placement, &affinity);
        json_patch::merge(&mut placement, &spread);
        placement
    })
}

proptest! {
    /// Runs a binding through edits, with a crash between the two writes of each.
    #[test]
    fn one_pass_settles_binding(
        edits in prop::collection::vec((placements(), 0..5, any::<bool>()), 1..4),
        rooms in prop::collection::vec(0..6_u32, 0..=3),
    ) {
        let clusters = with_room(&rooms);
        let mut binding = unscheduled(&json!({}), 1);
        for (placement, replicas, crashes) in edits {
            binding["spec"]["placement"] = placement;
            binding["spec"]["replicas"] = json!(replicas);
            let generation = binding["metadata"]["generation"].as_i64().unwrap();
            binding["metadata"]["generation"] = json!(generation + 1);
            let plan = planned(&binding, &clusters, pass());
            apply_plan(&mut binding, &plan, crashes);
            binding = settled(binding, &clusters);
            let status = &binding["status"];
            if scheduled_condition(&binding).0 == "True" {
                prop_assert_eq!(
                    &status["schedulerObservedGeneration"],
                    &binding["metadata"]["generation"]
                );
                let annotations = &binding["metadata"]["annotations"];
                prop_assert_eq!(
                    status.get("schedulerObservingAffinityName"),
                    annotations.get(names::SCHEDULED_AFFINITY)
                );
            }
        }
    }

    /// The order in which groups fail decides nothing.
    #[test]
    fn group_failure_order_is_irrelevant(
        kinds in prop::collection::vec(any::<bool>(), 1..5),
    ) {
        let outcome = |kinds: &[bool]| {
            let groups = kinds.iter().enumerate().map(|(index, unfit)| {
                group(&index.to_string(), if *unfit { &["x"] } else { &["member1"] })
            });
            let groups: Value = groups.collect();
            let bounds = json!([{ "spreadByField": "cluster", "minGroups": 2, "maxGroups": 2 }]);
            let placement = json!({ "clusterAffinities": groups, "spreadConstraints": bounds });
            let mut binding = unscheduled(&placement, 2);
            binding["spec"]["clusters"] = json!([{ "name": "member3", "replicas": 2 }]);
            let after = settled(binding, &fleet());
            (targets(&after), scheduled_condition(&after).1)
        };
        let mut other = kinds.clone();
        other.reverse();
        prop_assert_eq!(outcome(&kinds), outcome(&other));
        other.sort_unstable();
        prop_assert_eq!(outcome(&kinds), outcome(&other));
    }
}
