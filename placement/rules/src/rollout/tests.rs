mod history;
mod world;

use fleet_api::binding::BindingState;
use fleet_api::conditions::ROLLOUT_STARTED;
use fleet_api::names::{BINDING_SCHEDULER_FINALIZER, OVERRIDES_DIGEST, WORK_FINALIZER};
use fleet_api::{Binding, Placement};
use objects::condition::find;
use objects::write::Action;
use serde_json::{Value, from_value, json, to_value};
use std::collections::BTreeMap;

use self::world::{Says, World};
use super::*;
use crate::fixtures::{fixture, items, merged};
use crate::overrides::Overrides;
use crate::strategy::apply_strategy;

fn recorded(name: &str) -> Vec<Binding> {
    let items = items(name).into_iter();
    items.map(|item| from_value(item).unwrap()).collect()
}

/// Returns the step of a recorded rollout at a later time of its day.
fn step(bindings: &[Binding], snapshot: &str, at: &str) -> Plan {
    let placement: Placement = from_value(json!({ "spec": { "strategy": {
        "rollingUpdate": { "unavailablePeriodSeconds": 2 } } } }))
    .unwrap();
    let bindings: Vec<_> = bindings.iter().collect();
    plan(&RolloutFacts {
        placement: &placement,
        snapshot,
        overrides: &Overrides::default(),
        bindings: &bindings,
        clusters: &BTreeMap::new(),
        progress_deadline: jiff::SignedDuration::from_mins(10),
        now: format!("2026-11-25T{at}Z").parse().unwrap(),
    })
}

/// A fleet that changes hands in the middle of a rollout goes on from there, and not before the first wave is ready.
#[test]
fn recorded_rollouts_need_no_write() {
    for (name, snapshot) in [
        ("crp-roll-bindings-mid-rollout", "crp-roll-1-snapshot"),
        ("crp-1-bindings", "crp-1-0-snapshot"),
        ("crp-all-bindings", "crp-all-0-snapshot"),
        ("crp-five-bindings", "crp-five-0-snapshot"),
    ] {
        let plan = step(&recorded(name), snapshot, "16:54:00");
        assert_eq!(plan.writes, [], "{name}");
    }
    let mid = recorded("crp-roll-bindings-mid-rollout");
    let wake_at = step(&mid, "crp-roll-1-snapshot", "16:54:00").wake_at;
    assert_eq!(wake_at, Some("2026-11-25T16:55:52Z".parse().unwrap()));
}

/// Clusters that were only looked at are ready for the next version once they have reported, within the budget; those that
/// could not report have nothing to lose.
#[test]
fn reports_make_clusters_ready() {
    let placement = fixture("crp-diff-reported");
    let placement: Placement = from_value(placement).unwrap();
    for (status, snapshot, given) in [
        ("True", "crp-diff-0-snapshot", 0),
        ("True", "crp-diff-1-snapshot", 1),
        ("False", "crp-diff-1-snapshot", 2),
    ] {
        let mut bindings = recorded("crp-diff-bindings");
        for binding in &mut bindings {
            let conditions = &mut binding.status.as_mut().unwrap().conditions;
            let last = conditions.last_mut().unwrap();
            status.clone_into(&mut last.status);
        }
        let plan = plan(&RolloutFacts {
            placement: &placement,
            snapshot,
            overrides: &Overrides::default(),
            bindings: &bindings.iter().collect::<Vec<_>>(),
            clusters: &BTreeMap::new(),
            progress_deadline: jiff::SignedDuration::from_mins(10),
            now: "2026-11-25T16:54:00Z".parse().unwrap(),
        });
        let specs = plan.writes.iter();
        let specs = specs.filter(|write| write.target == "binding");
        assert_eq!(specs.count(), given, "{status} {snapshot}");
    }
}

/// A cluster for which an override cannot be applied has failed, as in KubeFleet: the correction goes there at once.
#[test]
fn failed_override_is_failure() {
    let mut bindings = recorded("crp-1-bindings");
    for binding in &mut bindings {
        let conditions = &mut binding.status.as_mut().unwrap().conditions;
        let overridden = conditions.iter_mut().find(|one| one.type_ == "Overridden");
        overridden.unwrap().status = "False".to_owned();
    }
    let plan = step(&bindings, "crp-1-1-snapshot", "16:54:00");
    let given = plan.writes.iter();
    let given = given.filter(|write| write.target == "binding");
    assert_eq!(given.count(), bindings.len());
}

#[test]
fn recorded_bindings_are_bound() {
    let scheduled = fixture("binding-scheduled-2-strategy");
    let binding = from_value(scheduled.clone()).unwrap();
    let plan = step(&[binding], "crp-five-0-snapshot", "16:44:45");
    let [write] = &plan.writes[..] else {
        panic!("{plan:?}")
    };
    let bound = merged(&scheduled, write);
    let mut expected = fixture("binding-bound-no-status")["spec"].clone();
    // The recorded one is of another cluster.
    for field in ["targetCluster", "clusterDecision"] {
        expected[field] = bound["spec"][field].clone();
    }
    assert_eq!(bound["spec"], expected);
    // One that is bound waits for its Works, too.
    assert_eq!(
        bound["metadata"]["finalizers"],
        json!([BINDING_SCHEDULER_FINALIZER, WORK_FINALIZER])
    );

    let bound: Binding = from_value(fixture("binding-bound-no-status")).unwrap();
    let plan = step(&[bound], "crp-five-0-snapshot", "16:44:45");
    let [write] = &plan.writes[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(write.subresource, Some("status"));
    let conditions = write.body()["status"]["conditions"].clone();
    let conditions: Vec<Value> = from_value(conditions).unwrap();
    let started = find(&conditions, ROLLOUT_STARTED);
    let recorded = fixture("binding-unscheduled")["status"]["conditions"][0].clone();
    assert_eq!(started, Some(&recorded));
}

#[test]
fn unscheduled_alone_goes_at_once() {
    let binding: Binding = from_value(fixture("binding-unscheduled")).unwrap();
    let plan = step(&[binding], "crp-five-0-snapshot", "16:45:00");
    assert!(matches!(&plan.writes[..], [write] if write.action == Action::Delete));
}

/// Case F29: everybody gets the first version at once; then U of the clusters are changed at a time.
#[test]
fn waves_follow_the_budget() {
    let mut world = World::new(10);
    world.settle(Says::Available);
    assert_eq!(world.with("s0"), 10);
    world.snapshot = "s1".to_owned();
    for changed in [3, 6, 9, 10] {
        world.run();
        assert_eq!(world.with("s1"), changed);
        world.report_all(Says::Available);
    }
}

/// Case F30: an image that cannot be pulled: the first wave stays as it is, and is mended at once when the next version
/// comes.
#[test]
fn broken_version_stops_and_is_mended() {
    let mut world = World::new(10);
    world.settle(Says::Available);
    world.snapshot = "broken".to_owned();
    world.run();
    world.report_where("broken", Says::Unavailable);
    world.run();
    world.seconds += 3600;
    world.run();
    assert_eq!(world.with("broken"), 3);
    world.snapshot = "mended".to_owned();
    world.run();
    assert_eq!((world.with("broken"), world.with("mended")), (0, 3));
    world.settle(Says::Available);
    assert_eq!(world.with("mended"), 10);
}

/// Case F30.
#[test]
fn broken_first_version_is_mended_at_once() {
    let mut world = World::new(4);
    world.run();
    world.report_all(Says::Unavailable);
    world.snapshot = "mended".to_owned();
    world.run();
    assert_eq!(world.with("mended"), 4);
}

/// Case F31: nothing was ever ready: whatever is no longer wanted goes all the same.
#[test]
fn shrinking_to_nothing_never_hangs() {
    let mut world = World::new(4);
    world.run();
    world.report_all(Says::Unavailable);
    for binding in &mut world.bindings {
        binding.spec.state = BindingState::Unscheduled;
    }
    world.run();
    assert!(world.bindings.iter().all(|one| one.metadata.is_deleting()));
}

/// An edit of the policy comes before the first snapshot: who got nothing yet and is no longer picked makes room for who
/// is, whatever has been said of it.
#[test]
fn unscheduled_before_its_turn_goes() {
    let mut binding: Binding = from_value(fixture("binding-unscheduled")).unwrap();
    binding.spec.resource_snapshot_name.clear();
    let mut status = fixture("binding-unscheduled")["status"].clone();
    status["conditions"] = json!([{ "type": "WorkSynchronized", "status": "False", "reason": "SyncWorkFailed",
        "observedGeneration": binding.metadata.generation }]);
    binding.status = from_value(status).unwrap();
    let picked = from_value(fixture("binding-scheduled-2-strategy")).unwrap();
    let plan = step(&[binding, picked], "crp-five-0-snapshot", "16:45:00");
    assert_eq!(plan.writes[0].action, Action::Delete);
}

/// To the hub, all members look as if they were gone: nothing goes anywhere, and when they are back, in waves.
#[test]
fn outage_of_the_hub_sends_nothing() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    world.unreachable = (0..4).map(|n| format!("c{n}")).collect();
    world.snapshot = "s1".to_owned();
    world.run();
    assert_eq!(world.with("s1"), 0);
    world.unreachable.clear();
    world.run();
    assert_eq!(world.with("s1"), 1);
}

/// Case F32.
#[test]
fn unreachable_clusters_hold_nobody() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    world.unreachable.insert("c0".to_owned());
    world.snapshot = "s1".to_owned();
    world.settle(Says::Available);
    assert_eq!((world.with("s0"), world.with("s1")), (1, 3));
}

/// Case F68: by other labels of a cluster its overrides come to something else, which is no other generation: until its Works
/// are made of that, it does not count as ready, and nobody else is changed.
#[test]
fn unrendered_is_not_ready() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    let annotations = world.bindings[3]
        .metadata
        .annotations
        .get_or_insert_default();
    annotations.insert(OVERRIDES_DIGEST.to_owned(), "other".to_owned());
    world.snapshot = "s1".to_owned();
    world.run();
    assert_eq!(world.with("s1"), 1);
    assert_eq!(world.bindings[3].spec.resource_snapshot_name, "s1");
}

/// Case F33.
#[test]
fn untrackable_waits_its_seconds() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    world.snapshot = "s1".to_owned();
    world.run();
    world.report_where("s1", Says::Untrackable);
    world.run();
    assert_eq!(world.with("s1"), 1);
    let wake_at = world.plan().wake_at.unwrap();
    assert_eq!(wake_at, world.now() + jiff::SignedDuration::from_secs(60));
    world.seconds += 60;
    world.run();
    assert_eq!(world.with("s1"), 2);
}

/// Case F96: content that nobody can track and that was edited in its first seconds goes nowhere before they are over, and
/// then to one cluster: it may serve already.
#[test]
fn early_edit_waits_its_seconds() {
    let mut world = World::new(4);
    world.run();
    world.report_all(Says::Untrackable);
    world.run();
    world.snapshot = "s1".to_owned();
    world.run();
    assert_eq!(world.with("s1"), 0);
    world.seconds += 60;
    world.run();
    assert_eq!(world.with("s1"), 1);
}

/// Case F34: a new way to write goes to everybody at once. It makes every report one on the version before, so no wave
/// follows on these, and the next one only on new ones.
#[test]
fn strategy_first_then_waves() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    world.placement.spec.strategy.apply_strategy =
        from_value(json!({ "type": "ServerSideApply" })).unwrap();
    world.snapshot = "s1".to_owned();
    world.run();
    let strategies = world
        .bindings
        .iter()
        .map(|one| one.spec.apply_strategy.as_ref());
    assert!(
        strategies
            .flatten()
            .all(|strategy| strategy.type_ == "ServerSideApply")
    );
    assert_eq!(world.with("s1"), 0);
    world.report_all(Says::Available);
    world.run();
    assert_eq!(world.with("s1"), 1);
}

/// Case F34: of the way to write before nothing is left.
#[test]
fn former_strategy_is_gone() {
    let mut world = World::new(2);
    world.settle(Says::Available);
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    for strategy in [forced, json!({ "type": "ReportDiff" })] {
        world.placement.spec.strategy.apply_strategy = from_value(strategy).unwrap();
        world.run();
        let expected = apply_strategy(&world.placement);
        let mut bindings = world.bindings.iter();
        assert!(bindings.all(|one| one.spec.apply_strategy.as_ref() == Some(&expected)));
    }
}

/// Case F32: a cluster whose former binding is still being deleted waits, and nobody waits for it.
#[test]
fn stuck_deletion_holds_one() {
    let mut world = World::new(2);
    world.settle(Says::Available);
    world.bindings[0].metadata.deletion_timestamp = Some(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now()),
    );
    world.schedule("c0");
    world.schedule("c2");
    world.run();
    for (cluster, state) in [("c0", BindingState::Scheduled), ("c2", BindingState::Bound)] {
        let mut latest_first = world.bindings.iter().rev();
        let latest = latest_first.find(|one| one.spec.target_cluster == cluster);
        assert_eq!(latest.unwrap().spec.state, state, "{cluster}");
    }
}

#[test]
fn held_bindings_say_so() {
    let mut world = World::new(4);
    world.settle(Says::Available);
    world.snapshot = "s1".to_owned();
    world.run();
    let held = world.bindings.iter().filter(|one| {
        let conditions = &one.status.as_ref().unwrap().conditions;
        let started = find(conditions, ROLLOUT_STARTED).unwrap();
        started.status == "False" && started.reason == "RolloutNotStartedYet"
    });
    assert_eq!(held.count(), 3);
    assert!(to_value(world.plan().writes.len()).is_ok_and(|writes| writes == 0));
}
