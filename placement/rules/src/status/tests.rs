use fleet_api::Placement;
use fleet_api::binding::BindingStatus;
use fleet_api::placement::FailedPlacement;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, from_value, json};

use super::*;
use crate::fixtures::{fixture, items};
use crate::refuse::Refusal;
use crate::select::InvalidSelector;

/// A placement and the objects that its status tells of.
struct World {
    placement: Placement,
    selection: Selection,
    policy: Option<PolicySnapshot>,
    snapshot: ObjectMeta,
    bindings: Vec<Binding>,
    held: Vec<(&'static str, String)>,
}

impl World {
    /// A recorded placement with its recorded snapshots and bindings.
    fn recorded(placement: &str, [policy, snapshot, bindings]: [&str; 3]) -> Self {
        let mut snapshots = match fixture(snapshot) {
            list if list["kind"] == "List" => items(snapshot),
            one => vec![one],
        };
        let snapshot = snapshots.pop().unwrap();
        let objects = snapshot["spec"]["selectedResources"].as_array().cloned();
        let bindings = items(bindings)
            .into_iter()
            .map(|one| from_value(one).unwrap());
        Self {
            placement: from_value(fixture(placement)).unwrap(),
            selection: Selection {
                objects: objects.unwrap(),
                ..Selection::default()
            },
            policy: Some(from_value(fixture(policy)).unwrap()),
            snapshot: from_value(snapshot["metadata"].clone()).unwrap(),
            bindings: bindings.collect(),
            held: Vec::new(),
        }
    }

    fn seed(placement: &str) -> Self {
        let parts = [
            "crp-1-policysnapshot-0",
            "crp-1-resourcesnapshot-0",
            "crp-1-bindings",
        ];
        Self::recorded(placement, parts)
    }

    fn status(&self) -> Option<PlacementStatus> {
        let bindings: Vec<_> = self.bindings.iter().collect();
        let (status, _) = plan(&StatusFacts {
            placement: &self.placement,
            selection: Ok(&self.selection),
            policy: self.policy.as_ref(),
            snapshot: Some(&self.snapshot),
            given: &[],
            bindings: &bindings,
            held: &self.held,
            progress_deadline: SignedDuration::MAX,
            now: "2026-11-25T17:00:00Z".parse().unwrap(),
        });
        status
    }

    /// Puts every binding back to where it had these conditions, the first of all that it goes through.
    fn back_to(&mut self, reached: usize) {
        for binding in &mut self.bindings {
            let status = binding.status.as_mut().unwrap();
            status.conditions.truncate(reached);
        }
    }

    /// Returns type, status, reason and message of the placement's conditions.
    fn said(&self) -> Value {
        said(
            &self
                .status()
                .unwrap_or_else(|| self.placement.status.clone().unwrap())
                .conditions,
        )
    }
}

fn said(conditions: &[Condition]) -> Value {
    let said = conditions
        .iter()
        .map(|one| json!([one.type_, one.status, one.reason, one.message]));
    said.collect()
}

fn recorded_conditions(name: &str) -> Value {
    let placement: Placement = from_value(fixture(name)).unwrap();
    said(&placement.status.unwrap().conditions)
}

/// Case F37: of envelopes the status tells as KubeFleet's does. Its sources were not recorded: the policy of
/// another placement, and of a third a binding, are made its own.
#[test]
fn recorded_envelopes_are_told() {
    let parts = [
        "crp-fixed-policysnapshot-0",
        "crp-env-resourcesnapshot-0",
        "crp-all-bindings",
    ];
    let mut world = World::recorded("crp-env-available", parts);
    let reason = "Successfully scheduled resources for placement in \"kind-cluster-1\": picked by scheduling policy";
    world.bindings.truncate(1);
    let spec = &mut world.bindings[0].spec;
    spec.resource_snapshot_name = "crp-env-0-snapshot".to_owned();
    spec.cluster_decision.reason = reason.to_owned();
    let policy = world.policy.as_mut().unwrap();
    policy.status = from_value(json!({
        "observedCRPGeneration": 1,
        "conditions": [{
            "type": "Scheduled", "status": "True", "reason": "SchedulingPolicyFulfilled",
            "message": "found all cluster needed as specified by the scheduling policy, found 1 cluster(s)",
            "observedGeneration": 1,
        }],
        "targetClusters": [{ "clusterName": "kind-cluster-1", "selected": true, "reason": reason }],
    }))
    .unwrap();
    assert_eq!(world.status(), None);
}

/// Case F46: the status of a fleet that changes hands is as we would have it: nothing is written.
#[test]
fn recorded_statuses_are_ours() {
    for (placement, parts) in [
        (
            "crp-1-available",
            [
                "crp-1-policysnapshot-0",
                "crp-1-resourcesnapshot-0",
                "crp-1-bindings",
            ],
        ),
        (
            "crp-all-available",
            [
                "crp-all-policysnapshot-0",
                "crp-all-resourcesnapshot-0",
                "crp-all-bindings",
            ],
        ),
        (
            "crp-roll-mid-rollout",
            [
                "crp-roll-policysnapshot-0",
                "crp-roll-resourcesnapshots",
                "crp-roll-bindings-mid-rollout",
            ],
        ),
    ] {
        if placement == "crp-roll-mid-rollout" {
            // Its policy was not recorded: every cluster, as that of crp-all.
            let [_, snapshot, bindings] = parts;
            let world =
                World::recorded(placement, ["crp-all-policysnapshot-0", snapshot, bindings]);
            assert_eq!(world.status(), None, "{placement}");
            continue;
        }
        assert_eq!(
            World::recorded(placement, parts).status(),
            None,
            "{placement}"
        );
    }
}

/// Returns a recorded placement whose snapshots were not recorded; of its bindings, the words of each cluster.
fn of_differences(name: &str) -> World {
    let placement = fixture(name);
    let bindings = items("crp-diff-bindings");
    let decisions = bindings.iter().map(|one| &one["spec"]["clusterDecision"]);
    let decisions: Vec<_> = decisions.collect();
    let found = &placement["status"]["conditions"][0];
    let mut scheduled = found.clone();
    scheduled["type"] = json!("Scheduled");
    let policy = json!({ "metadata": { "name": "crp-diff-0" },
        "spec": { "policy": placement["spec"]["policy"], "policyHash": "" },
        "status": { "observedCRPGeneration": placement["metadata"]["generation"],
            "conditions": [scheduled], "targetClusters": decisions } });
    let clusters = placement["status"]["placementStatuses"].as_array().unwrap();
    let bindings = bindings.iter().zip(clusters).map(|(binding, cluster)| {
        let mut binding = binding.clone();
        binding["spec"]["applyStrategy"] = placement["spec"]["strategy"]["applyStrategy"].clone();
        let mut conditions = cluster["conditions"].as_array().unwrap().clone();
        conditions.remove(0);
        for condition in &mut conditions {
            condition["observedGeneration"] = binding["metadata"]["generation"].clone();
        }
        binding["status"] = cluster.clone();
        binding["status"]["conditions"] = json!(conditions);
        from_value(binding).unwrap()
    });
    let snapshot = json!({ "name": "crp-diff-0-snapshot",
        "labels": { "kubernetes-fleet.io/resource-index": "0" } });
    let works = items("crp-diff-works");
    let objects = works[0]["spec"]["workload"]["manifests"]
        .as_array()
        .cloned();
    World {
        bindings: bindings.collect(),
        held: Vec::new(),
        policy: from_value(policy).unwrap(),
        snapshot: from_value(snapshot).unwrap(),
        selection: Selection {
            objects: objects.unwrap(),
            ..Selection::default()
        },
        placement: from_value(placement).unwrap(),
    }
}

/// Members that were only looked at, that were taken over, and one in which somebody had changed an object.
#[test]
fn recorded_differences_are_ours() {
    for name in [
        "crp-diff-reported",
        "crp-diff-takeover-never",
        "crp-diff-takeover-ifnodiff",
        "crp-diff-drifted",
    ] {
        let mut world = of_differences(name);
        assert_eq!(world.status(), None, "{name}");
        world.placement.status = None;
        assert_eq!(world.said(), recorded_conditions(name), "{name}");
    }
}

/// Hundreds of clusters, each with a hundred objects that somebody has changed, are told of in less than etcd takes.
#[test]
fn much_drift_is_shortened() {
    let world = of_differences("crp-diff-drifted");
    let mut cluster = world.placement.status.clone().unwrap().placement_statuses[0].clone();
    cluster.drifted_placements[0].observed_drifts[0].value_in_hub = "x".repeat(4_000);
    cluster.drifted_placements = vec![cluster.drifted_placements[0].clone(); 100];
    let mut status = PlacementStatus {
        placement_statuses: vec![cluster; 400],
        ..PlacementStatus::default()
    };
    shorten(&mut status);
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(size < 1_400 * 1024, "{size}");
    let drifted = &status.placement_statuses[399].drifted_placements;
    assert_eq!(drifted.len(), 1);
    let told = &drifted[0].observed_drifts[0];
    assert_eq!(told.path, "/data/k");
    assert_eq!(told.value_in_hub, "(too large, see the Work)");
    // Where there are thousands of them, each says its subject.
    let mut failing = status.placement_statuses[0].clone();
    failing.conditions[1].status = FALSE.to_owned();
    failing.conditions[1].message = "x".repeat(200);
    let expected = failing.conditions[1].clone();
    status.placement_statuses = vec![failing; 1_500];
    shorten(&mut status);
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(size < 1_400 * 1024, "{size}");
    assert_eq!(status.placement_statuses[1_499].conditions, [expected]);
}

/// The words of a running KubeFleet on the way, while nobody knew yet.
#[test]
fn recorded_way_is_ours() {
    for (reached, recorded) in [
        (0, "placement-rollout-unknown"),
        (1, "placement-overridden-pending"),
    ] {
        let mut world = World::seed("crp-1-available");
        world.placement.status = None;
        world.back_to(reached);
        assert_eq!(world.said(), recorded_conditions(recorded), "{recorded}");
        let placement: Placement = from_value(fixture(recorded)).unwrap();
        let ours = world.status().unwrap().placement_statuses;
        let theirs = placement.status.unwrap().placement_statuses;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(
                said(&ours.conditions),
                said(&theirs.conditions),
                "{recorded}"
            );
        }
    }
    let mut world = World::seed("crp-1-available");
    world.placement.status = None;
    world.policy.as_mut().unwrap().status = None;
    assert_eq!(
        world.said(),
        recorded_conditions("placement-schedule-pending")
    );
}

/// Case F47.
#[test]
fn recorded_failure_is_ours() {
    let placement: Placement = from_value(fixture("crp-1-not-available")).unwrap();
    let mut world = World::seed("crp-1-not-available");
    let clusters = placement.status.unwrap().placement_statuses;
    for (binding, cluster) in world.bindings.iter_mut().zip(
        clusters
            .iter()
            .cycle()
            .skip_while(|one| one.cluster_name == "none"),
    ) {
        let BindingStatus {
            conditions,
            failed_placements,
            ..
        } = binding.status.as_mut().unwrap();
        let unavailable = find(&cluster.conditions, "Available").unwrap().clone();
        let generation = binding.metadata.generation;
        upsert(
            conditions,
            Condition {
                observed_generation: generation,
                ..unavailable
            },
        );
        failed_placements.clone_from(&cluster.failed_placements);
    }
    assert_eq!(world.status(), None);
}

/// Found two of five, and none of one that was named.
#[test]
fn recorded_shortages_are_ours() {
    for (placement, policy) in [
        ("crp-five-unfulfilled", "crp-five-policysnapshot-0"),
        ("crp-fixed-unfulfilled", "crp-fixed-policysnapshot-0"),
    ] {
        let world = World::recorded(
            placement,
            [policy, "crp-1-resourcesnapshot-0", "crp-all-bindings"],
        );
        let ours = world
            .status()
            .unwrap_or_else(|| world.placement.status.clone().unwrap());
        let theirs = world.placement.status.clone().unwrap();
        let missing = [&ours, &theirs].map(|status| {
            let clusters = status.placement_statuses.iter();
            let missing = clusters.filter(|one| one.cluster_name.is_empty());
            missing.map(|one| said(&one.conditions)).collect::<Vec<_>>()
        });
        assert_eq!(missing[0], missing[1], "{placement}");
        assert_eq!(
            said(&ours.conditions)[0],
            said(&theirs.conditions)[0],
            "{placement}"
        );
    }
}

/// An error of the selectors is all that is said; the former selection stays, and the words about it.
#[test]
fn invalid_selectors_change_one_condition() {
    let world = World::seed("crp-1-available");
    let invalid = Refusal::from(&InvalidSelector::ReservedNamespace("default".to_owned()));
    let (after, _) = plan(&StatusFacts {
        placement: &world.placement,
        selection: Err(&invalid),
        policy: None,
        snapshot: None,
        given: &[],
        bindings: &[],
        held: &[],
        progress_deadline: SignedDuration::MAX,
        now: "2026-11-25T17:00:00Z".parse().unwrap(),
    });
    let (after, before) = (after.unwrap(), world.placement.status.unwrap());
    let recorded = recorded_conditions("crp-twice-invalid");
    let ours = said(&after.conditions);
    assert_eq!(
        (&ours[0][0], &ours[0][1], &ours[0][2]),
        (&recorded[0][0], &recorded[0][1], &recorded[0][2])
    );
    assert_eq!(after.conditions[1..], before.conditions[1..]);
    assert_eq!(after.placement_statuses, before.placement_statuses);
}

/// Upstream flashes `ApplyFailed` at every step of a rollout.
#[test]
fn applying_is_no_failure() {
    let mut world = World::seed("crp-1-available");
    for binding in &mut world.bindings {
        let conditions = &mut binding.status.as_mut().unwrap().conditions;
        conditions.pop();
        let applied = conditions.last_mut().unwrap();
        applied.status = FALSE.to_owned();
        applied.reason = "ApplyInProgress".to_owned();
    }
    let status = world.status().unwrap();
    let last = status.conditions.last().unwrap();
    assert_eq!((&*last.status, &*last.reason), ("Unknown", "ApplyPending"));
}

/// Case F101: an entry is for a cluster that is picked: readers of the API know no other. Of one that is being left the
/// condition tells, and of the holder of an object there.
#[test]
fn clusters_being_left_are_told() {
    let mut world = World::seed("crp-1-available");
    let mut left = world.bindings[0].clone();
    left.spec.state = BindingState::Unscheduled;
    left.spec.target_cluster = "kind-cluster-1".to_owned();
    world.bindings.push(left);
    let status = world.status().unwrap();
    assert_eq!(status.placement_statuses.len(), 2);
    let scheduled = &status.conditions[0].message;
    let told = "; kind-cluster-1 is no longer picked: what it has is being removed";
    assert!(scheduled.ends_with(told), "{scheduled}");
    let held = "ConfigMap shop/ledger is held by example.com/settle";
    world.held = vec![("kind-cluster-1", held.to_owned())];
    let status = world.status().unwrap();
    let scheduled = &status.conditions[0].message;
    let told = format!("{told}; in kind-cluster-1: {held}");
    assert!(scheduled.ends_with(&told), "{scheduled}");
    world.held.clear();
    world.bindings.pop();
    assert_eq!(world.status(), None);
}

/// Case F106: a selector that selects nothing is named, for its name may be misspelt.
#[test]
fn idle_selectors_are_named() {
    let mut world = World::seed("crp-1-available");
    world.selection.idle = vec!["Namespace \"storefrnt\"".to_owned()];
    let scheduled = world.status().unwrap().conditions.remove(0);
    let told = "; nothing is selected by Namespace \"storefrnt\"";
    assert!(scheduled.message.ends_with(told), "{}", scheduled.message);
    assert_eq!(scheduled.reason, "SchedulingPolicyFulfilled");
}

/// Case F102: where no waiting helps, the remedy is told.
#[test]
fn hopeless_rollout_says_so() {
    for (bound, is_hopeless) in [(json!(0), true), (json!("0%"), true), (json!("1%"), false)] {
        let mut world = World::seed("crp-1-available");
        world.placement.spec.strategy.rolling_update =
            from_value(json!({ "maxUnavailable": bound })).unwrap();
        for binding in &mut world.bindings {
            let conditions = &mut binding.status.as_mut().unwrap().conditions;
            let started = conditions
                .iter_mut()
                .find(|one| one.type_ == "RolloutStarted");
            started.unwrap().status = FALSE.to_owned();
        }
        let status = world.status().unwrap();
        let of_cluster = &status.placement_statuses[0].conditions;
        for said in [&status.conditions, of_cluster].map(|said| said.last().unwrap()) {
            assert_eq!(said.reason, "RolloutNotStartedYet");
            let says_so = said
                .message
                .ends_with("raise spec.strategy.rollingUpdate.maxUnavailable");
            assert_eq!(says_so, is_hopeless, "{bound}: {}", said.message);
        }
    }
}

/// An edit of the budget changes no decision about clusters: these stay said.
#[test]
fn edit_beside_policy_stays_scheduled() {
    let mut world = World::seed("crp-1-available");
    world.placement.metadata.generation = Some(2);
    let scheduled = world.status().unwrap().conditions.remove(0);
    assert_eq!(scheduled.reason, "SchedulingPolicyFulfilled");
    world
        .placement
        .spec
        .policy
        .as_mut()
        .unwrap()
        .number_of_clusters = Some(7);
    let scheduled = world.status().unwrap().conditions.remove(0);
    assert_eq!(scheduled.reason, "SchedulePending");
}

/// A policy that is to name its clusters and names none waits for a name, as KubeFleet's does.
#[test]
fn policy_without_names_waits() {
    let mut world = World::seed("crp-1-available");
    world.placement.spec.policy = from_value(json!({ "placementType": "PickFixed" })).unwrap();
    let status = world.status().unwrap();
    let [scheduled] = &status.conditions[..] else {
        panic!("{:?}", status.conditions)
    };
    let said = (&*scheduled.status, &*scheduled.reason);
    assert_eq!(said, ("Unknown", "SchedulePending"));
    assert!(status.placement_statuses.is_empty());
}

#[test]
fn no_cluster_is_only_scheduled() {
    let placement: Placement = from_value(fixture("crp-five-zero")).unwrap();
    let mut world = World::seed("crp-1-available");
    world.placement = placement;
    world.bindings.clear();
    let policy = world.policy.as_mut().unwrap();
    let status = policy.status.as_mut().unwrap();
    status.target_clusters.clear();
    status.observed_placement_generation = Some(4);
    status.conditions[0].message =
        "found all cluster needed as specified by the scheduling policy, found 0 cluster(s)"
            .to_owned();
    assert_eq!(world.said(), recorded_conditions("crp-five-zero"));
}

/// A rollout is complete once every cluster says of the same snapshot that it is available, and none is kept from another.
#[test]
fn last_arrival_completes() {
    let world = World::seed("crp-1-available");
    let is_complete_with = |change: fn(&mut Binding)| {
        let mut bindings = world.bindings.clone();
        change(&mut bindings[0]);
        is_complete(&bindings.iter().collect::<Vec<_>>())
    };
    assert!(is_complete_with(|_| {}));
    assert!(is_complete_with(|left| {
        left.spec.state = BindingState::Unscheduled;
    }));
    assert!(!is_complete_with(|edited| {
        edited.metadata.generation = Some(9);
    }));
    assert!(!is_complete_with(|ahead| {
        ahead.spec.resource_snapshot_name = "crp-1-1-snapshot".to_owned();
    }));
    assert!(!is_complete_with(|held| {
        let status = held.status.as_mut().unwrap();
        status.conditions[0].status = FALSE.to_owned();
    }));
    assert!(!is_complete(&[]));
}

/// 1,000 clusters with six conditions each would not fit into etcd; those that fail keep all of theirs.
#[test]
fn large_statuses_are_shortened() {
    let mut status = World::seed("crp-1-available").placement.status.unwrap();
    let healthy = status.placement_statuses[0].clone();
    let mut failing = healthy.clone();
    failing.failed_placements = vec![FailedPlacement::default()];
    failing.conditions.last_mut().unwrap().status = FALSE.to_owned();
    status.placement_statuses = vec![healthy; 1000];
    status.placement_statuses.push(failing.clone());
    shorten(&mut status);
    assert_eq!(
        status.placement_statuses.first().unwrap().conditions.len(),
        1
    );
    assert_eq!(status.placement_statuses.last(), Some(&failing));
}

/// A rollout that waits for a version that does not become available looks like one that goes on: after the deadline it
/// names the cluster where it is stuck, and the object.
#[test]
fn stuck_rollout_is_named() {
    let mut world = World::seed("crp-1-not-available");
    for binding in &mut world.bindings {
        let (generation, status) = (
            binding.metadata.generation,
            binding.status.as_mut().unwrap(),
        );
        let available = status
            .conditions
            .iter_mut()
            .find(|one| one.type_ == "Available");
        *available.unwrap() = from_value(json!({
            "type": "Available", "status": "False", "reason": "NotAllWorkAreAvailable", "message": "",
            "observedGeneration": generation, "lastTransitionTime": "2026-11-25T16:50:00Z" }))
        .unwrap();
        let failed = json!({ "group": "apps", "version": "v1", "kind": "Deployment", "name": "web",
            "namespace": "shop", "condition": { "type": "Available", "status": "False",
            "reason": "ManifestNotAvailableYet", "message": "0 of 2 replicas", "lastTransitionTime": null } });
        status.failed_placements = vec![from_value(failed).unwrap()];
    }
    let bindings: Vec<_> = world.bindings.iter().collect();
    let at = |now: &str| {
        let (status, wake_at) = plan(&StatusFacts {
            placement: &world.placement,
            selection: Ok(&world.selection),
            policy: world.policy.as_ref(),
            snapshot: Some(&world.snapshot),
            given: &[],
            bindings: &bindings,
            held: &[],
            progress_deadline: SignedDuration::from_mins(10),
            now: now.parse().unwrap(),
        });
        (status.unwrap().conditions.pop().unwrap(), wake_at)
    };
    let (condition, wake_at) = at("2026-11-25T16:59:59Z");
    assert_eq!(wake_at, Some("2026-11-25T17:00:00Z".parse().unwrap()));
    assert_eq!(condition.reason, "ResourceNotAvailableYet");
    let (condition, wake_at) = at("2026-11-25T17:00:00Z");
    assert_eq!(wake_at, None);
    assert_eq!(
        (&*condition.reason, &*condition.status),
        ("RolloutStuck", FALSE)
    );
    let clusters = bindings.iter().map(|binding| {
        let cluster = &binding.spec.target_cluster;
        format!("Deployment shop/web is not available in {cluster}: 0 of 2 replicas")
    });
    let mut clusters: Vec<_> = clusters.collect();
    clusters.sort();
    assert_eq!(condition.message, clusters.join("; "));
}
